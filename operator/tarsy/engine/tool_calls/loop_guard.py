"""Answers a tool call that was made a moment ago from the run's own record.

A model that loops asks for the same thing again. Its earlier result still stands in its conversation, so it is told
where, and how old it is, instead of a tool server being asked once more. It holds only for tools that are known to only
read, since another tool's call is a wish to act again; only in one execution; and only while the run itself changed
nothing: no call, by any agent of the run, of a tool that is not known to only read, and not more than `seconds`. A call
that failed may succeed next time, one whose result was compacted away is made again: neither is guarded.

What is read is live, and others change it too. A model that needs a fresh look asks once more after it was answered
from the record: that call is made, once within `seconds` for the same arguments, so nobody can loop on it.

Order is told by a count of changes, not by clocks, so two things at the same moment are no question.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from uuid import UUID

import orjson

from tarsy.record.history import PastCall
from tarsy.record.ids import call_ref, idempotency_key

_Key = tuple[UUID, str, str, str]


@dataclass(frozen=True, slots=True)
class Original:
    """The call that a repetition repeats: its id, what its model knows it by, and where its answer stands."""

    id: UUID
    ref: str
    seq: int


def original(identity: UUID, execution: UUID, message_seq: int, index: int) -> Original:
    """The call at a place in an execution: the index in the tool calls of the message `message_seq`."""
    return Original(identity, call_ref(idempotency_key(execution, message_seq, index)), message_seq + 1 + index)


@dataclass(frozen=True, slots=True)
class RepeatedCall:
    """A call that the record answers: what it repeats, how old that is, and whether the next such call is made."""

    original: Original
    age_seconds: float
    fresh_next: bool


@dataclass(slots=True)
class GuardedCall:
    """A call that is being made; `fresh`: again, because its model asked for a fresh look."""

    key: _Key
    changes: int
    reads: bool
    fresh: bool = False
    done: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class _Known:
    original: Original
    changes: int
    at: float
    fresh: bool = False


class LoopGuard:
    """Holds the calls of a run whose results are still valid; shared by the run's agents.

    Args:
        calls: of earlier attempts.
        seconds: after which an answer is too old to be given again; 0: every call is made.
        clock: seconds, monotonic.
    """

    def __init__(
        self,
        calls: Iterable[PastCall] = (),
        *,
        seconds: float = 120.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._changes = 0
        self._changing = 0
        self._known: dict[_Key, _Known] = {}
        self._open: dict[_Key, GuardedCall] = {}
        self._answered: dict[UUID, dict[tuple[int, int], bool | None]] = {}
        self._told: dict[_Key, int] = {}
        for call in sorted(calls, key=lambda call: (call.message_seq, call.index)):
            key = (call.execution, call.server, call.tool, canonical(call.arguments))
            if call.repeated_of is not None:
                self._told[key] = call.message_seq
            at = clock() - call.age_seconds
            fresh = call.repeated_of is None and self._looks_afresh(key, call.message_seq, at)
            repeated = None if fresh else call.repeated_of is not None
            self._place(call.execution, call.message_seq, call.index, repeated=repeated)
            if call.usable:
                first = original(call.id, call.execution, call.message_seq, call.index)
                self._known[key] = _Known(first, 0, at, fresh)
                self._told.pop(key, None)

    @property
    def seconds(self) -> float:
        """After which an answer is too old to be given again."""
        return self._seconds

    async def repeated(
        self, execution: UUID, server: str, tool: str, arguments: str, *, message_seq: int
    ) -> RepeatedCall | None:
        """Returns the recorded answer to a call of this execution; waits for a call in progress.

        None for a call that is to be made: nothing is known, it is too old or may have changed, or this is the fresh
        look that the model was told of in an earlier message than `message_seq`.
        """
        key = (execution, server, tool, canonical(arguments))
        if key in self._open:
            await self._open[key].done.wait()
        now, known = self._clock(), self._known.get(key)
        if known is None or not self._holds(known, now) or self._looks_afresh(key, message_seq, now):
            return None
        return RepeatedCall(known.original, now - known.at, fresh_next=not known.fresh)

    def told(self, execution: UUID, server: str, tool: str, arguments: str, *, message_seq: int) -> None:
        """Notes that a call is answered from the record, so that the same call in a later message is made.

        Args:
            execution: id of the agent execution that makes the call.
            server: name of the tool server.
            tool: name of the tool on its server.
            arguments: JSON text; the order of keys and white space do not matter.
            message_seq: number of the assistant message that contains the call.
        """
        self._told[(execution, server, tool, canonical(arguments))] = message_seq

    def _holds(self, known: _Known, now: float) -> bool:
        """Whether an answer may be given again."""
        young = self._seconds > 0 and now - known.at <= self._seconds
        return young and not self._changing and known.changes == self._changes

    def _looks_afresh(self, key: _Key, message_seq: int, now: float) -> bool:
        """Whether an answer that holds, and was no fresh look, was given again in an earlier message."""
        known = self._known.get(key)
        again = known is not None and not known.fresh and self._holds(known, now)
        return again and self._told.get(key, message_seq) < message_seq

    def started(
        self, execution: UUID, server: str, tool: str, arguments: str, *, reads: bool, message_seq: int
    ) -> GuardedCall:
        """Registers a call that is about to be made (arguments as in `repeated`).

        `reads`: its tool is known to only read. Return the ticket by `finished` when the call is over, in any case.
        """
        key = (execution, server, tool, canonical(arguments))
        ticket = GuardedCall(
            key, self._changes, reads, fresh=reads and self._looks_afresh(key, message_seq, self._clock())
        )
        if reads:
            self._open[ticket.key] = ticket
        else:
            self._changing += 1
        return ticket

    def finished(self, ticket: GuardedCall, answer: Original | None) -> None:
        """The call is over; `answer` when it may be given again."""
        if not ticket.reads:
            self._changing -= 1
            self._changes += 1
        elif answer is not None and not self._changing:
            self._known[ticket.key] = _Known(answer, ticket.changes, self._clock(), ticket.fresh)
            self._told.pop(ticket.key, None)
        if self._open.get(ticket.key) is ticket:
            del self._open[ticket.key]
        ticket.done.set()

    def answered(self, execution: UUID, message_seq: int, index: int, *, repeated: bool | None) -> None:
        """Counts an answered call; `repeated`: it was answered from the record, None: it was repeated on purpose."""
        self._place(execution, message_seq, index, repeated=repeated)

    def in_a_row(self, execution: UUID) -> int:
        """Counts the consecutive last answers of an execution that came from the record, ignoring fresh calls
        between them."""
        count = 0
        calls = self._answered.get(execution, {})
        for place in sorted(calls, reverse=True):
            repeated = calls[place]
            if repeated is False:
                break
            count += repeated is True
        return count

    def _place(self, execution: UUID, message_seq: int, index: int, *, repeated: bool | None) -> None:
        self._answered.setdefault(execution, {})[(message_seq, index)] = repeated


def canonical(arguments: str) -> str:
    """Arguments in one form: the order of keys and white space do not matter."""
    text = arguments.strip()
    try:
        return orjson.dumps(orjson.loads(text or "{}"), option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONDecodeError:
        return text
