"""Decodes lines that hide a secret from patterns but not from readers, and maps matches back to the original.

It decodes percent-encoding, JSON escapes (`\\u0022`), HTML and XML entities, invisible characters, and full-width and
other compatibility characters. Rules search the decoded line; matches are replaced in the original line, including the
hidden characters in them.
"""

import html
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache

from tarsy.masking.engine import Regex, Span

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
TRIGGER = (
    rb"%(?:3[AaDd]|2[257]|40|7[Bb]|[C-Fc-f][0-9A-Fa-f]%)|\\[ux](?:00)?[2-7][0-9A-Fa-f]|&(?:quot|apos|equals|colon|#)|"
    + _ODD
)
"""Pattern of texts that contain such a line (RE2 syntax)."""

_FORM = (
    rb"((?:%[0-9A-Fa-f]{2})+)|\\+(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))|(&(?:[a-z]{2,6}|#[0-9]{1,6}|#[xX][0-9A-Fa-f]{1,5});)|("
    + _ODD
    + rb")"
)
_ROUNDS = 3


class Plain:
    """A decoded line.

    Args:
        text: The decoded text.
        starts: Start of each piece of the text, ascending.
        origins: Start of the piece in the original, and whether it is identical there.
        ends: End of the piece in the original.
    """

    def __init__(self, text: bytes, starts: list[int], origins: list[tuple[int, bool]], ends: list[int]) -> None:
        self.text = text
        self._starts, self._origins, self._ends = starts, origins, ends

    def origin(self, span: Span) -> Span:
        """Returns the span of the original that a span of the text was decoded from."""
        start, end = span
        first, last = self._piece(start), self._piece(end - 1)
        begin, alike = self._origins[first]
        left = begin + start - self._starts[first] if alike else begin
        begin, alike = self._origins[last]
        return left, begin + end - self._starts[last] if alike else self._ends[last]

    def _piece(self, position: int) -> int:
        return bisect_right(self._starts, position) - 1


class Disguise:
    """Finds and decodes disguised lines."""

    def __init__(self) -> None:
        self._line = Regex(TRIGGER, capture=False)
        self._form = Regex(_FORM)

    def worn(self, line: bytes) -> bool:
        """Returns whether a line may be disguised."""
        return self._line.search(line) is not None

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
        text, starts, origins, ends = bytearray(), [0], [(0, True)], [0]
        done = 0
        for found in self._form.spans(lines):
            start, end = found[0]
            meaning = _meaning(lines, found)
            if meaning == lines[start:end]:
                continue
            if start > done:
                starts.append(len(text))
                origins.append((done, True))
                ends.append(start)
                text += lines[done:start]
            done = end
            if found[1][0] >= 0:  # each of its own, so that spans may begin and end between them
                for index, byte in enumerate(meaning):
                    starts.append(len(text))
                    origins.append((start + 3 * index, False))
                    ends.append(start + 3 * index + 3)
                    text.append(byte)
            elif meaning:
                starts.append(len(text))
                origins.append((start, False))
                ends.append(end)
                text += meaning
        if not done:
            return None
        starts.append(len(text))
        origins.append((done, True))
        ends.append(len(lines))
        return Plain(bytes(text + lines[done:]), starts, origins, ends)


def _meaning(lines: bytes, found: Sequence[Span]) -> bytes:
    encoded, four, two, entity, odd = (lines[start:end] if start >= 0 else b"" for start, end in found[1:])
    if odd:
        return _seen(odd)
    if encoded:
        return bytes.fromhex(encoded.replace(b"%", b"").decode())
    if four or two:
        return chr(int(four or two, 16)).encode("utf-8", "replace")
    return html.unescape(entity.decode()).encode("utf-8", "replace")


@lru_cache(4096)
def _seen(odd: bytes) -> bytes:
    """Converts an odd character: to nothing if it is invisible, to ASCII if it looks like ASCII."""
    character = odd.decode("utf-8", "replace")
    if unicodedata.category(character) in ("Cf", "Mn", "Me") or character in "\u115f\u1160\u3164\uffa0":
        return b""
    meant = unicodedata.normalize("NFKC", character)
    return meant.encode() if meant.isascii() else odd
