"""Compiles patterns once, and masks any number of texts.

The order is fixed: the structural masker, patterns of groups, single patterns, custom patterns. A first pass finds the
rules that may match, so clean text costs one pass. Tags of earlier passes are left unchanged. Every match costs
microseconds, so the rest of a text with thousands of secrets and little else is replaced by one tag.
"""

import re
from collections.abc import Iterator, Sequence
from enum import Enum, auto
from functools import cache
from itertools import groupby

from tarsy.masking.catalogue import GROUPS, PATTERNS, STRUCTURAL, Pattern
from tarsy.masking.custom_patterns import Custom, CustomPattern, by_customs, compiled
from tarsy.masking.disguise import TRIGGER as DISGUISE
from tarsy.masking.disguise import Disguise
from tarsy.masking.engine import FirstLook
from tarsy.masking.errors import InvalidPattern, MaskingFailed
from tarsy.masking.kubernetes_secret import TRIGGER, KubernetesSecrets
from tarsy.masking.ruleset import PatternGroup, Ruleset, apart, replaced
from tarsy.masking.shape import mended_text
from tarsy.masking.text import decode_utf8, encode_utf8
from tarsy.resources.v1alpha1.masking import DEFAULT_GROUPS, DEFAULT_PATTERNS

_DATA = re.compile(rb"""\b(?:data|stringData)\\*["']?\s*:""")
_CHUNK = 4_096


class PatternReach(Enum):
    """How much of a text is required to find its secrets, judged by its beginning."""

    NONE = auto()
    """No rule may match."""
    LINE = auto()
    """Rules may match within single lines."""
    BEYOND = auto()
    """Rules may match across lines: the whole text is required."""


class Masker:
    """Masks secrets in texts. Created by `build_masker`; thread-safe."""

    def __init__(self, structural: bool, patterns: Sequence[Pattern], customs: Sequence[Custom]) -> None:
        rules = [(rule, pattern.tag) for pattern in patterns for rule in pattern.rules]
        self._secrets = KubernetesSecrets()
        self._across = Ruleset([(rule, tag) for rule, tag in rules if rule.lines])
        self._within = Ruleset([(rule, tag) for rule, tag in rules if not rule.lines])
        triggers = [*self._across.triggers, *self._within.triggers]
        disguise = [DISGUISE] if self._within.triggers else []
        self._look = FirstLook([*triggers, *disguise, *([TRIGGER] if structural else [])])
        self._disguised = len(triggers) if disguise else -1
        self._disguise = Disguise()
        self._structural = len(triggers) + len(disguise) if structural else -1
        self._hides_data = structural
        self._customs = customs

    def reach(self, text: str) -> PatternReach:
        """Returns how much of a text with this beginning is required before any of it can be shown."""
        if self._customs:
            return PatternReach.BEYOND
        encoded, _ = encode_utf8(text)
        there = self._look.among(encoded)
        if (there and there[0] < len(self._across.triggers)) or (self._hides_data and _DATA.search(encoded)):
            return PatternReach.BEYOND
        if self._disguised in there and not any(self._within.spot(step.text) for step in self._disguise.plain(encoded)):
            there = [index for index in there if index != self._disguised]
        return PatternReach.LINE if there else PatternReach.NONE

    def mask(self, text: str) -> str:
        """Replaces every found secret by its tag.

        Args:
            text: Text of any size; lone surrogates are preserved.

        Raises:
            MaskingFailed: Custom patterns took too long; `left` is the text, masked by all others.
        """
        encoded, stand_ins = encode_utf8(text)
        masked = self._masked(encoded, self._look.among(encoded))
        masked, slow = by_customs(self._customs, masked)
        result = text if masked == encoded else decode_utf8(mended_text(masked), stand_ins)
        if slow:
            names = ", ".join(repr(name) for name in slow)
            raise MaskingFailed(f"custom pattern {names} took too long on a text of {len(encoded)} bytes", result)
        return result

    def _masked(self, text: bytes, there: Sequence[int]) -> bytes:
        """Applies the built-in patterns; `there` are the triggers that the first pass found."""
        if not there:
            return text
        across: Sequence[int] | None = [index for index in there if index < len(self._across.triggers)]
        if self._structural in there:
            hidden = self._secrets.mask(text)
            if hidden != text and b"\\" in text:  # strings may have been rewritten: search for triggers again
                across = None
            text = hidden
        text = self._across.mask(text, b"\n" in text, PatternGroup(), across)
        masked: list[bytes] = []
        crowd = PatternGroup()
        for chunk in _chunks(text):
            masked.append(self._within.mask(chunk, len(chunk) < len(text), crowd))
            if crowd.there:
                break
        text = b"".join(masked)
        return self._undisguised(text) if self._disguised in there and not crowd.there else text

    def _undisguised(self, text: bytes) -> bytes:
        """Masks secrets in disguised lines."""
        pieces: list[bytes] = []
        for worn, run in groupby(text.splitlines(keepends=True), self._disguise.worn):
            lines = b"".join(run)
            pieces += [self._plainly(chunk) for chunk in _chunks(lines)] if worn else [lines]
        return b"".join(pieces)

    def _plainly(self, lines: bytes) -> bytes:
        found: list[tuple[int, int, bytes]] = []
        steps = self._disguise.plain(lines)
        for depth, step in enumerate(steps, 1):
            spans = self._within.spans(step.text)
            for before in reversed(steps[:depth]):
                spans = [(*before.origin((start, end)), tag) for start, end, tag in spans]
            found += spans
        return replaced(lines, apart(found)) if found else lines


def _chunks(text: bytes) -> Iterator[bytes]:
    """Splits a text into pieces of whole lines, so that rules run only on pieces that may match."""
    start = 0
    while len(text) - start > _CHUNK:
        end = text.find(b"\n", start + _CHUNK) + 1
        if not end:
            break
        yield text[start:end]
        start = end
    yield text[start:]


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
    chosen = [PATTERNS[name] for name in names if name != STRUCTURAL]
    return Masker(STRUCTURAL in names, chosen, [compiled(pattern) for pattern in custom])


@cache
def default_masker() -> Masker:
    """Returns the default masker: all patterns but the two for any base64 word, which hide evidence.

    It is compiled once a process, in 50 ms of a core; a masker does not change.
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
