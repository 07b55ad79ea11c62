"""Keeps what was made of the messages of one conversation, so that each is converted, encoded and counted once.

A conversation grows at its end, so what was made of its beginning holds for the next request. Messages are compared by
identity: they are frozen. Whoever owns the conversation owns this; it ends with the conversation.
"""

from collections.abc import Callable, Hashable, Sequence
from operator import is_
from typing import Any, TypeVar, cast

from tarsy.record.messages import Message, Role

_T = TypeVar("_T")


class MessageForms:
    """Keeps the converted forms of a conversation: of its messages, and of other parts of its requests."""

    def __init__(self) -> None:
        self._maker: Hashable = None
        self._messages: list[Message] = []
        self._variants: list[object] = []
        self._made: Any = None
        self._parts: dict[str, tuple[Sequence[object], object]] = {}

    def of(
        self, maker: Hashable, messages: Sequence[Message], new: Callable[[], _T], variants: Sequence[object] = ()
    ) -> tuple[_T, int]:
        """Returns what was made of the conversation before, and the number of messages for which it still holds.

        The caller completes it from there. A message and the results of its tool calls hold together or not at all.

        Args:
            maker: identifies the form; another maker begins anew.
            messages: of the request.
            new: makes the form of an empty conversation.
            variants: of each message, what its form depends on beside it; empty: nothing.
        """
        if maker != self._maker:
            self._maker, self._made, self._parts = maker, new(), {}
            self._messages, self._variants = [], []
        variants = variants or [None] * len(messages)
        held = min(_common(self._messages, messages), _common(self._variants, variants))
        while held and (_answers(messages, held) or _answers(self._messages, held)):
            held -= 1
        self._messages, self._variants = list(messages), list(variants)
        return cast(_T, self._made), held

    def each(
        self,
        maker: Hashable,
        messages: Sequence[Message],
        make: Callable[[int], _T],
        variants: Sequence[object] = (),
    ) -> list[_T]:
        """Returns what `make` made of each message, by its place; only that of new messages is made.

        Args:
            maker: identifies the form; another maker begins anew.
            messages: of the request.
            make: makes the form of the message at a place, in order.
            variants: of each message, what its form depends on beside it; empty: nothing.
        """
        made, held = self.of(maker, messages, list[_T], variants)
        del made[held:]
        made.extend(make(place) for place in range(len(made), len(messages)))
        return made

    def part(self, name: str, of: Sequence[object], make: Callable[[], _T]) -> _T:
        """Returns what was made of another part of the request, such as its tools.

        Args:
            name: of the part.
            of: the objects it is made of, which are compared by identity.
            make: makes it.
        """
        known = self._parts.get(name)
        if known is None or len(known[0]) != len(of) or not all(map(is_, known[0], of)):
            self._parts[name] = known = tuple(of), make()
        return cast(_T, known[1])


def _answers(messages: Sequence[Message], place: int) -> bool:
    """Whether the message at a place is the result of a tool call."""
    return place < len(messages) and messages[place].role is Role.TOOL


def _common(one: Sequence[object], other: Sequence[object]) -> int:
    """Counts the objects that two sequences have in common at their beginning."""
    if all(map(is_, one, other)):
        return min(len(one), len(other))
    return next(place for place, (left, right) in enumerate(zip(one, other, strict=False)) if left is not right)
