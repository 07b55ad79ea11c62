"""Finds the origins of each value of a call's arguments: a pure function over the record of a run.

Decision: a result is no origin of a value that its own call already asked for, because a server repeats what it is
asked. The control plane's word (class K) counts nevertheless for a value that is no destination: it confirms a name.

Destinations are looked for in trusted texts as whole words, and in untrusted ones also folded and decoded, so that no
spelling makes an untrusted address look trusted or new.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from tarsy.engine.provenance.destinations import destinations_of
from tarsy.engine.provenance.leaves import ArgumentValue, argument_keys, argument_values
from tarsy.engine.provenance.readings import folded_reading, plain_reading
from tarsy.engine.provenance.result_readings import ResultReadings, TrustedText
from tarsy.record.approvals.provenance import UNTRUSTED_ORIGINS, ArgumentOrigin, Origin, ToldResult
from tarsy.record.integrity import Integrity

MOST_VALUES = 500
"""Maximum different texts that one call's arguments are searched for."""

SHORTEST_FOLDED = 8
"""Characters of a folded destination from which on it is looked for in folded texts."""

_MOST_CALLS = 4
_FORMS, _ADDRESSES, _SEARCH = 0.1, 1.5, 0.3  # microseconds of the slowest character, the last for each value
_OF_CLASS = {Integrity.A: Origin.A, Integrity.X: Origin.X}


@dataclass(slots=True)
class _Sought:
    """A text of the arguments that is looked for, and where it was found."""

    shown: str
    plain: str
    folded: str
    destination: bool
    found: dict[Origin, list[ToldResult]] = field(default_factory=dict)

    @property
    def only_untrusted(self) -> bool:
        return bool(self.found) and self.found.keys() <= UNTRUSTED_ORIGINS

    def add(self, origin: Origin, result: ToldResult | None) -> None:
        results = self.found.setdefault(origin, [])
        if result is not None:
            results.append(result)
            results.sort(key=lambda one: one.place)
            del results[_MOST_CALLS:]


def _names(text: TrustedText, one: _Sought) -> bool:
    """Whether a trusted text names what is sought."""
    return (one.destination and one.plain in text.addresses) or text.plain.has(one.plain)


@dataclass(frozen=True, slots=True)
class UntrustedDestination:
    """A destination that only untrusted texts name.

    Attributes:
        argument: JSON pointer of the value that contains it.
        destination: as the argument has it.
        origins: A, X or both.
        results: some of those that name it.
    """

    argument: str
    destination: str
    origins: tuple[Origin, ...]
    results: tuple[ToldResult, ...]


class TooManyValues(Exception):
    """The arguments have more values than are searched for."""


class OriginSearch:
    """Looks for the values of arguments in the texts of a run, one after the other.

    Args:
        arguments: of the call, parsed and without secrets.
        declared: arguments that the server's object declares as addresses.

    Raises:
        TooManyValues: there are more than `MOST_VALUES` different ones.
    """

    def __init__(self, arguments: Mapping[str, Any], declared: Collection[str] = ()) -> None:
        self._values = [*argument_values(arguments), *argument_keys(arguments)]
        self._sought: dict[tuple[str, bool], _Sought] = {}
        self._places: list[tuple[ArgumentValue, str, tuple[str, ...]]] = []
        for value in self._values:
            whole = plain_reading(value.text).strip()
            named = bool(value.names) and value.names[0] in declared
            found = tuple(one for one in destinations_of(value, declared=named) if plain_reading(one).strip())
            if value.is_key and not found:
                continue
            self._places.append((value, whole, found))
            for text, destination in [(whole, False), *((one, True) for one in found)]:
                self._seek(text, destination=destination)
            if len(self._sought) > MOST_VALUES:
                raise TooManyValues(f"its arguments have more than {MOST_VALUES} different values")
        addresses = _ADDRESSES if any(one.destination for one in self._sought.values()) else 0.0
        self._microseconds = _FORMS + addresses + _SEARCH * len(self._sought)

    def microseconds(self, size: int) -> float:
        """Returns an upper bound of the time that a text takes which was not searched before.

        Args:
            size: of the text.
        """
        return size * self._microseconds

    def told(self, origin: Origin, text: TrustedText) -> None:
        """Searches a text of the prompt.

        Args:
            origin: Person, Plan or Alert.
            text: as the model was sent it.
        """
        for one in self._sought.values():
            if _names(text, one):
                one.add(origin, None)

    def result(self, readings: ResultReadings) -> None:
        """Searches the result of a tool.

        Args:
            readings: of the result.
        """
        result = readings.result
        echoed = {key for key, one in self._sought.items() if readings.asked.has(one.plain)}
        for key, one in self._sought.items():
            if not (one.destination and key in echoed) and any(_names(piece, one) for piece in readings.control):
                one.add(Origin.K, result)
        if result.marks.integrity is Integrity.K:
            return
        origin = _OF_CLASS[result.marks.integrity]
        for key, one in self._sought.items():
            if key not in echoed and _in_untrusted(one, readings):
                one.add(origin, result)

    def origins(self) -> tuple[ArgumentOrigin, ...]:
        """Returns the origins of each value, in the order of the arguments."""
        found = []
        for value, whole, destinations in self._places:
            keys = [(whole, False), *((one, True) for one in destinations)]
            sought = [self._sought[key] for key in keys if key in self._sought]
            origins = tuple(origin for origin in Origin if any(origin in one.found for one in sought))
            named = [result for one in sought for results in one.found.values() for result in results]
            refs = [result.ref for result in sorted(named, key=lambda result: result.place)]
            calls = tuple(dict.fromkeys(refs))[:_MOST_CALLS]
            found.append(
                ArgumentOrigin(value.pointer, origins or (Origin.NOWHERE,), calls, destination=bool(destinations))
            )
        return tuple(found)

    def untrusted(self) -> UntrustedDestination | None:
        """Returns the first destination that only results of class A or X name; None: there is none."""
        for value, _, destinations in self._places:
            for one in (self._sought[(text, True)] for text in destinations):
                if one.only_untrusted:
                    results = tuple(result for results in one.found.values() for result in results)
                    origins = tuple(origin for origin in Origin if origin in one.found)
                    return UntrustedDestination(value.pointer, one.shown, origins, results)
        return None

    def _seek(self, text: str, *, destination: bool) -> None:
        plain = plain_reading(text).strip()
        if plain and (text, destination) not in self._sought:
            folded = folded_reading(text) if destination else ""
            self._sought[(text, destination)] = _Sought(text, plain, folded, destination)


def _in_untrusted(one: _Sought, readings: ResultReadings) -> bool:
    if readings.plain.has(one.plain):
        return True
    return len(one.folded) >= SHORTEST_FOLDED and any(one.folded in reading for reading in readings.folded)
