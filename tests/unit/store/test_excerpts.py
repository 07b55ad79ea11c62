"""Tests what a hit of a search shows."""

import pytest

from tarsy.store.reading.excerpts import AROUND, excerpt, searched_words


@pytest.mark.parametrize(
    ("texts", "words", "shown"),
    [
        (["The pod crashes."], ["CRASH"], "The pod crashes."),
        (["The pod crashes.", "It ran out of memory."], ["memory"], "It ran out of memory."),
        (["a\n  b\tc"], ["b"], "a b c"),
        (["The pod crashes."], ["memory"], None),
        ([], ["memory"], None),
        (["The pod crashes."], [], None),
    ],
)
def test_it_is_the_first_text_that_contains_a_word(texts: list[str], words: list[str], shown: str | None) -> None:
    assert excerpt(texts, words) == shown


@pytest.mark.parametrize(("before", "cut"), [(AROUND, False), (AROUND + 1, True)])
def test_it_is_cut_where_the_text_goes_on(before: int, *, cut: bool) -> None:
    shown = excerpt([f"{'x' * before}hit"], ["hit"])
    assert shown is not None and shown.startswith("… ") is cut
    assert shown.endswith("hit")


def test_words_are_searched_without_their_punctuation() -> None:
    assert searched_words('"out of" (memory), --') == ["out", "of", "memory"]
