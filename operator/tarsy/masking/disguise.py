"""Decodes lines that hide a secret from patterns but not from readers, and maps matches back to the original.

It decodes percent-encoding, JSON escapes (`\\u0022`), HTML and XML entities, invisible characters, and full-width and
other compatibility characters. Rules search the decoded line; matches are replaced in the original line, including the
hidden characters in them.
"""

import html
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate

from tarsy.masking.engine import Found, Regex

# Of UTF-8: characters that are not seen or combine, no-break and other blanks, full-width and mathematical letters; of
# full-width punctuation only what stands between a key and its value, since the rest is in every sentence.
_ODD = (
    rb"\xc2[\xa0\xad]|\xcc[\x80-\xbf]|\xcd[\x80-\xaf]|\xd8\x9c|\xe1(?:\x85[\x9f\xa0]|\x9e[\xb4\xb5]|\xa0[\x8b-\x8f])"
    rb"|\xe1\xaa[\xb0-\xbf]|\xe1\xab[\x80-\x8e]|\xe1\xb7[\x80-\xbf]|\xe2\x80[\x80-\x8f\xa4\xa8-\xaf]"
    rb"|\xe2\x81[\x9f-\xaf]|\xe2\x83[\x90-\xb0]|\xe2\x93[\x90-\xa9\xb6-\xbf]|\xe2\x92[\xb6-\xbf]|\xe2\x93[\x80-\x8f]"
    rb"|\xe3\x80\x80|\xe3\x85\xa4|\xef\xb8[\x80-\x8f\x93\xa0-\xaf]|\xef\xb9[\x90-\xab]|\xef\xbb\xbf|\xef\xbc[\x82\x85\x87\x8b\x8d-\x9a\x9d\xa0-\xba\xbf]"
    rb"|\xef\xbf[\xb9-\xbb]|\xef\xbd[\x80-\x9e]|\xef\xbe\xa0|\xf0\x9d[\x90-\x9f][\x80-\xbf]|\xf0\x9f[\x84\x85][\x80-\xbf]"
    rb"|\xf3\xa0[\x80-\x87][\x80-\xbf]"
)
_ENCODED = (
    rb"%(?:3[AaDd]|2(?:[257]|[Dd]%2[Dd])|40|7[Bb]|[C-Fc-f][0-9A-Fa-f]%)|-%4[25]|\\[ux](?:00)?[2-7][0-9A-Fa-f]"
    rb"|&(?:quot|apos|equals|colon|#)"
)
TRIGGER = _ENCODED + rb"|" + _ODD
"""Pattern of texts that contain such a line (RE2 syntax)."""

# By the standard library's engine, which splits a text in C. Each alternative begins with a literal, which makes its
# first pass fast; a run of backslashes is read once, from its first one on.
_LINE = re.compile(_ENCODED)
_FORM = re.compile(
    rb"(%[0-9A-Fa-f]{2}|\\(?<!\\\\)\\*+(?:u[0-9A-Fa-f]{4}|x[0-9A-Fa-f]{2})"
    rb"|&(?:[a-z]{2,6}|#[0-9]{1,6}|#[xX][0-9A-Fa-f]{1,5});)"
)
_CHARACTER = re.compile(rb"(" + _ODD + rb")")
_ROUNDS = 3
_MOST_CHARACTERS = 65_536
"""Characters whose meaning is remembered."""
_LONGEST_FORM = 16
"""Longest form of an encoded character whose meaning is remembered."""


class Pieces:
    """Tells where the pieces of a decoded text come from: every second one is a part that was replaced.

    Args:
        parts: Pieces of the original.
        meanings: Pieces of the text.
    """

    def __init__(self, parts: Sequence[bytes], meanings: Sequence[bytes]) -> None:
        self._parts, self._meanings = parts, meanings
        self._starts = list(accumulate(map(len, meanings), initial=0))
        self._origins = list(accumulate(map(len, parts), initial=0))

    def origins(self, found: Iterable[Found]) -> list[Found]:
        """Returns the spans of the original that spans of the text, with their tags, were decoded from."""
        starts, origins, count = self._starts, self._origins, len(self._parts)
        moved: list[Found] = []
        for start, end, tag in found:
            first = bisect_right(starts, start, 0, count) - 1
            left = origins[first] + start - starts[first]
            if not first % 2 and end <= starts[first + 1]:  # as most: no part that was replaced
                moved.append((left, left + end - start, tag))
                continue
            last = first if end <= starts[first + 1] else bisect_right(starts, end - 1) - 1
            right = origins[last] + end - starts[last] if self._alike(last) else origins[last + 1]
            moved.append((left if self._alike(first) else origins[first], right, tag))
        return moved

    def _alike(self, index: int) -> bool:
        return not index % 2 or self._parts[index] == self._meanings[index]


@dataclass(frozen=True, slots=True)
class Plain:
    """Decoded lines.

    Args:
        text: The decoded text.
        origins: Returns the spans of the original that spans of the text, with their tags, were decoded from.
    """

    text: bytes
    origins: Callable[[Iterable[Found]], list[Found]]


class _Meanings(dict[int, int | str | None]):
    """The meanings of characters by their code points, for `str.translate`.

    Args:
        odd: Matches the characters that have another meaning than themselves.
    """

    def __init__(self, odd: Regex) -> None:
        super().__init__()
        self._odd = odd

    def __missing__(self, point: int) -> int | str | None:
        odd = chr(point).encode("utf-8", "surrogateescape")
        seen = _seen(odd).decode() if self._odd.at(odd, 0) else chr(point)
        meaning = ord(seen) if len(seen) == 1 else seen or None  # taken faster than a text
        if len(self) < _MOST_CHARACTERS:
            self[point] = meaning
        return meaning


class _Forms(dict[bytes, bytes]):
    """The meanings of encoded characters."""

    def __missing__(self, form: bytes) -> bytes:
        if form.startswith(b"%"):
            meaning = bytes.fromhex(form[1:].decode())
        elif form.startswith(b"&"):
            meaning = html.unescape(form.decode()).encode("utf-8", "replace")
        else:
            meaning = chr(int(form.lstrip(b"\\")[1:], 16)).encode("utf-8", "replace")
        if len(form) <= _LONGEST_FORM and len(self) < _MOST_CHARACTERS:
            self[form] = meaning
        return meaning


class Disguise:
    """Finds and decodes disguised lines."""

    def __init__(self) -> None:
        self._encoded = Regex(_ENCODED, capture=False)
        self._odd = Regex(_ODD, capture=False)
        self._forms = _Forms()
        self._meanings = _Meanings(self._odd)

    def worn(self, text: bytes) -> int:
        """Returns the start of the first line that may be disguised; the end of the text without one."""
        encoded = self._encoded.search(text)
        first = encoded[0][0] if encoded else len(text)
        if not text.isascii():
            odd = self._odd.search(text, 0, first)
            first = odd[0][0] if odd else first
        return text.rfind(b"\n", 0, first) + 1 if first < len(text) else first

    def disguised(self, lines: bytes, found: list[Found]) -> list[Found]:
        """Returns the spans that are in disguised lines, of those that were found in decoded ones."""
        if {form for form in _FORM.findall(lines) if not _LINE.match(form)}:  # such a form alone does not make one
            return [span for span in found if self._within_disguise(lines, *span[:2])]
        return found

    def _within_disguise(self, lines: bytes, start: int, end: int) -> bool:
        first, last = lines.rfind(b"\n", 0, start) + 1, lines.find(b"\n", end)
        line = lines[first : last if last >= 0 else None]
        return self.worn(line) < len(line)

    def _shown(self, text: bytes) -> bytes:
        """Replaces odd characters by their meanings."""
        if text.isascii() or self._odd.search(text) is None:
            return text
        return text.decode("utf-8", "surrogateescape").translate(self._meanings).encode("utf-8", "surrogateescape")

    def plain(self, lines: bytes) -> list[Plain]:
        """Decodes lines step by step, for text that was encoded several times; empty if nothing is encoded."""
        steps: list[Plain] = []
        for _ in range(_ROUNDS):
            step = self._step(lines)
            if step is None:
                break
            steps.append(step)
            lines = step.text
        return steps

    def _step(self, lines: bytes) -> Plain | None:
        """Decodes odd characters, then percent-encoding, escapes and entities; None without any."""
        shown = self._shown(lines)
        forms = b"%" in shown or b"\\" in shown or (b"&" in shown and b";" in shown)
        parts = _FORM.split(shown) if forms else [shown]
        meanings = parts.copy()
        meanings[1::2] = map(self._forms.__getitem__, parts[1::2])
        text = b"".join(meanings)
        if shown == lines:
            return Plain(text, Pieces(parts, meanings).origins) if text != shown else None

        if text == shown:
            return Plain(shown, lambda found: _characters(lines).origins(found))
        pieces = Pieces(parts, meanings)
        return Plain(text, lambda found: _characters(lines).origins(pieces.origins(found)))


def _characters(lines: bytes) -> Pieces:
    """Finds the odd characters of lines."""
    parts = _CHARACTER.split(lines)
    meanings = parts.copy()
    meanings[1::2] = map(_seen, parts[1::2])
    return Pieces(parts, meanings)


@lru_cache(4096)
def _seen(odd: bytes) -> bytes:
    """Converts an odd character: to nothing if it is invisible, to ASCII if it looks like ASCII."""
    character = odd.decode("utf-8", "replace")
    if unicodedata.category(character) in ("Cf", "Mn", "Me") or character in "\u115f\u1160\u3164\uffa0":
        return b""
    meant = unicodedata.normalize("NFKC", character)
    return meant.encode() if meant.isascii() else odd
