"""Tests paths of printer columns that no other test of the tables has."""

import pytest

from embedded_kubeapi.jsonpath import BadPath, parse

SHOWN = ".status.finding['shown','word']"


@pytest.mark.parametrize(
    ("finding", "found"),
    [
        ({"shown": "High (12 of 20 right)", "word": "High"}, ["High (12 of 20 right)", "High"]),
        ({"word": "High"}, ["High"]),
        ({"shown": None}, [None]),
        ({}, []),
        (None, []),
        (["word"], []),
    ],
)
def test_a_union_of_fields_gives_those_that_are_there_in_its_order(finding: object, found: list[object]) -> None:
    assert parse(SHOWN).find({"status": {"finding": finding}}) == found


@pytest.mark.parametrize("path", [".a['b',]", ".a['b' 'c']", ".a['b','c'", ".a[b,c]"])
def test_a_union_that_is_not_closed_or_quoted_is_refused(path: str) -> None:
    with pytest.raises(BadPath):
        parse(path)
