"""Decodes lines that hide a secret from patterns but not from readers, and maps matches back to the original.

It decodes percent-encoding, JSON escapes (`\\u0022`), HTML and XML entities, invisible characters, and full-width and
other compatibility characters. Rules search the decoded line; matches are replaced in the original line, including the
hidden characters in them.
"""

import html
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

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
_ENCODED = (
    rb"%(?:3[AaDd]|2[257]|40|7[Bb]|[C-Fc-f][0-9A-Fa-f]%)|\\[ux](?:00)?[2-7][0-9A-Fa-f]|&(?:quot|apos|equals|colon|#)"
)
TRIGGER = _ENCODED + rb"|" + _ODD
"""Pattern of texts that contain such a line (RE2 syntax)."""

_FORM = (
    rb"((?:%[0-9A-Fa-f]{2})+)|\\+(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2}))"
    rb"|(&(?:[a-z]{2,6}|#[0-9]{1,6}|#[xX][0-9A-Fa-f]{1,5});)"
)
_ROUNDS = 3
_MOST_CHARACTERS = 65_536
"""Characters whose meaning is remembered."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """Tells where the pieces of a decoded text come from.

    Args:
        starts: Start of each piece of the text, ascending.
        origins: Start of the piece in the original, and whether it is identical there.
        ends: End of the piece in the original.
    """

    starts: list[int]
    origins: list[tuple[int, bool]]
    ends: list[int]

    def origin(self, span: Span) -> Span:
        """Returns the span of the original that a span of the text was decoded from."""
        start, end = span
        first, last = bisect_right(self.starts, start) - 1, bisect_right(self.starts, end - 1) - 1
        begin, alike = self.origins[first]
        left = begin + start - self.starts[first] if alike else begin
        begin, alike = self.origins[last]
        return left, begin + end - self.starts[last] if alike else self.ends[last]


@dataclass(frozen=True, slots=True)
class Plain:
    """Decoded lines.

    Args:
        text: The decoded text.
        origin: Returns the span of the original that a span of the text was decoded from.
    """

    text: bytes
    origin: Callable[[Span], Span]


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


class Disguise:
    """Finds and decodes disguised lines."""

    def __init__(self) -> None:
        self._encoded = Regex(_ENCODED, capture=False)
        self._odd = Regex(_ODD, capture=False)
        self._form = Regex(_FORM)
        self._meanings = _Meanings(self._odd)

    def worn(self, lines: Sequence[bytes]) -> list[bool]:
        """Returns for each of some lines whether it may be disguised; the lines end with their breaks."""
        text = b"".join(lines)
        shown = self._shown(text).splitlines(keepends=True)
        if len(shown) != len(lines):  # a character between two breaks, or all of the last line, is not seen
            shown = [self._shown(line) for line in lines]
        odd = list(map(bytes.__ne__, lines, shown))
        if self._encoded.search(text) is None:
            return odd
        return [there or self._encoded.search(line) is not None for there, line in zip(odd, lines, strict=True)]

    def _shown(self, text: bytes) -> bytes:
        """Replaces odd characters by their meanings."""
        if text.isascii():
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
        text, pieces = _taken(shown, _meanings(shown, self._form.spans(shown)))
        decoded = len(pieces.starts) > 1
        if shown == lines:
            return Plain(text, pieces.origin) if decoded else None

        @cache
        def characters() -> Pieces:
            """Finds the odd characters, of which only matches have to be located."""
            found = ((start, end, _seen(lines[start:end])) for (start, end), *_ in self._odd.spans(lines))
            return _taken(lines, found)[1]

        if not decoded:
            return Plain(shown, lambda span: characters().origin(span))
        return Plain(text, lambda span: characters().origin(pieces.origin(span)))


def _taken(lines: bytes, found: Iterable[tuple[int, int, bytes]]) -> tuple[bytes, Pieces]:
    """Replaces parts of a text by their meanings.

    Args:
        lines: The text.
        found: Start, end and meaning of each part, ascending.
    """
    text, starts, origins, ends = bytearray(), [0], [(0, True)], [0]
    done = 0
    for start, end, meaning in found:
        if meaning == lines[start:end]:
            continue
        if start > done:
            starts.append(len(text))
            origins.append((done, True))
            ends.append(start)
            text += lines[done:start]
        done = end
        if meaning:
            starts.append(len(text))
            origins.append((start, False))
            ends.append(end)
            text += meaning
    if done:
        starts.append(len(text))
        origins.append((done, True))
        ends.append(len(lines))
    return bytes(text + lines[done:]), Pieces(starts, origins, ends)


def _meanings(lines: bytes, found: Iterable[Sequence[Span]]) -> Iterator[tuple[int, int, bytes]]:
    """Yields start, end and meaning of each encoded part."""
    for (start, end), encoded, four, two, entity in found:
        if encoded[0] >= 0:  # each byte of its own, so that spans may begin and end between them
            for index, byte in enumerate(bytes.fromhex(lines[start:end].replace(b"%", b"").decode())):
                yield start + 3 * index, start + 3 * index + 3, bytes((byte,))
        elif entity[0] >= 0:
            yield start, end, html.unescape(lines[start:end].decode()).encode("utf-8", "replace")
        else:
            digits = lines[slice(*(four if four[0] >= 0 else two))]
            yield start, end, chr(int(digits, 16)).encode("utf-8", "replace")


@lru_cache(4096)
def _seen(odd: bytes) -> bytes:
    """Converts an odd character: to nothing if it is invisible, to ASCII if it looks like ASCII."""
    character = odd.decode("utf-8", "replace")
    if unicodedata.category(character) in ("Cf", "Mn", "Me") or character in "\u115f\u1160\u3164\uffa0":
        return b""
    meant = unicodedata.normalize("NFKC", character)
    return meant.encode() if meant.isascii() else odd
