"""Takes the arguments of a call apart into values with JSON pointers."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tarsy.record.approvals.provenance import LONGEST_POINTER

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_APART = re.compile(r"[^A-Za-z0-9]+")


@dataclass(frozen=True, slots=True)
class ArgumentValue:
    """One value of the arguments.

    Attributes:
        pointer: JSON pointer of it.
        names: names of the arguments and keys that lead to it, the argument first.
        value: a text, a number, a boolean or null.
        is_key: whether it is the key of a nested object, which a model chooses as freely as a value.
    """

    pointer: str
    names: tuple[str, ...]
    value: Any
    is_key: bool = False

    @property
    def text(self) -> str:
        """The text to look for; empty: the value could occur anywhere and says nothing."""
        if isinstance(self.value, bool) or self.value is None:
            return ""
        return str(self.value)


def argument_values(arguments: Mapping[str, Any]) -> Iterator[ArgumentValue]:
    """Yields the values of arguments, in their order.

    Args:
        arguments: parsed, of any depth.
    """
    for pointer, names, value in _nodes(arguments):
        if not isinstance(value, Mapping | list | tuple):
            yield ArgumentValue(_shortened(pointer), names, value)


def argument_keys(arguments: Mapping[str, Any]) -> Iterator[ArgumentValue]:
    """Yields the keys of nested objects, each with the pointer of what stands under it.

    Args:
        arguments: parsed, of any depth.
    """
    for pointer, names, value in _nodes(arguments):
        if names and isinstance(value, Mapping):
            for key in map(str, value):
                yield ArgumentValue(_shortened(f"{pointer}/{_escaped(key)}"), names, key, is_key=True)


def _nodes(arguments: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, ...], Any]]:
    """Yields arguments and all that is in them, in their order: JSON pointer, names on the way, value."""
    todo: list[tuple[str, tuple[str, ...], Any]] = [("", (), arguments)]
    while todo:
        pointer, names, value = todo.pop()
        yield pointer, names, value
        if isinstance(value, Mapping):
            for key, under in reversed(list(value.items())):
                todo.append((f"{pointer}/{_escaped(str(key))}", (*names, str(key)), under))
        elif isinstance(value, list | tuple):
            todo.extend((f"{pointer}/{place}", names, value[place]) for place in reversed(range(len(value))))


def words_of(name: str) -> tuple[str, ...]:
    """Returns the words of a name in small letters: `webhookUrl` and `webhook_url` are `webhook` and `url`."""
    return tuple(word.lower() for word in _APART.split(_CAMEL.sub(" ", name)) if word)


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _shortened(pointer: str) -> str:
    return pointer if len(pointer) <= LONGEST_POINTER else f"{pointer[: LONGEST_POINTER - 1]}…"
