"""Tests which lines are read together, around those in which a rule may match."""

import pytest

from tarsy.masking.triggers import Triggers

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
