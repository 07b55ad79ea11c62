"""Masks Secrets in JSON anywhere: documents, arrays, log lines, prose, strings of other documents.

Only keys are searched; the text between two keys is reduced to its braces, by operations that run in C. The state is
known at every key (outside of strings), so text before the JSON cannot confuse it. YAML flow mappings and single quotes
are supported too.
"""

import re
from collections.abc import Iterator

from tarsy.masking.engine import Regex
from tarsy.masking.yaml_context import SECRET, SECRET_LIST, TAG, Frames

# Possessive, so linear; the standard library's engine because its sub() costs a tenth per match of RE2's wrapper.
_STRINGS = re.compile(rb'"(?:[^"\\\n]|\\.)*+"')
_PAIR = re.compile(
    rb"""((?:"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|[\w.-]++)\s*+:\s*+)"""
    rb"""(?:"((?:[^"\\]|\\.)*+)("?)|'([^'\n]*+)('?)|([^\s"',{}\[\]][^,}\n]*+))""",
    re.DOTALL,
)
_NOT_BRACES = bytes(byte for byte in range(256) if byte not in b"{}")
_NOT_MARKS = bytes(byte for byte in range(256) if byte not in b'{}"\\')
_MAX_NESTING = 64
_COLON = ord(":")
_QUOTES = b"\"'"
_WORD = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
_OUTERMOST = 1 << 40  # depth of the first key: a text may begin with closing braces


class JsonSecrets:
    """Finds and masks the data of Secrets in JSON."""

    def __init__(self) -> None:
        # Literals first: RE2 finds them at memory speed. `_keys` validates the byte before.
        self._kinds = Regex(rb"""kind["']?\s*:\s*["']?Secret(?:List)?\b""", capture=False)
        self._data = tuple(Regex(word + rb"""["']?\s*:\s*\{""", capture=False) for word in (b"data", b"stringData"))
        pair = rb"""\s*(?:"(?:[^"\\\n]|\\[^\n])*"|'[^'\n]*'|[\w.-]+)\s*:\s*"""
        value = rb"""(?:"(?:[^"\\]|\\(?s:.))*(?:"|\z)|'[^'\n]*(?:'|\z)|[^\s"',{}\[\]][^,}\n]*)\s*"""
        self._flat = Regex(rb"\{(?:" + pair + value + rb",?)*", capture=False)

    def mask(self, text: bytes) -> bytes:
        """Replaces the values in the data of every Secret."""
        keys = self._keys(text)
        frames: Frames[int] = Frames()
        depth, last, begun = _OUTERMOST, 0, False
        for start, name, end in keys:
            if frames.crowded(start):
                return TAG
            if begun:
                ended, opened = _braces(text[last:start])
                depth -= ended
                frames.close(depth)
                depth += opened
            begun, last = True, start + len(name)
            if text[start] in _QUOTES:
                last += 1
            if text[last] != _COLON:  # go on after the quote, outside of strings
                last += 1
            if name == b"kind":
                frames.kind(depth, SECRET_LIST if text.endswith(SECRET_LIST, start, end) else SECRET)
            else:
                frames.data(depth, name, end - 1)
        places = frames.end()
        return self._replaced(text, places) if places else text

    def _keys(self, text: bytes) -> list[tuple[int, bytes, int]]:
        """Returns the keys of Secrets, with their data, in order: start, name, end; none without a kind."""
        keys = list(_found(self._kinds, b"kind", text))
        if keys:
            for name, regex in zip((b"data", b"stringData"), self._data, strict=True):
                keys += _found(regex, name, text)
        return sorted(keys)

    def _replaced(self, text: bytes, places: list[int]) -> bytes:
        pieces: list[bytes] = []
        done = 0
        for start in sorted(places):
            if start < done:  # inside a replaced value
                continue
            found = self._flat.at(text, start)
            end = found[0][1] if found else start
            pieces += text[done:start], _PAIR.sub(_hidden, text[start:end])
            done = end
        return b"".join((*pieces, text[done:]))


def _found(regex: Regex, name: bytes, text: bytes) -> Iterator[tuple[int, bytes, int]]:
    for found in regex.spans(text):
        start, end = found[0]
        before = text[start - 1 : start] if start else b""
        if before in (b'"', b"'") and before:
            yield start - 1, name, end
        elif not before or before not in _WORD:
            yield start, name, end


def _hidden(pair: re.Match[bytes]) -> bytes:
    key, double, _, single, _, bare = pair.groups()
    if double is not None:
        return key + b'"' + (TAG if double else b"") + b'"'
    if single is not None:
        return key + b"'" + (TAG if single else b"") + b"'"
    return key + (bare if bare.strip() in (b"null", b"~") else b'"' + TAG + b'"')


def _braces(segment: bytes) -> tuple[int, int]:
    """Returns the number of unmatched closing and opening braces in a piece of JSON."""
    marks = segment.translate(None, _NOT_MARKS)
    if b"\\" not in marks:
        marks = marks.replace(b'""', b"")  # strings without braces
    if b"\\" in marks or marks.count(b'"') % 2:
        braces = _STRINGS.sub(b"", segment).translate(None, _NOT_BRACES)
    else:  # ten times as fast
        braces = b"".join(marks.split(b'"')[::2])
    for _ in range(_MAX_NESTING):
        if b"{}" not in braces:
            break
        braces = braces.replace(b"{}", b"")
    else:
        return _counted(braces)
    closed = braces.count(b"}")
    return closed, len(braces) - closed


def _counted(braces: bytes) -> tuple[int, int]:
    lowest = level = 0
    for brace in braces:
        level += 1 if brace == 123 else -1
        lowest = min(lowest, level)
    return -lowest, level - lowest
