"""Converts between str and UTF-8 without loss: private-use characters replace lone surrogates, which UTF-8 lacks.

The replacements are a block of private-use characters that the text does not contain, so patterns see one character for
each surrogate, and decoding restores it.
"""

import re
from collections.abc import Mapping

_LONE = re.compile("[\ud800-\udfff]")
_BLOCK = 0x800
_BLOCKS = range(0xF0000, 0x10F800, _BLOCK)


def encode_utf8(text: str) -> tuple[bytes, Mapping[int, int]]:
    """Encodes a text; returns the bytes, and the surrogates by their replacements (usually none)."""
    try:
        return text.encode(), {}
    except UnicodeEncodeError:
        used = {ord(character) // _BLOCK for character in set(text)}
        block = next((block for block in _BLOCKS if block // _BLOCK not in used), None)
        if block is None:  # a hostile text contains all of them
            return _LONE.sub("�", text).encode(), {}
        there = {0xD800 + offset: block + offset for offset in range(_BLOCK)}
        return text.translate(there).encode(), {stand_in: lone for lone, stand_in in there.items()}


def decode_utf8(text: bytes, stand_ins: Mapping[int, int]) -> str:
    """Decodes a text, and restores its surrogates."""
    decoded = text.decode()
    return decoded.translate(stand_ins) if stand_ins else decoded
