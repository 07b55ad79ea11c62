"""Compiles rules when their trigger first occurs, and replaces or locates their matches in a text."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain

from tarsy.masking.engine import Found, Regex
from tarsy.masking.rules import Rule
from tarsy.masking.shape import AFTER, BEFORE, dressed
from tarsy.masking.validators import Validator, whole_match

_MANY_SECRETS = 4_000
_SOME = 32  # matches in one piece that are never hostile
_BYTES_PER_SECRET = 24
_MOST_SELECTIONS = 4_096


@dataclass(frozen=True, slots=True)
class _Rule:
    number: int
    regex: Regex
    judge: Validator
    tag: bytes
    mark: bytes


class Crowd:
    """Counts the matches of each rule in a text, to detect hostile texts.

    Thousands of matches, closer together than the lines of a list, are hostile: the rest of the text becomes one tag.
    """

    def __init__(self) -> None:
        self.there = False
        self._found: dict[int, int] = {}
        self._read = 0

    def read(self, size: int) -> None:
        """Sets the number of bytes before the current piece."""
        self._read = size

    def found(self, rule: int, secrets: int) -> None:
        """Counts the matches of a rule in a piece."""
        self._found[rule] = self._found.get(rule, 0) + secrets

    def harmless(self, rule: int) -> int:
        """Returns how many matches of a rule in the current piece cannot make the text hostile."""
        return _SOME if self.there else max(_SOME, _MANY_SECRETS - self._found.get(rule, 0))

    def looked(self, rule: int, secrets: int, read: int) -> int:
        """Detects a hostile text; returns how many further matches cannot make it one.

        Args:
            rule: Number of the rule.
            secrets: Its matches in the current piece.
            read: Bytes of the current piece so far.
        """
        secrets += self._found.get(rule, 0)
        spare = self._read + read - secrets * _BYTES_PER_SECRET
        self.there = secrets > _MANY_SECRETS and spare <= 0
        return max(_MANY_SECRETS - secrets, (spare - 1) // _BYTES_PER_SECRET, 0)


class Ruleset:
    """Rules by their triggers.

    Args:
        rules: The rules, each with the tag of its pattern.
        triggers: Index of each trigger.
    """

    def __init__(self, rules: Sequence[tuple[Rule, str]], triggers: Sequence[bytes]) -> None:
        place = {trigger: index for index, trigger in enumerate(triggers)}
        self._rules = rules
        self._behind: dict[int, list[int]] = {}
        for number, (rule, _) in enumerate(rules):
            self._behind.setdefault(place[rule.trigger], []).append(number)
        self._selected: dict[tuple[int, ...], tuple[_Rule, ...]] = {}

    def due(self, there: tuple[int, ...]) -> tuple[_Rule, ...]:
        """Returns the rules of some triggers, in the order in which they run."""
        selected = self._selected.get(there)
        if selected is None:
            numbers = sorted(number for trigger in there for number in self._behind.get(trigger, ()))
            selected = tuple(self._compiled(number) for number in numbers)
            if len(self._selected) < _MOST_SELECTIONS:
                self._selected[there] = selected
        return selected

    def compile(self) -> None:
        """Compiles all rules now, instead of each when its trigger first occurs."""
        for rule in self.due(tuple(self._behind)):
            rule.regex.search(b"\n")  # RE2 compiles what it searches with at the first search

    def mask(self, text: bytes, multiline: bool, crowd: Crowd, there: tuple[int, ...]) -> bytes:
        """Replaces the matches of the rules.

        Args:
            text: Text to mask.
            multiline: Whether it is part of a text of several lines.
            crowd: Counts matches; the masked text ends where it detects a hostile text.
            there: Indexes of the triggers in the text.
        """
        done = b""
        for rule in self.due(there):
            if rule.mark and rule.mark == done:
                continue
            text, secrets = _applied(rule, text, multiline, crowd)
            if rule.mark and secrets == text.count(rule.mark):
                done = rule.mark
        return text

    def spans(self, text: bytes, there: tuple[int, ...]) -> list[Found]:
        """Returns the spans of all matches with their tags: ascending, merged where they overlap."""
        each = [found for rule in self.due(there) if (found := _found(rule, text))]
        return each[0] if len(each) == 1 else apart(list(chain(*each)))

    def _compiled(self, number: int) -> _Rule:
        rule, tag = self._rules[number]
        return _Rule(number, _regex(rule.regex), rule.judge, (rule.tag or tag).encode(), rule.mark)


@cache
def _regex(pattern: bytes) -> Regex:
    """Compiles a built-in pattern once for all maskers."""
    return Regex(pattern, capture=re.search(rb"(?<!\\)\((?!\?)", pattern) is not None)


def _applied(rule: _Rule, text: bytes, multiline: bool, crowd: Crowd) -> tuple[bytes, int]:
    """Replaces the matches of one rule, and counts them; inlines `Regex.spans`, because most time is spent here."""
    pieces: list[bytes] = []
    done = at = 0
    match, anywhere, judge, tag, stop = rule.regex.match, rule.regex.anywhere, rule.judge, rule.tag, len(text)
    groups, judged, most = rule.regex.groups, judge is not whole_match, 2 * crowd.harmless(rule.number)
    while at < stop:
        found = match(anywhere, text, at, stop)
        start, end = found[0]
        if start < 0:
            break
        at = end
        if groups:
            for group in found[1:]:
                if group[0] >= 0:
                    start, end = group
                    break
        if judged:
            part = judge(text[start:end])
            if part is None:
                continue
            start, end = start + part[0], start + part[1]
        whole = text[end : end + 1] in AFTER and text[start - 1 : start] in BEFORE
        shaped = dressed(text, start, end, tag, multiline) if whole else tag
        pieces += text[done:start], shaped
        done = end
        if len(pieces) > most:
            most = len(pieces) + 2 * crowd.looked(rule.number, len(pieces) // 2, end)
            if crowd.there:
                return b"".join(pieces), len(pieces) // 2
    if not pieces:
        return text, 0
    crowd.found(rule.number, len(pieces) // 2)
    return b"".join((*pieces, text[done:])), len(pieces) // 2


def _found(rule: _Rule, text: bytes) -> list[Found]:
    """Returns the matches of one rule, as `_applied` finds them; a hostile text ends in one match of the rest."""
    spans: list[Found] = []
    at, match, anywhere, judge, stop = 0, rule.regex.match, rule.regex.anywhere, rule.judge, len(text)
    groups = rule.regex.groups
    while at < stop:
        found = match(anywhere, text, at, stop)
        start, end = found[0]
        if start < 0:
            break
        at = end
        if groups:
            for group in found[1:]:
                if group[0] >= 0:
                    start, end = group
                    break
        part = judge(text[start:end])
        if part is not None and part[1] > part[0]:
            spans.append((start + part[0], start + part[1], rule.tag))
            if len(spans) > _MANY_SECRETS:
                spans.append((at, stop, rule.tag))
                break
    return spans


def apart(found: Sequence[Found]) -> list[Found]:
    """Sorts spans, and merges overlapping ones."""
    apart: list[Found] = []
    for start, end, tag in sorted(found):
        if apart and start < apart[-1][1]:
            apart[-1] = apart[-1][0], max(end, apart[-1][1]), apart[-1][2]
        else:
            apart.append((start, end, tag))
    return apart


def replaced(text: bytes, found: Sequence[Found]) -> bytes:
    pieces: list[bytes] = []
    done = 0
    for start, end, tag in found:
        pieces += text[done:start], tag
        done = end
    return b"".join((*pieces, text[done:]))
