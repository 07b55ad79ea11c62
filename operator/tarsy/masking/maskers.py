"""Compiles and caches maskers by setting, and validates settings.

A setting is a protocol instead of a class, because `tarsy.plan` and this package do not import each other. The cache is
bounded and evicts the least recently used masker.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Literal, Protocol

from tarsy.masking.custom_patterns import CustomPattern, compiled
from tarsy.masking.errors import InvalidPattern
from tarsy.masking.masker import Masker, build_masker, default_masker, pattern_names
from tarsy.masking.streaming_masker import StreamingMasker
from tarsy.resources.v1alpha1.masking import DEFAULT_GROUPS, DEFAULT_PATTERNS

_MOST = 64
_DEFAULT = (tuple(DEFAULT_GROUPS), tuple(DEFAULT_PATTERNS), ())


class OwnPattern(Protocol):
    """A custom pattern."""

    @property
    def name(self) -> str: ...
    @property
    def pattern(self) -> str: ...
    @property
    def replacement(self) -> str: ...


class Setting(Protocol):
    """The masking setting of an object (`tarsy.plan.model.MaskingPlan`)."""

    @property
    def enabled(self) -> bool: ...
    @property
    def groups(self) -> Sequence[str]: ...
    @property
    def patterns(self) -> Sequence[str]: ...
    @property
    def custom(self) -> Sequence[OwnPattern]: ...


@dataclass(frozen=True, slots=True)
class PatternFault:
    """An invalid entry of a setting, with the remedy."""

    part: Literal["groups", "patterns", "custom"]
    index: int
    sentence: str


class Maskers:
    """Provides maskers by setting; thread-safe.

    Args:
        most: Maximum number of cached maskers.
    """

    def __init__(self, most: int = _MOST) -> None:
        self._most = most
        self._kept: OrderedDict[object, Masker] = OrderedDict()
        self._lock = Lock()

    def of(self, setting: Setting) -> Callable[[str], str]:
        """Returns the masking function of a setting; texts are unchanged if it is not enabled.

        Raises:
            InvalidPattern: The setting has an unknown name or an invalid pattern.
        """
        masker = self._masker(setting)
        return masker.mask if masker else _as_it_is

    def unfolding(self, setting: Setting) -> StreamingMasker:
        """Returns a streaming masker for one text.

        Raises:
            InvalidPattern: See `of`.
        """
        return StreamingMasker(self._masker(setting))

    def _masker(self, setting: Setting) -> Masker | None:
        if not setting.enabled:
            return None
        custom = _custom(setting)
        key = (tuple(setting.groups), tuple(setting.patterns), custom)
        if key == _DEFAULT:
            return default_masker()
        with self._lock:
            if key not in self._kept:
                self._kept[key] = build_masker(setting.groups, setting.patterns, custom)
            self._kept.move_to_end(key)
            if len(self._kept) > self._most:
                self._kept.popitem(last=False)
            return self._kept[key]


@dataclass(frozen=True, slots=True)
class _Rest:
    """A setting without its invalid entries."""

    enabled: bool
    groups: tuple[str, ...]
    patterns: tuple[str, ...]
    custom: tuple[OwnPattern, ...]


def usable(setting: Setting) -> Setting:
    """Returns the setting; if it has invalid entries, its valid ones and the defaults.

    So one invalid entry disables neither the other patterns of its author nor the built-in ones.
    """
    wrong = {(fault.part, fault.index) for fault in faults(setting)}
    if not wrong or not setting.enabled:
        return setting
    groups = [group for index, group in enumerate(setting.groups) if ("groups", index) not in wrong]
    patterns = [pattern for index, pattern in enumerate(setting.patterns) if ("patterns", index) not in wrong]
    return _Rest(
        enabled=True,
        groups=tuple(dict.fromkeys((*DEFAULT_GROUPS, *groups))),
        patterns=tuple(dict.fromkeys((*DEFAULT_PATTERNS, *patterns))),
        custom=tuple(own for index, own in enumerate(setting.custom) if ("custom", index) not in wrong),
    )


def faults(setting: Setting) -> list[PatternFault]:
    """Returns the invalid entries of a setting, in order; compiles nothing but its custom patterns."""
    found: list[PatternFault] = []
    for index, group in enumerate(setting.groups):
        found += _tried("groups", index, partial(pattern_names, [group], ()))
    for index, pattern in enumerate(setting.patterns):
        found += _tried("patterns", index, partial(pattern_names, (), [pattern]))
    for index, own in enumerate(_custom(setting)):
        found += _tried("custom", index, partial(compiled, own))
    return found


def _tried(
    part: Literal["groups", "patterns", "custom"], index: int, build: Callable[[], object]
) -> list[PatternFault]:
    try:
        build()
    except InvalidPattern as error:
        return [PatternFault(part, index, error.sentence)]
    return []


def _custom(setting: Setting) -> tuple[CustomPattern, ...]:
    return tuple(CustomPattern(own.name, own.pattern, own.replacement) for own in setting.custom)


def _as_it_is(text: str) -> str:
    return text
