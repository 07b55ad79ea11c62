"""A Masker: patterns compiled once, then any number of texts; the order is the reference's (section 1.10).

The structural masker first, then the patterns of the groups, single patterns, custom patterns. One first look tells
which rules may find something, so clean text costs one pass. What was written by an earlier pass is left alone. A
match costs microseconds whatever finds it, so a text of thousands of secrets and little else ends early, in a tag.
"""

import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from tarsy.masking.catalogue import GROUPS, PATTERNS, STRUCTURAL, Pattern
from tarsy.masking.engine import FirstLook, Regex, compile_custom
from tarsy.masking.errors import InvalidPattern, MaskingFailed
from tarsy.masking.judges import Judge, whole
from tarsy.masking.kubernetes_secret import TRIGGER, KubernetesSecrets
from tarsy.masking.rules import Rule
from tarsy.masking.shape import dressed, mended
from tarsy.masking.text import decode, encode

_REFERENCE = re.compile(r"\\(?:g<(\w+)>|(\d)|(\\))|\\")
_TAG = re.compile(rb"\[MASKED_[A-Z0-9_]+\]")
_DATA = re.compile(rb"""\b(?:data|stringData)\\*["']?\s*:""")
_CHUNK = 4_096
_MANY_SECRETS = 4_000
_SOME = 64  # pieces of one chunk from which on it is worth counting
_BYTES_PER_SECRET = 24
_SECONDS = 0.5  # of the processor, for all custom patterns of a text: short texts are masked in the event loop
_SECONDS_PER_BYTE = 2e-6


@dataclass(frozen=True, slots=True)
class CustomPattern:
    """A pattern of a user.

    Args:
        name: Its name, for errors.
        pattern: RE2 syntax; what it matches is replaced.
        replacement: What stands in its place; `\\1` and `\\g<name>` are groups of the pattern, `\\\\` is a backslash.
    """

    name: str
    pattern: str
    replacement: str


@dataclass(frozen=True, slots=True)
class _Rule:
    regex: Regex
    judge: Judge
    tag: bytes


@dataclass(frozen=True, slots=True)
class _Custom:
    name: str
    regex: Regex
    replacement: tuple[bytes | int, ...]


class Reach(Enum):
    """How much of a text is needed to know what is secret in it, as far as a look at its beginning tells."""

    NONE = auto()
    """Nothing may be."""
    LINE = auto()
    """Something in its lines, each by itself."""
    BEYOND = auto()
    """All of it, and what follows."""


class _Crowd:
    """How many secrets each rule found in a text so far, and whether that shows a text made to cost time.

    Thousands of secrets, closer than lines of a list are, are no evidence: the rest of such a text becomes one tag.
    """

    def __init__(self) -> None:
        self.there = False
        self._found: dict[Regex, int] = {}
        self._read = 0

    def read(self, size: int) -> None:
        """A piece of the text is done."""
        self._read += size

    def found(self, rule: Regex, secrets: int) -> None:
        """A rule is through with the piece."""
        self._found[rule] = self._found.get(rule, 0) + secrets

    def shown(self, rule: Regex, secrets: int, read: int) -> bool:
        """Whether so many more of a rule, in so much of the next piece, show it."""
        secrets += self._found.get(rule, 0)
        self.there = secrets > _MANY_SECRETS and self._read + read <= secrets * _BYTES_PER_SECRET
        return self.there


class _Rules:
    """Rules behind a first look of their own."""

    def __init__(self, rules: Sequence[tuple[Rule, str]]) -> None:
        self.triggers = list(dict.fromkeys(rule.trigger for rule, _ in rules))
        self._look = FirstLook(self.triggers)
        self._behind: list[list[int]] = [[] for _ in self.triggers]
        self._rules: list[_Rule] = []
        for rule, tag in rules:
            self._behind[self.triggers.index(rule.trigger)].append(len(self._rules))
            regex = Regex(rule.regex, capture=_captures(rule.regex))
            self._rules.append(_Rule(regex, rule.judge, (rule.tag or tag).encode()))

    def mask(self, text: bytes, multiline: bool, crowd: _Crowd, there: Sequence[int] | None = None) -> bytes:
        """The text with what the rules find replaced.

        Args:
            text: Where to look.
            multiline: Whether it is part of a text of more lines.
            crowd: Counts what is found; when it shows, the text ends where it did.
            there: Which triggers it holds, where that is known.
        """
        size = len(text)
        if there is None:
            there = self._look.among(text)
        if there:
            for index in sorted([rule for trigger in there for rule in self._behind[trigger]]):
                text = _applied(self._rules[index], text, multiline, crowd)
        crowd.read(size)
        return text


class Masker:
    """Takes secrets out of texts (made by `build_masker`; may be shared by threads)."""

    def __init__(self, structural: bool, patterns: Sequence[Pattern], customs: Sequence[_Custom]) -> None:
        rules = [(rule, pattern.tag) for pattern in patterns for rule in pattern.rules]
        self._secrets = KubernetesSecrets()
        self._across = _Rules([(rule, tag) for rule, tag in rules if rule.lines])
        self._within = _Rules([(rule, tag) for rule, tag in rules if not rule.lines])
        triggers = [*self._across.triggers, *self._within.triggers]
        self._look = FirstLook([*triggers, *([TRIGGER] if structural else [])])
        self._structural = len(triggers)
        self._hides_data = structural
        self._customs = customs

    def reach(self, text: str) -> Reach:
        """How much of a text that begins with this must be known before any of its words can be shown."""
        if self._customs:
            return Reach.BEYOND
        encoded, _ = encode(text)
        there = self._look.among(encoded)
        if (there and there[0] < len(self._across.triggers)) or (self._hides_data and _DATA.search(encoded)):
            return Reach.BEYOND
        return Reach.LINE if there else Reach.NONE

    def mask(self, text: str) -> str:
        """The text with every secret that was found replaced by its tag.

        Args:
            text: Anything, of any size; halves of surrogate pairs stay what they are.

        Raises:
            MaskingFailed: Custom patterns took too long; `left` is the text as all others left it.
        """
        encoded, stand_ins = encode(text)
        masked = self._masked(encoded, self._look.among(encoded))
        masked, slow = self._by_customs(masked)
        result = text if masked == encoded else decode(mended(masked), stand_ins)
        if slow:
            names = ", ".join(repr(name) for name in slow)
            raise MaskingFailed(f"custom pattern {names} took too long on a text of {len(encoded)} bytes", result)
        return result

    def _by_customs(self, text: bytes) -> tuple[bytes, list[str]]:
        """The text without what the custom patterns find, and the names of those that took too long.

        All have one allowance of processor time, each its share and what those before it left of theirs: a slow one
        stops no other, and 32 slow ones take no longer than one.
        """
        slow: list[str] = []
        begun = time.thread_time()
        allowance = _SECONDS + len(text) * _SECONDS_PER_BYTE
        for index, custom in enumerate(self._customs, 1):
            applied = _custom_applied(custom, text, begun + allowance * index / len(self._customs))
            if applied is None:
                slow.append(custom.name)
            else:
                text = applied
        return text, slow

    def _masked(self, text: bytes, there: Sequence[int]) -> bytes:
        """The text without what the built-in patterns find; `there` are the triggers of the first look."""
        if not there:
            return text
        across: Sequence[int] | None = [index for index in there if index < len(self._across.triggers)]
        if there[-1] == self._structural:
            hidden = self._secrets.mask(text)
            if hidden != text and b"\\" in text:  # strings may have been written anew: look again
                across = None
            text = hidden
        text = self._across.mask(text, b"\n" in text, _Crowd(), across)
        masked: list[bytes] = []
        crowd = _Crowd()
        for chunk in _chunks(text):
            masked.append(self._within.mask(chunk, len(chunk) < len(text), crowd))
            if crowd.there:
                break
        return b"".join(masked)


def _chunks(text: bytes) -> Iterator[bytes]:
    """The text in pieces of whole lines: rules run where they may find something, and not over all of it."""
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
        patterns: Names of single patterns, besides those of the groups.
        custom: Patterns of users.

    Raises:
        InvalidPattern: There is no such group or pattern, or a custom pattern cannot be used.
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
    chosen = [PATTERNS[name] for name in names if name != STRUCTURAL]
    return Masker(STRUCTURAL in names, chosen, [_custom(pattern) for pattern in custom])


def _captures(pattern: bytes) -> bool:
    return re.compile(rb"(?<!\\)\((?!\?)").search(pattern) is not None


def _custom(pattern: CustomPattern) -> _Custom:
    try:
        pattern.replacement.encode()
    except UnicodeEncodeError:
        raise InvalidPattern(
            pattern.name, f"custom pattern {pattern.name!r}: its replacement holds half of a surrogate pair"
        ) from None
    parts: list[bytes | int | str] = []
    done = 0
    for found in _REFERENCE.finditer(pattern.replacement):
        parts.append(pattern.replacement[done : found.start()].encode())
        done = found.end()
        named, numbered, backslash = found.groups()
        if backslash:
            parts.append(b"\\")
        elif numbered:
            parts.append(int(numbered))
        elif named:
            parts.append(int(named) if named.isdigit() else named)
        else:
            raise InvalidPattern(
                pattern.name,
                f"custom pattern {pattern.name!r}: its replacement has a lone backslash: write \\\\ for a backslash, "
                "\\1 or \\g<name> for a group",
            )
    parts.append(pattern.replacement[done:].encode())
    regex = compile_custom(pattern.name, pattern.pattern, capture=any(not isinstance(part, bytes) for part in parts))
    return _Custom(pattern.name, regex, tuple(_group(pattern, regex, part) for part in parts))


def _group(pattern: CustomPattern, regex: Regex, part: bytes | int | str) -> bytes | int:
    if isinstance(part, str):
        if part in regex.names:
            return regex.names[part]
    elif isinstance(part, bytes) or part <= regex.groups:
        return part
    raise InvalidPattern(
        pattern.name, f"custom pattern {pattern.name!r}: its replacement uses group {part!r}, which it does not have"
    )


def _applied(rule: _Rule, text: bytes, multiline: bool, crowd: _Crowd) -> bytes:
    """The text with what one rule finds replaced: `Regex.spans` written out, since this is where the time goes."""
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
        if judge is not whole:
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


def _custom_applied(custom: _Custom, text: bytes, stop: float) -> bytes | None:
    """The text with what a custom pattern finds replaced; None where it is not done at `stop` (processor time)."""
    pieces: list[bytes] = []
    done = 0
    tags = [found.span() for found in _TAG.finditer(text)] if b"[MASKED_" in text else []
    tag = 0
    for found in custom.regex.spans(text):
        start, end = found[0]
        if time.thread_time() > stop:
            return None
        while tag < len(tags) and tags[tag][1] <= start:
            tag += 1
        if tag < len(tags) and tags[tag][0] <= start and end <= tags[tag][1]:
            continue
        pieces.append(text[done:start])
        pieces += (part if isinstance(part, bytes) else text[slice(*found[part])] for part in custom.replacement)
        done = end
    return b"".join((*pieces, text[done:])) if pieces else text
