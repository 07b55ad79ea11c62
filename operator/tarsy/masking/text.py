"""Between str and UTF-8, exactly: a lone surrogate, which UTF-8 has not, stands in as a private-use character.

The stand-ins are a block of private-use characters that the text does not use, so that patterns see one character
where the text has one and nothing is lost on the way back.
"""

import re
from collections.abc import Mapping

_LONE = re.compile("[\ud800-\udfff]")
_BLOCK = 0x800
_BLOCKS = range(0xF0000, 0x10F800, _BLOCK)


def encode_utf8(text: str) -> tuple[bytes, Mapping[int, int]]:
    """The text as UTF-8, and which of its characters stand for lone surrogates (seldom any)."""
    try:
        return text.encode(), {}
    except UnicodeEncodeError:
        used = {ord(character) // _BLOCK for character in set(text)}
        block = next((block for block in _BLOCKS if block // _BLOCK not in used), None)
        if block is None:  # somebody's joke: they all are in use
            return _LONE.sub("�", text).encode(), {}
        there = {0xD800 + offset: block + offset for offset in range(_BLOCK)}
        return text.translate(there).encode(), {stand_in: lone for lone, stand_in in there.items()}


def decode_utf8(text: bytes, stand_ins: Mapping[int, int]) -> str:
    """The text again."""
    decoded = text.decode()
    return decoded.translate(stand_ins) if stand_ins else decoded
