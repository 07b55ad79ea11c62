"""Compiles, validates and applies custom patterns, within a limit of CPU time.

RE2 is linear for one search, but not for all searches of a pattern that scans far ahead at every match. So all custom
patterns of a text share a limit of CPU time (not of wall-clock time: a busy machine does not make a pattern slow).
"""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass

from tarsy.masking.engine import Regex, compile_custom
from tarsy.masking.errors import InvalidPattern

_REFERENCE = re.compile(r"\\(?:g<(\w+)>|(\d)|(\\))|\\")
_TAG = re.compile(rb"\[MASKED_[A-Z0-9_]+\]")
_SECONDS = 0.5  # CPU time for all custom patterns of a text: short texts are masked in the event loop
_SECONDS_PER_BYTE = 2e-6


@dataclass(frozen=True, slots=True)
class CustomPattern:
    """A custom pattern, as configured.

    Args:
        name: Name, for errors.
        pattern: RE2 syntax; matches are replaced.
        replacement: Replacement; `\\1` and `\\g<name>` are groups of the pattern, `\\\\` is a backslash.
    """

    name: str
    pattern: str
    replacement: str


@dataclass(frozen=True, slots=True)
class Custom:
    """A compiled custom pattern; the replacement consists of literals and numbers of groups."""

    name: str
    regex: Regex
    replacement: tuple[bytes | int, ...]


def compiled(pattern: CustomPattern) -> Custom:
    """Compiles and validates a custom pattern.

    Raises:
        InvalidPattern: The pattern is invalid; the sentence contains the remedy.
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
    """Applies custom patterns; returns the text, and the names of the patterns that exceeded their time.

    The patterns share one limit of CPU time: each gets an equal share, plus the unused time of earlier ones. So a slow
    pattern stops no other, and 32 slow patterns take no longer than one.
    """
    slow: list[str] = []
    if not customs:
        return text, slow
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
    """Replaces the matches of a custom pattern; returns None if it is not done at `stop` (CPU time)."""
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
