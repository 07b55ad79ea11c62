"""Where the tool calls of two runs part."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.evals.divergence import Divergence, ToolStep, canonical_arguments, find_divergence

A, B, C = ToolStep("k.pods", "{}"), ToolStep("k.logs", '{"pod":"a"}'), ToolStep("k.logs", '{"pod":"b"}')
STEPS = st.lists(st.sampled_from([A, B, C]), max_size=8)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([], [], None),
        ([A, B], [A, B], None),
        ([A, B], [A, C], Divergence(1, B, C)),
        ([A, B], [A], Divergence(1, B, None)),
        ([A], [A, C], Divergence(1, None, C)),
        ([B, A], [A, B], Divergence(0, B, A)),
        ([], [A], Divergence(0, None, A)),
    ],
)
def test_the_first_difference_is_found(
    first: list[ToolStep], second: list[ToolStep], expected: Divergence | None
) -> None:
    assert find_divergence(first, second) == expected


@given(STEPS, STEPS)
def test_everything_before_the_difference_is_the_same(first: list[ToolStep], second: list[ToolStep]) -> None:
    found = find_divergence(first, second)
    if found is None:
        assert first == second
    else:
        assert first[: found.index] == second[: found.index]
        assert first[found.index : found.index + 1] != second[found.index : found.index + 1]


def test_order_of_keys_and_white_space_are_no_difference() -> None:
    assert canonical_arguments('{"b": 1,\n "a": [1, 2]}') == canonical_arguments('{"a":[1,2],"b":1}')
    assert canonical_arguments('{"a": 1}') != canonical_arguments('{"a": "1"}')


def test_arguments_that_are_no_json_are_compared_as_text() -> None:
    assert canonical_arguments("  pod=a \n") == "pod=a"
