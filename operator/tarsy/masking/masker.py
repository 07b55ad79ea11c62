"""Compiles patterns once, and masks any number of texts.

The order is fixed: the structural masker, patterns of groups, single patterns, custom patterns. A first pass finds the
lines in which rules may match, so clean text costs one pass. Tags of earlier passes are left unchanged. Every match
costs microseconds, so the rest of a text with thousands of secrets and little else is replaced by one tag.
"""

import re
from collections.abc import Sequence
from enum import Enum, auto
from functools import cache, lru_cache
from random import Random

from tarsy.masking.catalogue import GROUPS, PATTERNS, STRUCTURAL
from tarsy.masking.custom_patterns import Custom, CustomPattern, by_customs, compiled
from tarsy.masking.disguise import TRIGGER as DISGUISE
from tarsy.masking.disguise import Disguise
from tarsy.masking.engine import Found
from tarsy.masking.errors import InvalidPattern, MaskingFailed
from tarsy.masking.kubernetes_secret import KubernetesSecrets
from tarsy.masking.rules import Rule
from tarsy.masking.ruleset import Crowd, Ruleset, apart, replaced
from tarsy.masking.shape import mended_text
from tarsy.masking.terminal import has_sequences, without_sequences
from tarsy.masking.text import decode_utf8, encode_utf8
from tarsy.masking.triggers import Piece, Triggers
from tarsy.resources.v1alpha1.masking import DEFAULT_GROUPS, DEFAULT_PATTERNS

_SAMPLES, _SAMPLE = 16, 600  # texts that grow the automata, and the characters of each

_DATA = re.compile(rb"""\b(?:data|stringData)\\*["']?\s*:""")


class PatternReach(Enum):
    """Determines the amount of text required to find its secrets, from its beginning."""

    NONE = auto()
    """No rule may match."""
    LINE = auto()
    """Rules may match within single lines."""
    BEYOND = auto()
    """Rules may match across lines: the whole text is required."""


class _BuiltIn:
    """The rules of some built-in patterns, with what is compiled for them."""

    def __init__(self, names: tuple[str, ...]) -> None:
        rules: dict[Rule, str] = {}
        for name in names:
            for rule in PATTERNS[name].rules:
                rules.setdefault(rule, PATTERNS[name].tag)  # no rule runs after itself
        triggers = {rule.trigger: rule.counts for rule in rules}
        if triggers:
            triggers[DISGUISE] = False
        self.triggers = Triggers(list(triggers.items()))
        self.disguised = len(triggers) - 1
        self.across = Ruleset([(rule, tag) for rule, tag in rules.items() if rule.lines], list(triggers))
        self.within = Ruleset([(rule, tag) for rule, tag in rules.items() if not rule.lines], list(triggers))


# One for all maskers with the same patterns: those that differ in custom patterns only, and those of other caches.
_built_in = lru_cache(64)(_BuiltIn)
_secrets = cache(KubernetesSecrets)
_disguise = cache(Disguise)


class Masker:
    """Masks secrets in texts. Created by `build_masker`; thread-safe."""

    def __init__(self, structural: bool, patterns: Sequence[str], customs: Sequence[Custom]) -> None:
        self._rules = _built_in(tuple(patterns))
        self._secrets = _secrets() if structural else None
        self._disguise = _disguise()
        self._customs = customs

    def compile(self) -> None:
        """Compiles all rules and grows RE2's automata: 0.1 s that no text waits for later. Call it in a thread."""
        self._rules.across.compile()
        self._rules.within.compile()
        drawn = Random(0)
        for _ in range(_SAMPLES):
            self._masked(bytes(drawn.choices(range(32, 127), k=_SAMPLE)))

    def reach(self, text: str) -> PatternReach:
        """Returns how much of a text with this beginning is required before any of it can be shown."""
        if self._customs:
            return PatternReach.BEYOND
        if has_sequences(text):
            reach = self._reach(without_sequences(text))
            return PatternReach.LINE if reach is PatternReach.NONE else reach
        return self._reach(text)

    def _reach(self, text: str) -> PatternReach:
        """Returns the reach of a text without sequences of a terminal."""
        encoded, _ = encode_utf8(text)
        there = self._rules.triggers.among(encoded)
        if self._rules.across.due(there) or (self._secrets and _DATA.search(encoded)):
            return PatternReach.BEYOND
        if there == (self._rules.disguised,):
            plain = [self._rules.triggers.among(step.text) for step in self._disguise.plain(encoded)]
            if any(self._rules.across.due(meant) for meant in plain):
                return PatternReach.BEYOND
            there = there if any(self._rules.within.due(meant) for meant in plain) else ()
        return PatternReach.LINE if there or (self._secrets and self._secrets.named(encoded)) else PatternReach.NONE

    def mask(self, text: str) -> str:
        """Replaces every found secret by its tag, and removes sequences of a terminal, which may stand within one.

        Args:
            text: Text of any size; lone surrogates are preserved.

        Raises:
            MaskingFailed: Custom patterns took too long; `left` is the text, masked by all others.
        """
        text = without_sequences(text)
        encoded, stand_ins = encode_utf8(text)
        masked = self._masked(encoded)
        masked, slow = by_customs(self._customs, masked)
        result = text if masked == encoded else decode_utf8(mended_text(masked), stand_ins)
        if slow:
            names = ", ".join(repr(name) for name in slow)
            raise MaskingFailed(f"custom pattern {names} took too long on a text of {len(encoded)} bytes", result)
        return result

    def _masked(self, text: bytes) -> bytes:
        """Applies the built-in patterns."""
        if self._secrets and self._secrets.named(text):
            text = self._secrets.mask(text)
        rules = self._rules
        pieces = list(rules.triggers.pieces(text))
        across = tuple(sorted({index for *_, there in pieces for index in there}))
        if rules.across.due(across):
            changed = rules.across.mask(text, b"\n" in text, Crowd(), across)
            if changed != text:
                text, pieces = changed, list(rules.triggers.pieces(changed))
        return self._within(text, pieces) if pieces else text

    def _within(self, text: bytes, pieces: Sequence[Piece]) -> bytes:
        """Applies the rules within lines to the pieces of a text that contain triggers."""
        masked: list[bytes] = []
        multiline, crowd, done = b"\n" in text, Crowd(), 0
        for start, end, there in pieces:
            crowd.read(start)
            piece = self._rules.within.mask(text[start:end], multiline, crowd, there)
            if self._rules.disguised in there and not crowd.there:
                piece = self._undisguised(piece)
            masked += text[done:start], piece
            done = end
            if crowd.there:
                return b"".join(masked)
        return b"".join((*masked, text[done:]))

    def _undisguised(self, text: bytes) -> bytes:
        """Masks secrets in disguised lines."""
        start = self._disguise.worn(text)
        if start == len(text):
            return text
        lines, found = text[start:], list[Found]()
        steps = self._disguise.plain(lines)
        for depth, step in enumerate(steps, 1):
            there = self._rules.triggers.likely(step.text)
            spans = self._rules.within.spans(step.text, there)
            if across := self._rules.across.spans(step.text, there):
                spans = apart([*across, *spans])
            for before in reversed(steps[:depth] if spans else ()):
                spans = before.origins(spans)
            found += spans
        found = self._disguise.disguised(lines, found) if found else found
        return text[:start] + replaced(lines, apart(found)) if found else text


def build_masker(groups: Sequence[str], patterns: Sequence[str] = (), custom: Sequence[CustomPattern] = ()) -> Masker:
    """Compiles a masker.

    Args:
        groups: Names of groups (basic, secrets, security, kubernetes, cloud, all).
        patterns: Names of single patterns, in addition to those of the groups.
        custom: Custom patterns.

    Raises:
        InvalidPattern: A group or pattern does not exist, or a custom pattern is invalid.
    """
    names = pattern_names(groups, patterns)
    chosen = [name for name in names if name != STRUCTURAL]
    return Masker(STRUCTURAL in names, chosen, [compiled(pattern) for pattern in custom])


@cache
def default_masker() -> Masker:
    """Returns the default masker: all patterns but the two for any base64 word, which hide evidence.

    Its triggers are compiled once a process, its rules when their trigger first occurs; a masker does not change.
    """
    return build_masker(DEFAULT_GROUPS, DEFAULT_PATTERNS)


def pattern_names(groups: Sequence[str], patterns: Sequence[str]) -> list[str]:
    """Returns the names of built-in patterns, those of groups first, each once.

    Raises:
        InvalidPattern: A group or pattern does not exist.
    """
    names: dict[str, None] = {}
    for group in groups:
        if group not in GROUPS:
            raise InvalidPattern(group, f"there is no pattern group {group!r}: use one of {', '.join(GROUPS)}")
        names.update(dict.fromkeys(GROUPS[group]))
    for name in patterns:
        if name not in PATTERNS and name != STRUCTURAL:
            known = ", ".join((STRUCTURAL, *PATTERNS))
            raise InvalidPattern(name, f"there is no pattern {name!r}: use one of {known}, or a custom pattern")
        names[name] = None
    return list(names)
