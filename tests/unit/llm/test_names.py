"""Tool names survive the provider's alphabet."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.llm.tool_names import ToolNames, encode_tool_name

ANY = st.text(max_size=100) | st.from_regex(r"[a-z-]{1,40}\.[A-Za-z0-9_./ -]{1,60}", fullmatch=True)
TRICKY = st.text(alphabet="a_.-0", max_size=80)


@given(ANY | TRICKY)
def test_every_name_fits_the_alphabet_and_64_characters(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", encode_tool_name(name))


@given(st.lists(ANY | TRICKY, unique=True, max_size=20))
def test_all_names_come_back_whatever_stands_beside_them(names: list[str]) -> None:
    table = ToolNames(names)
    assert len({encode_tool_name(name) for name in names}) == len(names)
    assert [table.decode(encode_tool_name(name)) for name in names] == names


@given(st.sets(ANY | TRICKY, max_size=10))
def test_names_that_look_like_encoded_ones_are_told_apart_from_them(names: set[str]) -> None:
    everything = names | {encode_tool_name(name) for name in names}
    assert len({encode_tool_name(name) for name in everything}) == len(everything)


@pytest.mark.parametrize(
    ("name", "encoded"),
    [
        ("kubernetes.get_pods", "kubernetes__get_pods"),
        ("kubernetes-server.pods-list", "kubernetes-server__pods-list"),
        ("a._b", "a___b"),
        ("plain", "plain"),
    ],
)
def test_ordinary_names_stay_readable(name: str, encoded: str) -> None:
    assert encode_tool_name(name) == encoded


def test_names_with_double_underscores_dots_and_excess_length_are_told_apart_by_a_hash() -> None:
    names = ["a__b.c", "a.b__c", "a.b.c", "a_.b", "s." + "x" * 70, "s." + "x" * 71, "a.pods/get", "a.pods get"]
    assert len({encode_tool_name(name) for name in names}) == len(names)
    assert encode_tool_name("a.pods/get").startswith("a_pods_get_")


def test_a_tool_the_model_invented_is_read_as_server_and_tool() -> None:
    assert ToolNames(["a.b"]).decode("a__invented") == "a.invented"
