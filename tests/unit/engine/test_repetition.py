"""Streams that repeat themselves are cut, and nothing else is."""

import random
import string
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from properties import examples
from tarsy.engine.model_calls.repetition import (
    EVERY,
    PATTERN,
    TIMES,
    WINDOW,
    RepeatedText,
    _repeated_once,
    find_repetition,
    first_only,
)


def prose(length: int, seed: int = 7) -> str:
    """Words that never repeat for long."""
    chance = random.Random(seed)
    words = ("".join(chance.choices(string.ascii_lowercase, k=chance.randint(2, 11))) for _ in range(length // 3 + 1))
    return " ".join(words)[:length]


def watch(text: str, size: int = 7) -> int | None:
    """Where a stream of such pieces is cut, or None."""
    watched = RepeatedText()
    for start in range(0, len(text), size):
        if watched.add(text[start : start + size]) is not None:
            return min(start + size, len(text))
    return None


@for_each("length", [30, 31, 137, 499, 500])
@for_each("size", [1, 7, 4096])
def test_a_stream_that_loops_is_cut_and_keeps_its_first_repetition(length: int, size: int) -> None:
    before, pattern = prose(3_500), prose(length, 9)
    text = f"{before}#" + pattern * 60

    cut = watch(text, size)

    assert cut is not None and cut - len(before) <= max(TIMES * length, 1_000) + length + EVERY + size
    found = find_repetition(text[:cut])
    assert found == length
    assert first_only([text[:cut]], found) == f"{before}#{pattern}"


@pytest.mark.parametrize(
    ("length", "times", "cut"),
    [
        (29, 51, False),  # 1,479 characters of a short pattern
        (29, 52, True),
        (30, 33, False),  # 990 of a long one
        (30, 34, True),
        (40, 25, True),  # 1,000 exactly
        (500, 4, False),
        (500, 5, True),
        (501, 5, False),
    ],
)
def test_figures_at_below_and_above(length: int, times: int, cut: bool) -> None:
    text = prose(6_000) + "#" + prose(length, 3) * times
    assert (find_repetition(text[-WINDOW:], len(text)) is not None) is cut


@pytest.mark.parametrize(("run", "cut"), [(4_999, False), (5_000, True)])
def test_a_rule_of_signs_is_cut_when_it_does_not_end(run: int, cut: bool) -> None:
    text = prose(5_000) + "#" + "-" * run
    assert (find_repetition(text[-WINDOW:], len(text)) is not None) is cut


@pytest.mark.parametrize(("run", "cut"), [(1_499, False), (1_500, True)])
def test_a_letter_is_cut_sooner(run: int, cut: bool) -> None:
    text = prose(5_000) + "#" + "i" * run
    assert (find_repetition(text[-WINDOW:], len(text)) is not None) is cut


@pytest.mark.parametrize(("pattern", "times"), [("i", 300), ("no ", 100), ("-", 300), ("The node is full. ", 17)])
def test_an_answer_that_holds_nothing_else_is_cut_at_once(pattern: str, times: int) -> None:
    cut = watch(pattern * 4_000)
    assert cut is not None and cut <= 300 + EVERY + 7
    assert find_repetition(pattern * times) == len(pattern)
    assert find_repetition((pattern * times)[: 300 - 1]) is None


@pytest.mark.parametrize(("before", "cut"), [(75, True), (76, False)])
def test_nothing_else_means_four_fifths_of_what_was_said(before: int, cut: bool) -> None:
    assert (find_repetition(prose(before - 1) + "#" + "i" * 300) is not None) is cut


@pytest.mark.parametrize("size", [1, 7, 4096])
@pytest.mark.parametrize(("length", "cut"), [(299, False), (300, True), (1_900, True)])
def test_a_short_answer_is_looked_at_when_it_ends(length: int, size: int, cut: bool) -> None:
    watched, text, found = RepeatedText(), "i" * length, None
    for start in range(0, length, size):
        found = found or watched.add(text[start : start + size])
    assert bool(found or watched.end()) is cut


def test_nothing_is_left_of_an_answer_that_is_a_short_pattern_only() -> None:
    assert first_only(["  ", "i" * 900], 1) == ""
    assert first_only(["no " * 300], 3) == ""
    assert first_only(["Nodes: ", "i" * 900], 1) == "Nodes: i"
    assert first_only(["The node of this pod is full. " * 30], 30) == "The node of this pod is full. "


NORMAL = {
    "table": "| pod | state | restarts |\n|-----|-------|----------|\n"
    + "".join(f"| checkout-{i:x}-7d | Running | {i % 3} |\n" for i in range(400)),
    "wide rule of a table": prose(1_700) + "\n|" + "--------|" * 40,
    "rule of signs": prose(1_900) + "\n" + "=" * 120 + "\n" + prose(3_000, 2),
    "yaml list": "".join(
        f"- name: worker-{i}\n  image: registry.example/worker:1.2\n  env:\n  - name: A\n    value: b\n"
        for i in range(200)
    ),
    "hex dump of zeros": "".join(f"{i * 16:08x}  {'00 ' * 16} |{'.' * 16}|\n" for i in range(200)),
    "log with timestamps": "".join(
        f"2026-11-20T09:{i // 60:02}:{i % 60:02}Z E dial tcp 10.0.0.1:5432: connection refused\n" for i in range(300)
    ),
    "json": "[" + ",".join(f'{{"ready": true, "restarts": 0, "name": "p{i}"}}' for i in range(400)) + "]",
    "numbered list": "".join(f"{i}. Check the node, then check the pods on it again.\n" for i in range(300)),
    "hex dump without addresses": prose(900) + "\n" + ("00 " * 16 + "\n") * 60,
    "equal items of a list": prose(700) + "\nports:\n" + "- containerPort: 8080\n" * 40 + prose(800, 3),
    "equal lines of a log": prose(900) + "\n" + "dial tcp 10.0.0.1:5432: connection refused\n" * 20 + prose(900, 5),
    "zeros in base64": prose(600) + "\n" + "A" * 1_200 + "==\n" + prose(600, 6),
    "empty cells of a table": prose(400) + "\n" + "|  |  |  |  |\n" * 60,
    "same line four times": prose(1_800) + "\nBack-off restarting failed container web\n" * 4 + prose(4_000, 4),
}


@for_each("name", NORMAL)
@for_each("size", [1, 64])
def test_normal_text_is_never_cut(name: str, size: int) -> None:
    assert watch(NORMAL[name], size) is None
    assert all(find_repetition(NORMAL[name][:end][-WINDOW:], end) is None for end in range(500, len(NORMAL[name]), 97))


@given(st.text(alphabet=string.ascii_letters + " \n-|0", min_size=0, max_size=9_000), st.integers(1, 3_000))
@examples(60)
def test_what_is_cut_truly_ends_in_a_pattern_too_often(text: str, size: int) -> None:
    length = find_repetition(text)
    if length is None:
        return
    assert length in PATTERN
    pattern = text[-length:]
    assert text.endswith(pattern * TIMES)
    kept = first_only([text[i : i + size] for i in range(0, len(text), size)], length)
    assert text.startswith(kept) and len(text) - len(kept) >= (TIMES - 1) * length


@given(st.text(alphabet="ab ", min_size=1, max_size=500), st.integers(5, 1_600), st.text(max_size=50))
def test_every_pattern_of_the_lengths_looked_for_is_found(pattern: str, times: int, before: str) -> None:
    text = before + pattern * min(times, 6_000 // len(pattern) + 1)
    assert (
        find_repetition(text) is not None
        or len(text) - len(before) < max(1_500, TIMES * len(pattern))
        or not pattern.strip()
    )


def test_a_megabyte_in_single_characters_is_watched_in_linear_time() -> None:
    text = prose(200_000) * 5
    watched = RepeatedText()
    began = time.process_time()
    assert not any(watched.add(character) is not None for character in text)
    assert time.process_time() - began < 30


@given(st.text("ab", max_size=60), st.integers(1, 12), st.text("abc", max_size=20))
def test_the_lengths_of_what_a_text_ends_in_twice_are_those_of_a_look_at_each(
    pattern: str, times: int, before: str
) -> None:
    text = before + pattern * times
    for stop in (2, 7, 8, 9, 40, len(text) // 2 + 1):
        lengths = range(PATTERN.start, min(stop, len(text) // 2 + 1))
        each = [length for length in lengths if text[-length:] == text[-2 * length : -length]]
        assert list(_repeated_once(text, min(stop, len(text) // 2 + 1))) == each
