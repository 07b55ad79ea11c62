"""Reads JSON as models write it: single quotes, bare keys and words, trailing commas, comments.

Only what is closed is read: a text that ends early was cut by the token limit, and half a command must not be sent.
The reader goes once through the text and never deeper than a fixed level.
"""

import re
from typing import Any

_DEEPEST = 64
_LONGEST = 256 * 1024
_SPACE = re.compile(r"(?:\s|//[^\n]*)*+")
_QUOTES = {'"': '"', "'": "'", "“": "”", "‘": "’", "`": "`"}
_STRING = {opening: re.compile(rf"(?:[^\\{re.escape(closing)}]|\\.)*+", re.S) for opening, closing in _QUOTES.items()}
_BARE = re.compile(r"[^\s,\[\]{}\"'`“”‘’:]++(?:[ \t]++[^\s,\[\]{}\"'`“”‘’:]++)*+")
_KEY = re.compile(r"[A-Za-z_$][\w.$/-]*")
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.S)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "\n": ""}


class NotRelaxed(ValueError):
    """The text is not even nearly JSON."""


class Bare(str):
    """Text that had no quotes: its type is still open."""

    __slots__ = ()


def read_relaxed(text: str, position: int = 0) -> tuple[Any, int]:
    """Reads one object or list at `position`; unquoted scalars are `Bare`.

    Returns:
        The value and the position after it.

    Raises:
        NotRelaxed: there is none, or the text is too long to look.
    """
    if len(text) - position > _LONGEST:
        raise NotRelaxed("too long")
    if not text.startswith(("{", "["), position):
        raise NotRelaxed("neither an object nor a list")
    return _value(text, position, 0)


def _value(text: str, position: int, depth: int) -> tuple[Any, int]:
    if depth > _DEEPEST:
        raise NotRelaxed("too deep")
    letter = text[position : position + 1]
    if letter == "{":
        return _object(text, position + 1, depth)
    if letter == "[":
        return _list(text, position + 1, depth)
    if letter in _QUOTES and letter:
        return _string(text, position)
    if found := _BARE.match(text, position):
        return Bare(found[0]), found.end()
    raise NotRelaxed("no value")


def _string(text: str, position: int) -> tuple[str, int]:
    quote = text[position]
    found = _STRING[quote].match(text, position + 1)
    if found is None or not text.startswith(_QUOTES[quote], found.end()):
        raise NotRelaxed("a string without an end")
    return _ESCAPE.sub(_unescape, found[0]), found.end() + 1


def _unescape(found: re.Match[str]) -> str:
    code = found[1]
    return chr(int(code[1:], 16)) if len(code) == 5 else _ESCAPES.get(code, code)


def _skip(text: str, position: int) -> int:
    found = _SPACE.match(text, position)
    return found.end() if found else position


def _object(text: str, position: int, depth: int) -> tuple[dict[str, Any], int]:
    made: dict[str, Any] = {}
    while True:
        position = _skip(text, position)
        if position >= len(text):
            raise NotRelaxed("no end")
        if text[position] == "}":
            return made, position + 1
        key, position = _key(text, position)
        position = _skip(text, position)
        if not text.startswith((":", "="), position):
            raise NotRelaxed("a key without a value")
        made[str(key)], position = _value(text, _skip(text, position + 1), depth + 1)
        position = _separator(text, position, "}")


def _key(text: str, position: int) -> tuple[str, int]:
    if text[position] in _QUOTES:
        return _string(text, position)
    if found := _KEY.match(text, position):
        return found[0], found.end()
    raise NotRelaxed("no key")


def _list(text: str, position: int, depth: int) -> tuple[list[Any], int]:
    made: list[Any] = []
    while True:
        position = _skip(text, position)
        if position >= len(text):
            raise NotRelaxed("no end")
        if text[position] == "]":
            return made, position + 1
        value, position = _value(text, position, depth + 1)
        made.append(value)
        position = _separator(text, position, "]")


def _separator(text: str, position: int, closer: str) -> int:
    """Past a comma, if there is one; only a comma, the closer or a new line may follow a value."""
    after = _skip(text, position)
    if text.startswith(",", after):
        return after + 1
    if text.startswith(closer, after) or "\n" in text[position:after]:
        return after
    raise NotRelaxed("no comma between two values")
