"""Reads pairs, `key: value, other=value`: the arguments of models that do not write JSON.

A comma or a new line ends a value only when another key follows. What counts as one is the schema's to say: an
unknown word with the separator that its neighbours have (`labelSelector: app=nginx,env=prod`) is part of the value.
"""

import re
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from tarsy.mcp.arguments import relaxed
from tarsy.mcp.arguments.plain_names import plain_name
from tarsy.mcp.arguments.relaxed import Bare, NotRelaxed
from tarsy.mcp.arguments.shape import Shape

_PAIR = re.compile(
    r"[ \t]*(?:[-*•][ \t]+)?(?P<q>[\"'`]?)(?P<key>[A-Za-z_][\w.-]*+)(?P=q)[ \t]*+(?P<sep>[:=])(?!//)[ \t]*+"
)
_MOST = 2000
"""Parts looked at: what follows them belongs to the last value."""
_END = re.compile(r"[,\n]|$")
_DONE = re.compile(r"[ \t]*+(?=[,\n]|$)")


@dataclass(slots=True)
class _Pair:
    """One pair: its bare value is the text from `start` to `end`, `separators` what stands in it."""

    key: str
    separator: str
    start: int
    end: int
    value: Any = None
    separators: set[str] = field(default_factory=set)


def read_pairs(text: str, shape: Shape) -> dict[str, Any] | None:
    """Reads pairs, bare values as `Bare`; None when the text does not begin with one."""
    return _Reader(text.rstrip(), shape).read()


class _Reader:
    def __init__(self, text: str, shape: Shape) -> None:
        self._text = text
        self._known = {plain_name(name): name for name in shape.properties}
        self._pairs: list[_Pair] = []
        self._nested = True  # until one collection could not be read: looking again and again would take long
        self._last = {quote: text.rfind(quote) for quote in "\"'"}

    def read(self) -> dict[str, Any] | None:
        position, before = 0, ""
        for part in count():
            if part == _MOST and self._pairs and self._pairs[-1].value is None:
                self._pairs[-1].end = len(self._text)
                break
            found = _PAIR.match(self._text, position)
            if found and self._begins(found, before):
                position = self._take(found)
            else:
                end = self._end(position)
                if self._pairs:
                    if not self._append(position, end, before):
                        break
                elif self._text[position:end].strip():
                    return None
                position = end
            if position >= len(self._text):
                break
            before = self._text[position]
            position += 1
        return {self._known.get(plain_name(pair.key), pair.key): self._content(pair) for pair in self._pairs} or None

    def _content(self, pair: _Pair) -> Any:
        return Bare(self._text[pair.start : pair.end].rstrip(", \t\n")) if pair.value is None else pair.value

    def _begins(self, found: re.Match[str], before: str) -> bool:
        """Whether this is the next pair rather than more of the last one's value."""
        if not self._pairs:
            return True
        last, separator = self._pairs[-1], found["sep"]
        known, spaced = plain_name(found["key"]) in self._known, found[0][0].isspace()
        if before == "\n":
            return known or not self._known or separator == last.separator
        if separator not in last.separators:
            return True
        return (known and separator == last.separator) or (spaced and (known or not self._known))

    def _take(self, found: re.Match[str]) -> int:
        pair = _Pair(found["key"], found["sep"], found.end(), found.end())
        self._pairs.append(pair)
        pair.value, pair.end = self._quoted(pair.start) or self._collection(pair.start) or (None, pair.start)
        if pair.value is None:
            pair.end = self._end(pair.start)
            self._note(pair, pair.start)
        return pair.end

    def _append(self, position: int, end: int, before: str) -> bool:
        """Adds a part to the last value; False where prose begins after the arguments."""
        pair, part = self._pairs[-1], self._text[position:end]
        if pair.value is not None:
            return not part.strip()
        after_blank = before == "\n" and self._text.startswith("\n", position - 2)
        if after_blank and part.strip() and len(self._text[pair.start : pair.end][:200].split()) == 1:
            return False
        pair.end = end
        self._note(pair, position)
        return True

    def _note(self, pair: _Pair, position: int) -> None:
        pair.separators |= {separator for separator in ":=" if self._text.find(separator, position, pair.end) >= 0}

    def _quoted(self, position: int) -> tuple[Any, int] | None:
        quote = self._text[position : position + 1]
        if not quote or position >= self._last.get(quote, -1):
            return None
        end = self._text.find(quote, position + 1)
        done = _DONE.match(self._text, end + 1)
        return (self._text[position + 1 : end], done.end()) if done and self._text[end - 1] != "\\" else None

    def _collection(self, position: int) -> tuple[Any, int] | None:
        if not self._nested or not self._text.startswith(("{", "["), position):
            return None
        try:
            value, end = relaxed.read_relaxed(self._text, position)
        except NotRelaxed:
            self._nested = False
            return None
        done = _DONE.match(self._text, end)
        return (value, done.end()) if done else None

    def _end(self, position: int) -> int:
        found = _END.search(self._text, position)
        return found.start() if found else len(self._text)
