"""Tests that results for models are bounded, and that nothing in them leaves the fence."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.engine.prompts.fence import fenced
from tarsy.http.mcp_endpoint.results import FENCE, fitted, rendered

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=8), JSON))
def test_a_result_is_json_in_a_fence_that_nothing_in_it_closes(plain: dict[str, object]) -> None:
    text = rendered(plain)
    assert text.count(f"<!-- {FENCE}_END -->") == 1
    assert fenced(FENCE, text) is not None


@pytest.mark.parametrize(("length", "cut"), [(100, False), (999, True)])
def test_long_texts_are_cut_and_say_so(length: int, cut: bool) -> None:
    text = fitted({"log": "x" * length}, limit=400)
    assert len(text) <= 400
    assert ("more characters" in json.loads(text)["log"]) == cut


def test_long_lists_are_cut_when_short_texts_do_not_suffice() -> None:
    plain = json.loads(fitted({"items": [{"n": n} for n in range(1000)]}, limit=2_000))
    assert plain["items"][0] == {"n": 0}
    assert str(plain["items"][-1]).endswith("more)")


def test_null_fields_are_left_out() -> None:
    assert json.loads(fitted({"a": None, "b": [{"c": None, "d": 0}]})) == {"b": [{"d": 0}]}
