"""Compiles rules with their triggers, and replaces or locates their matches in a text."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tarsy.masking.engine import FirstLook, Regex, Span
from tarsy.masking.rules import Rule
from tarsy.masking.shape import dressed
from tarsy.masking.validators import Validator, whole_match

_MANY_SECRETS = 4_000
_SOME = 64  # pieces of one chunk from which on matches are counted
_BYTES_PER_SECRET = 24


@dataclass(frozen=True, slots=True)
class _Rule:
    regex: Regex
    judge: Validator
    tag: bytes


class PatternGroup:
    """Counts the matches of each rule in a text, to detect hostile texts.

    Thousands of matches, closer together than the lines of a list, are hostile: the rest of the text becomes one tag.
    """

    def __init__(self) -> None:
        self.there = False
        self._found: dict[Regex, int] = {}
        self._read = 0

    def read(self, size: int) -> None:
        """Counts the bytes of a finished piece."""
        self._read += size

    def found(self, rule: Regex, secrets: int) -> None:
        """Counts the matches of a rule in a piece."""
        self._found[rule] = self._found.get(rule, 0) + secrets

    def shown(self, rule: Regex, secrets: int, read: int) -> bool:
        """Returns whether the text is hostile.

        Args:
            rule: The rule.
            secrets: Its matches in the current piece.
            read: Bytes of the current piece so far.
        """
        secrets += self._found.get(rule, 0)
        self.there = secrets > _MANY_SECRETS and self._read + read <= secrets * _BYTES_PER_SECRET
        return self.there


class Ruleset:
    """Rules that run only if their trigger occurs."""

    def __init__(self, rules: Sequence[tuple[Rule, str]]) -> None:
        self.triggers = list(dict.fromkeys(rule.trigger for rule, _ in rules))
        self._look = FirstLook(self.triggers)
        self._behind: list[list[int]] = [[] for _ in self.triggers]
        self._rules: list[_Rule] = []
        for rule, tag in rules:
            self._behind[self.triggers.index(rule.trigger)].append(len(self._rules))
            regex = Regex(rule.regex, capture=_captures(rule.regex))
            self._rules.append(_Rule(regex, rule.judge, (rule.tag or tag).encode()))

    def spot(self, text: bytes) -> bool:
        """Returns whether a rule may match."""
        return bool(self._look.among(text))

    def mask(self, text: bytes, multiline: bool, crowd: PatternGroup, there: Sequence[int] | None = None) -> bytes:
        """Replaces the matches of the rules.

        Args:
            text: Text to mask.
            multiline: Whether it is part of a text of several lines.
            crowd: Counts matches; the masked text ends where it detects a hostile text.
            there: Indexes of occurring triggers; None: unknown.
        """
        size = len(text)
        if there is None:
            there = self._look.among(text)
        if there:
            for index in sorted([rule for trigger in there for rule in self._behind[trigger]]):
                text = _applied(self._rules[index], text, multiline, crowd)
        crowd.read(size)
        return text

    def spans(self, text: bytes) -> list[tuple[int, int, bytes]]:
        """Returns the spans of all matches with their tags: ascending, merged where they overlap."""
        found: list[tuple[int, int, bytes]] = []
        for index in sorted([rule for trigger in self._look.among(text) for rule in self._behind[trigger]]):
            rule = self._rules[index]
            for start, end in _found(rule, text):
                found.append((start, end, rule.tag))
        return apart(found)


def _captures(pattern: bytes) -> bool:
    return re.compile(rb"(?<!\\)\((?!\?)").search(pattern) is not None


def _applied(rule: _Rule, text: bytes, multiline: bool, crowd: PatternGroup) -> bytes:
    """Replaces the matches of one rule; inlines `Regex.spans`, because most time is spent here."""
    pieces: list[bytes] = []
    done = at = 0
    match, anywhere, judge, tag, stop = rule.regex.match, rule.regex.anywhere, rule.judge, rule.tag, len(text)
    groups = range(1, rule.regex.groups + 1)
    while at < stop:
        found = match(anywhere, text, at, stop)
        start, end = found[0]
        if start < 0:
            break
        at = end
        for group in groups:
            if found[group][0] >= 0:
                start, end = found[group]
                break
        if judge is not whole_match:
            part = judge(text[start:end])
            if part is None:
                continue
            start, end = start + part[0], start + part[1]
        pieces += text[done:start], dressed(text, start, end, tag, multiline)
        done = end
        if len(pieces) > _SOME and crowd.shown(rule.regex, len(pieces) // 2, end):
            return b"".join(pieces)
    if not pieces:
        return text
    crowd.found(rule.regex, len(pieces) // 2)
    return b"".join((*pieces, text[done:]))


def _found(rule: _Rule, text: bytes) -> Iterator[Span]:
    """Yields the matches of one rule; a hostile text ends in one match of the rest."""
    for number, found in enumerate(rule.regex.spans(text)):
        start, end = next((span for span in found[1:] if span[0] >= 0), found[0])
        part = rule.judge(text[start:end])
        if part is not None and part[1] > part[0]:
            yield start + part[0], start + part[1]
        if number > _MANY_SECRETS:
            yield end, len(text)
            return


def apart(found: Sequence[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    """Sorts spans, and merges overlapping ones."""
    apart: list[tuple[int, int, bytes]] = []
    for start, end, tag in sorted(found):
        if apart and start < apart[-1][1]:
            apart[-1] = apart[-1][0], max(end, apart[-1][1]), apart[-1][2]
        else:
            apart.append((start, end, tag))
    return apart


def replaced(text: bytes, found: Sequence[tuple[int, int, bytes]]) -> bytes:
    pieces: list[bytes] = []
    done = 0
    for start, end, tag in found:
        pieces += text[done:start], tag
        done = end
    return b"".join((*pieces, text[done:]))
