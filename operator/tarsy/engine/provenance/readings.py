"""Brings texts into forms in which trivial disguises of the same text are equal.

| form | differences that it removes |
|---|---|
| plain | case, blanks, invisible characters, compatibility forms such as full-width letters |
| folded | these, and everything that is no letter or digit: separators, punctuation, quotation marks, escapes of JSON |
| decoded | the texts that percent signs, base64 and hexadecimal digits in a text stand for, once over |

Not covered: other encodings, encryption, reversal, translation, and text that is spread over several calls.
"""

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterator
from urllib.parse import unquote

from tarsy.record.text import without_invisible

SHORTEST_CODED = 16
"""Characters of base64 or hexadecimal digits from which on they are decoded."""

SEARCHES_ONE_BY_ONE = 32
"""Searches of a text from which on its words are indexed, which takes as long as some dozens of them."""

_BLANKS = re.compile(r"\s+")
_NO_WORD = re.compile(r"[\W_]+")
_WORD = re.compile(r"(?<![\w.@-])[^\W_](?:[\w-]|[.@](?=[^\W_]))*(?<=[^\W_])(?![\w-]|[.@][^\W_])")
_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})|\\[nrt]")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{16,}={0,2}")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:0x)?((?:[0-9a-fA-F]{2}[\s:]?){8,})(?![0-9A-Za-z])")


_OF_A_BYTE = 16  # characters of compatibility forms for each byte of UTF-8 beyond one a character


def longest_reading(text: str) -> int:
    """Returns an upper bound of the characters of a text's forms."""
    if text.isascii():
        return len(text)
    return len(text) + _OF_A_BYTE * (len(text.encode(errors="replace")) - len(text))


def plain_reading(text: str) -> str:
    """Returns the plain form of a text."""
    return _BLANKS.sub(" ", _alike(text))


def folded_reading(text: str) -> str:
    """Returns the folded form of a text."""
    return _NO_WORD.sub("", _alike(_ESCAPED.sub(_unescaped, text)))


def decoded_readings(text: str) -> Iterator[str]:
    """Yields a text, and the texts that parts of it stand for."""
    yield text
    if "%" in text and (plain := unquote(text, errors="ignore")) != text:
        yield plain
    for found in _BASE64.finditer(text):
        yield from _of_base64(found[0])
    for found in _HEX.finditer(text):
        digits = re.sub(r"[\s:]", "", found[1])
        yield from _as_text(bytes.fromhex(digits))


def occurs_whole(needle: str, text: str) -> bool:
    """Returns whether a plain text occurs in another as a word of its own: no longer name, number or host has it.

    Args:
        needle: in its plain form, not empty.
        text: in its plain form.
    """
    start = text.find(needle)
    while start >= 0:
        end = start + len(needle)
        before = text[start - 1] if start else ""
        if not _joined(before, needle[0]) and not _goes_on(needle[-1], text[end : end + 2]):
            return True
        start = text.find(needle, start + 1)
    return False


class SearchedText:
    """A plain text in which whole words are looked for, again and again.

    Args:
        plain: in its plain form.
    """

    def __init__(self, plain: str) -> None:
        self._plain = plain
        self._searches = 0
        self._words: frozenset[str] = frozenset()

    def has(self, needle: str) -> bool:
        """Returns whether a plain text occurs in this one, as `occurs_whole` does.

        Args:
            needle: in its plain form, not empty.
        """
        if self._searches < SEARCHES_ONE_BY_ONE:
            self._searches += 1
            return occurs_whole(needle, self._plain)
        if not _WORD.fullmatch(needle):
            return occurs_whole(needle, self._plain)
        if not self._words:
            self._words = frozenset(_WORD.findall(self._plain))
        return needle in self._words


def _joined(before: str, first: str) -> bool:
    return first.isalnum() and before != "" and (before.isalnum() or before in "_-.@")


def _goes_on(last: str, after: str) -> bool:
    if not last.isalnum() or not after:
        return False
    return after[0].isalnum() or after[0] in "_-" or (after[0] in ".@" and after[1:].isalnum())


def _alike(text: str) -> str:
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", without_invisible(text).text).casefold()


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else " "


def _of_base64(run: str) -> Iterator[str]:
    digits = run.rstrip("=").translate(str.maketrans("-_", "+/"))
    if len(digits) % 4 == 1:
        digits = digits[:-1]
    try:
        yield from _as_text(base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True))
    except binascii.Error:
        return


def _as_text(decoded: bytes) -> Iterator[str]:
    """Yields bytes as a text, if most of them are one."""
    text = decoded.decode(errors="ignore")
    seen = sum(char.isprintable() or char.isspace() for char in text)
    if text and len(text.encode()) >= 0.9 * len(decoded) and seen >= 0.9 * len(text):
        yield text
