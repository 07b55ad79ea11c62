"""Tests that colours and other sequences of a terminal hide no secret, and that readers get none of them."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.masking.masker import default_masker
from tarsy.masking.streaming_masker import StreamingMasker
from tarsy.masking.terminal import without_sequences

SECRET = "hunter22supersecret"
CSI = {
    "raw": "\x1b[",
    "twice": "\x1b\x1b[",
    "one character": "\x9b",
    "JSON": "\\u001b[",
    "JSON in JSON": "\\\\u001B[",
    "Go": "\\x1b[",
    "shell": "\\033[",
    "bash": "\\e[",
    "cat -v": "^[[",
}


@pytest.mark.parametrize("start", CSI.values(), ids=CSI.keys())
@pytest.mark.parametrize(
    "line",
    [
        "<36mpassword<0m=" + SECRET,
        "level=info <36mpassword<0m=<32m" + SECRET + "<0m ok",
        "<34mpass<1;38:5:3mword<39m: <32m" + SECRET + "<39m",
        "password=hunter22<Ksupersecret",
    ],
)
def test_coloured_keys_and_values_are_masked(line: str, start: str) -> None:
    masked = default_masker().mask(line.replace("<", start))
    assert "hunter22" not in masked and "supersecret" not in masked
    assert masked == default_masker().mask(without_sequences(line.replace("<", start)))


def test_coloured_json_is_masked_and_stays_json() -> None:
    text = json.dumps({"log": f'\x1b[34;1m"password"\x1b[0m: \x1b[32m"{SECRET}"\x1b[0m', "path": "C:\\\\new", "n": 1})
    masked = json.loads(default_masker().mask(text))
    assert SECRET not in masked["log"] and masked["path"] == "C:\\\\new"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("\x1b[31mERROR\x1b[0m it broke", "ERROR it broke"),
        ("\x1b]0;a title\x07done", "done"),
        ("\x1b]8;;https://example.com\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1$r0m\x1b\\after", "after"),
        ("\x1b(B\x1b7\x1b=text", "text"),
        ("\x1b[2J\x1b[1;1Htop\x1b[?25l", "top"),
        (
            "see [31m] and a[0m and C:\\entry[1] and \\e[a-z] and x[3m",
            "see [31m] and a[0m and C:\\entry[1] and \\e[a-z] and x[3m",
        ),
        ("\x1b]never ended\nnext line", "\x1b]never ended\nnext line"),
        ("\x1b[\nnext", "\x1b[\nnext"),
        ("", ""),
    ],
)
def test_what_remains_is_what_a_terminal_shows(text: str, read: str) -> None:
    assert without_sequences(text) == read


@given(st.text(st.sampled_from("\x1b\x9b[]0;mKaA\\\x07\nPu1be^ "), max_size=60))
def test_lines_lose_the_same_alone_and_together(text: str) -> None:
    assert without_sequences(text) == "\n".join(map(without_sequences, text.split("\n")))


@given(st.text(st.sampled_from("\x1b[0;mK\\u1b =password\n"), max_size=80), st.integers(1, 7))
def test_what_is_shown_while_it_streams_is_the_beginning_of_the_masked_whole(text: str, size: int) -> None:
    masker = default_masker()
    streaming = StreamingMasker(masker)
    shown = "".join(streaming.add(text[start : start + size]) for start in range(0, len(text), size))
    assert masker.mask(text).startswith(shown)


@pytest.mark.parametrize(
    "part",
    ["\x1b", "\x1b[", "\x1b[0", "\x1b]", "\x9b", "\\", "\\u001b[", "\\u001b[0;", "^[[", "^[", "\x1b[31m", "\x1b "],
)
def test_no_repeated_part_is_read_again_and_again(part: str) -> None:
    """A quadratic pattern needs minutes for this, so the time limit of the test tells; nothing else is timed."""
    text = part * (2_000_000 // len(part))
    assert len(without_sequences(text)) <= len(text)
