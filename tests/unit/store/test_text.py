"""Tests that only text that cannot be stored is removed."""

import re

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.record.text import clean
from tarsy.store.text import clean_or_none, dump_json


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("", ""),
        ("line\n\ttabbed", "line\n\ttabbed"),
        ("a\x00b", "ab"),
        ("\x1b[31mred\x1b[0m\r\n", "[31mred[0m\n"),
        ("\x7f\x85\x9bgone", "gone"),
        ("Grüße, 世界 😀", "Grüße, 世界 😀"),
        ("half \ud83d", "half \ufffd"),
    ],
)
def test_control_characters_and_lone_surrogates_are_taken_out(text: str, stored: str) -> None:
    assert clean(text) == stored
    assert orjson.loads(dump_json({text: [text, {"k": (text,)}]})) == {stored: [stored, {"k": [stored]}]}


def test_absent_text_stays_absent() -> None:
    assert clean_or_none(None) is None
    assert clean_or_none("a\x00") == "a"


@given(st.text())
def test_cleaning_is_idempotent_and_storable(text: str) -> None:
    once = clean(text)
    assert clean(once) == once
    assert "\x00" not in once
    once.encode("utf-8")


@given(st.text(st.characters() | st.sampled_from("\x00\t\n\r\x7f\x80\x9f\xa0\ud800\udfff"), max_size=200))
def test_what_is_removed_is_what_a_pattern_finds(text: str) -> None:
    without = re.sub("[\x00-\x08\x0b-\x1f\x7f-\x9f]", "", text)

    assert clean(text) == re.sub("[\ud800-\udfff]", "\ufffd", without)


@given(st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.text(), lambda s: st.lists(s) | st.tuples(s)))
def test_json_has_no_escape_that_postgres_refuses(value: object) -> None:
    strings: list[str] = []

    def collect(part: object) -> None:
        if isinstance(part, str):
            strings.append(part)
        elif isinstance(part, list):
            for one in part:
                collect(one)

    collect(orjson.loads(dump_json(value)))
    assert all(clean(text) == text for text in strings)


def test_what_is_not_json_is_refused() -> None:
    with pytest.raises(TypeError):
        dump_json({"k": object()})
