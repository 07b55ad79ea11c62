"""Wraps google-re2: matches byte patterns and returns spans. No other module imports the library.

Patterns run on UTF-8 bytes instead of str: on str, the wrapper counts characters for every match, and the built-in
patterns need only ASCII. The compiled object inside the wrapper is called directly, because the wrapper's own match
objects double the cost of a match (3.8 instead of 1.8 microseconds, measured).
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, cast

import re2  # type: ignore[import-untyped]

from tarsy.masking.errors import InvalidPattern

Span = tuple[int, int]
Found = tuple[int, int, bytes]  # of a match, with the tag that replaces it
NOWHERE: Span = (-1, -1)

_MEMORY = 32 << 20
_SET_MEMORY = 64 << 20
_MAX_CUSTOM_PROGRAM = 500
_MOST_RESULTS = 4_096  # of a set that are kept
_ALWAYS = b"\1always\1"  # after each text that is looked through for literals

_UNSUPPORTED = (
    (rb"\(\?<?[=!]", "lookahead and lookbehind are not supported; match the surroundings too and keep them as groups"),
    (rb"\(\?>|[+*?}]\+", "atomic groups and possessive repetition are not supported; plain ones are as fast here"),
    (rb"\(\?P=|\\[1-9]|\\k<", "backreferences in a pattern are not supported; write the alternatives out"),
    (rb"\\Z", r"\Z is written \z"),
)


class _Program(Protocol):
    def Match(self, anchor: object, text: bytes, start: int, end: int, /) -> Sequence[Span]:
        """Returns the spans of the first match and of its groups; the first span is `NOWHERE` without a match.

        Args:
            anchor: Where a match may start: anywhere, or only at `start`.
            text: Text to search.
            start: First position, in bytes.
            end: End of the search, in bytes.
        """
        ...


class Regex:
    """A compiled pattern.

    Args:
        pattern: RE2 syntax. Bytes are matched as bytes (built-in patterns), str as UTF-8 (custom patterns).
        capture: Whether to return groups; without them, RE2 uses only its fastest engine.
        memory: Maximum memory of RE2 in bytes.

    Raises:
        re2.error: The pattern is invalid.
    """

    def __init__(self, pattern: bytes | str, *, capture: bool = True, memory: int = _MEMORY) -> None:
        compiled = re2.compile(pattern, _options(isinstance(pattern, str), capture, memory))
        self.groups: int = compiled.groups
        self.names: dict[str, int] = compiled.groupindex if capture else {}
        self.program_size: int = compiled.programsize
        program = cast(_Program, compiled._regexp)
        self.match: Callable[..., Sequence[Span]] = program.Match
        self.anywhere = re2._Anchor.UNANCHORED
        self._at_start = re2._Anchor.ANCHOR_START

    def spans(self, text: bytes, start: int = 0, end: int | None = None) -> Iterator[Sequence[Span]]:
        """Yields the spans of every non-empty match: of the whole match, then of each group.

        Args:
            text: Text to search.
            start: First position.
            end: End of the search; None: end of the text.
        """
        match, anywhere, stop = self.match, self.anywhere, len(text) if end is None else end
        while start <= stop:
            found = match(anywhere, text, start, stop)
            begin, finish = found[0]
            if begin < 0:
                return
            if finish > begin:
                yield found
                start = finish
            else:
                start = finish + 1

    def search(self, text: bytes, start: int = 0, end: int | None = None) -> Sequence[Span] | None:
        """Returns the spans of the first match, which may be empty; None without a match.

        Args:
            text: Text to search.
            start: First position, in bytes.
            end: End of the search, in bytes; None: end of the text.
        """
        found = self.match(self.anywhere, text, start, len(text) if end is None else end)
        return None if found[0] == NOWHERE else found

    def at(self, text: bytes, start: int) -> Sequence[Span] | None:
        """Returns the spans of a match that starts at `start`."""
        found = self.match(self._at_start, text, start, len(text))
        return None if found[0] == NOWHERE else found


class FirstLook:
    """Finds which of many simple patterns occur in a text, in one pass.

    Args:
        patterns: RE2 syntax, by index; near-literals, so that the set stays small.
    """

    def __init__(self, patterns: Mapping[int, bytes]) -> None:
        self._all = tuple(patterns)
        self._set = re2.Set.SearchSet(_options(False, False, _SET_MEMORY))
        # The first member, so the indexes of others are shifted by one. It matches at the end only: a set pays for each
        # byte at which a member matches (a member that matches everywhere makes it three times as slow, measured).
        self._always = self._set.Add(rb"\z")
        for pattern in patterns.values():
            self._set.Add(pattern)
        self._set.Compile()
        self._known: dict[tuple[int, ...], tuple[int, ...]] = {}
        either = b"|".join(rb"(?:" + pattern + rb")" for pattern in patterns.values())
        self._either = Regex(either, capture=False, memory=_SET_MEMORY) if patterns else None

    def among(self, text: bytes) -> tuple[int, ...]:
        """Returns the indexes of occurring patterns; all indexes if RE2 runs out of memory.

        RE2 reports that by an empty result. The single patterns need less memory, and are then searched one by one.
        """
        found = tuple(self._set.Match(text))
        known = self._known.get(found)
        if known is None:
            there = self._always in found
            known = tuple(self._all[member - 1] for member in found if member != self._always) if there else self._all
            if len(self._known) < _MOST_RESULTS:
                self._known[found] = known
        return known

    def first(self, text: bytes, start: int) -> Span:
        """Returns the span of the first occurrence of any pattern at or after `start`; the end without one."""
        size = len(text)
        if self._either is None:
            return size, size
        span = self._either.match(self._either.anywhere, text, start, size)[0]
        return span if span[0] >= 0 else (size, size)


class Prefilter:
    """Finds which of many patterns may occur in a text: those of which a literal occurs, and those without one.

    The automaton of the literals is small and soon complete. That of the patterns themselves grows by each byte unlike
    those it has met: 3 ms for 600 random characters, which the event loop must not wait for.

    Args:
        patterns: RE2 syntax, by index.
    """

    def __init__(self, patterns: Mapping[int, bytes]) -> None:
        self._all = tuple(patterns)
        self._filter = _filter(patterns.values())
        self._any = frozenset(self._filter.Match(_ALWAYS, True))  # without a literal
        self._others = FirstLook(
            {self._all[number]: patterns[self._all[number]] for number in self._any - {len(patterns)}}
        )

    def among(self, text: bytes) -> tuple[int, ...]:
        """Returns the indexes of all patterns that occur, and of some that do not; all if RE2 runs out of memory."""
        numbers = self._filter.Match(text + _ALWAYS, True) or ()
        if len(self._all) not in numbers:
            return self._all
        return (*(self._all[number] for number in numbers if number not in self._any), *self._others.among(text))


def _filter(patterns: Iterable[bytes]) -> Any:
    """Compiles the literals of patterns, and of one more, that is known to occur."""
    options, made = _options(False, False, _SET_MEMORY), re2.Filter()
    for pattern in (*patterns, _ALWAYS):
        made.Add(pattern, options)
    made.Compile()
    return made


def compile_custom(name: str, pattern: str, *, capture: bool) -> Regex:
    """Compiles and validates a custom pattern.

    Args:
        name: Name, for errors.
        pattern: RE2 syntax, on characters.
        capture: Whether its groups are used.

    Raises:
        InvalidPattern: The pattern is invalid; the sentence contains the remedy.
    """
    try:
        regex = Regex(pattern, capture=capture)
    except (re2.error, UnicodeEncodeError) as error:
        raise InvalidPattern(name, f"custom pattern {name!r} is not an RE2 pattern: {_why(pattern, error)}") from None
    if regex.program_size > _MAX_CUSTOM_PROGRAM:
        size = f"{regex.program_size} instructions, at most {_MAX_CUSTOM_PROGRAM}"
        raise InvalidPattern(
            name, f"custom pattern {name!r} is too large ({size}): lower its counted repetitions or split it"
        )
    if regex.search(b"") is not None:
        raise InvalidPattern(
            name, f"custom pattern {name!r} matches empty text: require at least one character (+ instead of *)"
        )
    return regex


def _why(pattern: str, error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return "it contains half of a surrogate pair; write the character itself"
    told = error.args[0] if error.args else ""
    reason = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
    encoded = pattern.encode()
    remedies = [remedy for form, remedy in _UNSUPPORTED if re2.search(form, encoded)]
    return f"{reason} ({'; '.join(remedies)})" if remedies else f"{reason}; see the RE2 syntax"


def _options(characters: bool, capture: bool, memory: int) -> object:
    options = re2.Options()
    options.encoding = re2.Options.Encoding.UTF8 if characters else re2.Options.Encoding.LATIN1
    options.log_errors = False
    options.never_capture = not capture
    options.max_mem = memory
    return options
