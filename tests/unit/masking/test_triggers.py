"""Tests which lines are read together, around those in which a rule may match."""

import random
from types import SimpleNamespace

import pytest

from tarsy.masking import catalogue
from tarsy.masking.engine import FirstLook, Prefilter
from tarsy.masking.triggers import Triggers
from unit.masking.corpus import secrets, survivors

LINE = b"password\n"
PATTERNS = [(b"password", False), (b"[0-9]{20}", True)]


def pieces(text: bytes) -> list[bytes]:
    return [text[start:end] for start, end, _ in Triggers(PATTERNS).pieces(text)]


@pytest.mark.parametrize(
    ("first", "together"),
    [
        pytest.param(2_047, True, id="below the limit"),
        pytest.param(2_048, False, id="at the limit"),
        pytest.param(2_049, False, id="above the limit"),
    ],
)
def test_two_kilobytes_from_a_line_with_a_trigger_on_are_read_together(first: int, together: bool) -> None:
    far = b"-" * 199 + b"\n"
    read = LINE + b"-" * (first - len(LINE) - 1) + b"\n"
    assert pieces(far + read + LINE + far * 20)[0].startswith(read + LINE if together else read)
    assert (len(pieces(far + read + LINE + far * 20)) == 1) is together


def test_many_lines_with_a_line_between_are_few_pieces_that_hold_them_all() -> None:
    text = (LINE + b"  value: x\n") * 1000
    found = pieces(text)
    assert len(found) < 20
    assert sum(piece.count(LINE) for piece in found) == 1000


def test_text_without_a_trigger_has_no_piece() -> None:
    assert pieces(b"-" * 10 + b"\n") == []


@pytest.mark.parametrize(
    ("size", "whole"),
    [
        pytest.param(2_047, True, id="below the limit"),
        pytest.param(2_048, True, id="at the limit"),
        pytest.param(2_049, False, id="above the limit"),
    ],
)
def test_a_short_text_is_one_piece(size: int, whole: bool) -> None:
    text = b"-" * (size - len(LINE) - 1) + b"\n" + LINE
    assert pieces(text) == [text if whole else LINE]


def _words() -> dict[int, bytes]:
    triggers = {rule.trigger: rule.counts for pattern in catalogue.PATTERNS.values() for rule in pattern.rules}
    return {number: trigger for number, (trigger, counts) in enumerate(triggers.items()) if not counts}


def test_literals_miss_no_trigger_of_any_text() -> None:
    words = _words()
    exact, likely, drawn = FirstLook(words), Prefilter(words), random.Random(3)
    texts = [case.text for name in ("secrets.yaml", "families.yaml", "held_out.yaml") for case in secrets(name)]
    texts += [*survivors(), *survivors("ordinary.yaml"), ""]
    parts = [text[at : at + 40] for text in texts for at in (0, len(text) // 2)]
    texts += ["".join(drawn.choices(parts, k=6)) for _ in range(500)]
    texts += ["".join(chr(drawn.randrange(1, 0x250)) for _ in range(60)) for _ in range(500)]
    for text in texts:
        assert set(exact.among(text.encode())) <= set(likely.among(text.encode())), text


def test_literals_leave_out_most_triggers_of_random_text() -> None:
    likely, drawn = Prefilter(_words()), random.Random(4)
    found = [len(likely.among(bytes(drawn.choices(range(32, 127), k=600)))) for _ in range(50)]
    assert sum(found) / len(found) < 6


def test_literals_that_run_out_of_memory_leave_every_rule_to_look_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    prefilter = Prefilter({5: b"abc", 6: b"def", 7: b"[a-z0-9]"})
    assert prefilter.among(b"def") == (6, 7)
    monkeypatch.setattr(prefilter, "_filter", SimpleNamespace(Match=lambda text, potential: None))  # so RE2 reports it
    assert prefilter.among(b"def") == (5, 6, 7)
