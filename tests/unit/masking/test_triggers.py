"""Tests which lines are read together, around those in which a rule may match."""

import pytest

from tarsy.masking.triggers import Triggers

LINE = b"password\n"
PATTERNS = [(b"password", False), (b"[0-9]{20}", True)]


def pieces(text: bytes) -> list[bytes]:
    return [text[start:end] for start, end, _ in Triggers(PATTERNS).pieces(text)]


@pytest.mark.parametrize(
    ("between", "together"),
    [
        pytest.param(63, True, id="below the limit"),
        pytest.param(64, True, id="at the limit"),
        pytest.param(65, False, id="above the limit"),
    ],
)
def test_lines_that_are_near_each_other_are_read_with_what_is_between(between: int, together: bool) -> None:
    far = b"-" * 199 + b"\n"
    gap = b"-" * (between - 1) + b"\n"
    expected = [LINE, gap + LINE] if together else [LINE, LINE]
    assert pieces(far + LINE + gap + LINE + far) == expected


def test_many_lines_with_a_line_between_are_few_pieces_that_hold_them_all() -> None:
    text = (LINE + b"  value: x\n") * 1000
    found = pieces(text)
    assert len(found) < 20
    assert sum(piece.count(LINE) for piece in found) == 1000


def test_text_without_a_trigger_has_no_piece() -> None:
    assert pieces(b"-" * 10 + b"\n") == []
