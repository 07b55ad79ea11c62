"""Defines rules and their signals."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from tarsy.evidence.rules.facts import Facts
from tarsy.evidence.snapshot import ObjectKey


class Certainty(StrEnum):
    """Lists the degrees of certainty of a signal."""

    CERTAIN = "Certain"
    LIKELY = "Likely"


@dataclass(frozen=True, slots=True)
class Signal:
    """A fault that a rule found.

    Attributes:
        objects: the failing object first, then those that explain it.
        text: one sentence, naming objects and fields.
        quote: words of an object's field or an Event, as they stand there.
        certainty: how sure it is.
        rule: name of the rule.
        count: number of objects with the same fault, as the pods of one Deployment.
        fields: names of fields whose change brings such a fault about; empty: those of many.
    """

    objects: tuple[ObjectKey, ...]
    text: str
    quote: str
    certainty: Certainty = Certainty.CERTAIN
    rule: str = ""
    count: int = 1
    fields: tuple[str, ...] = ()


Find = Callable[[Facts], Iterator[Signal]]


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule.

    Attributes:
        name: stable identifier, as `image-not-found`.
        about: the fault, in words.
        find: yields the signals of a cluster's objects.
        fields: names of fields whose change brings such a fault about; empty: those of many.
    """

    name: str
    about: str
    find: Find
    fields: tuple[str, ...] = ()


def rule(name: str, about: str, *fields: str) -> Callable[[Find], Rule]:
    """Makes a rule of a function.

    Args:
        name: stable identifier.
        about: the fault, in words.
        fields: names of fields whose change brings such a fault about.
    """

    def make(find: Find) -> Rule:
        return Rule(name, about, find, fields)

    return make
