"""Streams that repeat themselves are cut (reference section 1.4), and nothing else is."""

import random
import string
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tarsy.engine.repetition import EVERY, PATTERN, TIMES, WINDOW, Repetition, find, first_only


def prose(length: int, seed: int = 7) -> str:
    """Words that never repeat for long."""
    chance = random.Random(seed)
    words = ("".join(chance.choices(string.ascii_lowercase, k=chance.randint(2, 11))) for _ in range(length // 3 + 1))
    return " ".join(words)[:length]


def watch(text: str, size: int = 7) -> int | None:
    """Where a stream of such pieces is cut, or None."""
    watched = Repetition()
    for start in range(0, len(text), size):
        if watched.add(text[start : start + size]) is not None:
            return min(start + size, len(text))
    return None


@pytest.mark.parametrize("length", [30, 31, 137, 499, 500])
@pytest.mark.parametrize("size", [1, 7, 4096])
def test_a_stream_that_loops_is_cut_and_keeps_its_first_repetition(length: int, size: int) -> None:
    before, pattern = prose(3_500), prose(length, 9)
    text = f"{before}#" + pattern * 60

    cut = watch(text, size)

    assert cut is not None and cut - len(before) <= TIMES * length + EVERY + size
    found = find(text[:cut])
    assert found == length
    assert first_only([text[:cut]], found) == f"{before}#{pattern}"


@pytest.mark.parametrize(
    ("length", "times", "cut"),
    [(29, 10, False), (30, 5, True), (30, 4, False), (500, 5, True), (500, 4, False), (501, 5, False)],
)
def test_figures_at_below_and_above(length: int, times: int, cut: bool) -> None:
    text = prose(6_000) + "#" + prose(length, 3) * times
    assert (find(text[-WINDOW:]) is not None) is cut


def test_a_short_pattern_is_cut_when_it_fills_the_window() -> None:
    assert find("-" * 4_999) is None
    assert find("-" * 5_000) is not None
    assert watch("no " * 2_500) is not None


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
    "same line four times": prose(1_800) + "\nBack-off restarting failed container web\n" * 4 + prose(4_000, 4),
}


@pytest.mark.parametrize("name", NORMAL)
@pytest.mark.parametrize("size", [1, 64])
def test_normal_text_is_never_cut(name: str, size: int) -> None:
    assert watch(NORMAL[name], size) is None
    assert all(find(NORMAL[name][:end][-WINDOW:]) is None for end in range(500, len(NORMAL[name]), 97))


@given(st.text(alphabet=string.ascii_letters + " \n-|0", min_size=0, max_size=9_000), st.integers(1, 3_000))
@settings(max_examples=60)
def test_what_is_cut_truly_ends_in_a_pattern_too_often(text: str, size: int) -> None:
    length = find(text)
    if length is None:
        return
    assert length in PATTERN
    pattern = text[-length:]
    assert text.endswith(pattern * TIMES)
    kept = first_only([text[i : i + size] for i in range(0, len(text), size)], length)
    assert text.startswith(kept) and len(text) - len(kept) >= (TIMES - 1) * length


@given(st.text(alphabet="ab ", min_size=30, max_size=500), st.integers(5, 40), st.text(max_size=50))
def test_every_pattern_of_the_lengths_looked_for_is_found(pattern: str, times: int, before: str) -> None:
    text = before + pattern * times
    shorter = (pattern + pattern).find(pattern, 1) < len(pattern)
    assert find(text) is not None or (shorter and len(pattern) * times < 5_000)


def test_a_megabyte_in_single_characters_is_watched_in_linear_time() -> None:
    text = prose(200_000) * 5
    watched = Repetition()
    began = time.process_time()
    assert not any(watched.add(character) is not None for character in text)
    assert time.process_time() - began < 30
