"""What people see of an answer while it comes."""

import pytest

from tarsy.masking import StreamingMasker, default_masker
from tarsy.runtime.masked_stream import MaskedStream

BLOCK = '```finding\n{"summary": "full"}\n```\n'


def shown(text: str, size: int) -> tuple[str, bool]:
    words = MaskedStream(StreamingMasker(default_masker()))
    told = "".join(words.add(text[place : place + size]) for place in range(0, len(text), size))
    return told, words.stopped


@pytest.mark.parametrize("size", [1, 3, 8, 1000])
@pytest.mark.parametrize("opening", ["", "Final Answer: "])
def test_the_block_that_programs_read_is_not_shown(size: int, opening: str) -> None:
    told, stopped = shown(f"The disk is full.\n\n{opening}{BLOCK}", size)
    assert stopped
    assert told.startswith("The disk is full.\n\n")
    assert "`" not in told


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_an_answer_that_is_nothing_but_an_object_is_not_shown(size: int) -> None:
    told, stopped = shown('\n{"summary": "full", "confidence": "High"}\n', size)
    assert stopped
    assert not told.strip()


@pytest.mark.parametrize("size", [1, 5, 1000])
def test_other_blocks_are_shown(size: int) -> None:
    text = "Do this:\n```bash\nkubectl get pods\n```\nIt is our finding that it helps.\n"
    assert shown(text, size) == (text, False)


def test_secrets_are_not_shown() -> None:
    told, _ = shown("Found password: hunter22xyz in the environment.\nIt is old.\n", 4)
    assert told == "Found password: [MASKED_PASSWORD] in the environment.\nIt is old.\n"
