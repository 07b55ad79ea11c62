"""Patterns of users: compiled and checked, and run within an allowance of time.

RE2 is linear for one search; a pattern that looks far ahead at every match is not linear for all of them. So all
patterns of a text share an allowance of processor time (not of the clock: a busy machine is no slow pattern).
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tarsy.masking.engine import Regex, compile_custom
from tarsy.masking.errors import InvalidPattern

_REFERENCE = re.compile(r"\\(?:g<(\w+)>|(\d)|(\\))|\\")
_TAG = re.compile(rb"\[MASKED_[A-Z0-9_]+\]")
_SECONDS = 0.5  # of the processor, for all custom patterns of a text: short texts are masked in the event loop
_SECONDS_PER_BYTE = 2e-6


@dataclass(frozen=True, slots=True)
class CustomPattern:
    """A pattern of a user.

    Args:
        name: Its name, for errors.
        pattern: RE2 syntax; what it matches is replaced.
        replacement: What stands in its place; `\\1` and `\\g<name>` are groups of the pattern, `\\\\` is a backslash.
    """

    name: str
    pattern: str
    replacement: str


@dataclass(frozen=True, slots=True)
class Custom:
    """A pattern of a user, ready to run: literal parts of its replacement, and numbers of groups."""

    name: str
    regex: Regex
    replacement: tuple[bytes | int, ...]


def compiled(pattern: CustomPattern) -> Custom:
    """A pattern of a user, checked.

    Raises:
        InvalidPattern: It cannot be used; the sentence says why and what to write.
    """
    try:
        pattern.replacement.encode()
    except UnicodeEncodeError:
        raise InvalidPattern(
            pattern.name, f"custom pattern {pattern.name!r}: its replacement contains half of a surrogate pair"
        ) from None
    parts: list[bytes | int | str] = []
    done = 0
    for found in _REFERENCE.finditer(pattern.replacement):
        parts.append(pattern.replacement[done : found.start()].encode())
        done = found.end()
        named, numbered, backslash = found.groups()
        if backslash:
            parts.append(b"\\")
        elif numbered:
            parts.append(int(numbered))
        elif named:
            parts.append(int(named) if named.isdigit() else named)
        else:
            raise InvalidPattern(
                pattern.name,
                f"custom pattern {pattern.name!r}: its replacement has a lone backslash: write \\\\ for a backslash, "
                "\\1 or \\g<name> for a group",
            )
    parts.append(pattern.replacement[done:].encode())
    regex = compile_custom(pattern.name, pattern.pattern, capture=any(not isinstance(part, bytes) for part in parts))
    return Custom(pattern.name, regex, tuple(_group(pattern, regex, part) for part in parts))


def _group(pattern: CustomPattern, regex: Regex, part: bytes | int | str) -> bytes | int:
    if isinstance(part, str):
        if part in regex.names:
            return regex.names[part]
    elif isinstance(part, bytes) or part <= regex.groups:
        return part
    raise InvalidPattern(
        pattern.name, f"custom pattern {pattern.name!r}: its replacement uses group {part!r}, which it does not have"
    )


def by_customs(customs: Sequence[Custom], text: bytes) -> tuple[bytes, list[str]]:
    """The text without what the custom patterns find, and the names of those that took too long.

    All have one allowance of processor time, each its share and what those before it left of theirs: a slow one
    stops no other, and 32 slow ones take no longer than one.
    """
    slow: list[str] = []
    begun = time.thread_time()
    allowance = _SECONDS + len(text) * _SECONDS_PER_BYTE
    for index, custom in enumerate(customs, 1):
        applied = _applied(custom, text, begun + allowance * index / len(customs))
        if applied is None:
            slow.append(custom.name)
        else:
            text = applied
    return text, slow


def _applied(custom: Custom, text: bytes, stop: float) -> bytes | None:
    """The text with what a custom pattern finds replaced; None where it is not done at `stop` (processor time)."""
    pieces: list[bytes] = []
    done = 0
    tags = [found.span() for found in _TAG.finditer(text)] if b"[MASKED_" in text else []
    tag = 0
    for found in custom.regex.spans(text):
        start, end = found[0]
        if time.thread_time() > stop:
            return None
        while tag < len(tags) and tags[tag][1] <= start:
            tag += 1
        if tag < len(tags) and tags[tag][0] <= start and end <= tags[tag][1]:
            continue
        pieces.append(text[done:start])
        pieces += (part if isinstance(part, bytes) else text[slice(*found[part])] for part in custom.replacement)
        done = end
    return b"".join((*pieces, text[done:])) if pieces else text
