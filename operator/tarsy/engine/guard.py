"""The loop guard: a call whose answer cannot have changed is answered from the run's own record (issue 4, item 7).

A model that loops asks for the same thing again. Its earlier result still stands in its conversation, so it is told
where, instead of a tool server being asked once more. It holds only for tools that are known to only read, since
another tool's call is a wish to act again; only in one execution; and only while nothing could have changed the answer:
no call, by any agent of the run, of a tool that is not known to only read, and not more than `seconds`. A call that
failed may succeed next time, one whose result was compacted away is made again: neither is guarded.

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
    """The call of that place of an execution."""
    return Original(identity, call_ref(idempotency_key(execution, message_seq, index)), message_seq + 1 + index)


@dataclass(slots=True)
class Ticket:
    """A call that is being made."""

    key: _Key
    changes: int
    reads: bool
    done: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True)
class _Known:
    original: Original
    changes: int
    at: float


class Guard:
    """What was called in a run, and what of it still holds; shared by the run's agents.

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
        self._open: dict[_Key, Ticket] = {}
        self._answered: dict[UUID, dict[tuple[int, int], bool]] = {}
        for call in calls:
            self._place(call.execution, call.message_seq, call.index, repeated=call.repeated_of is not None)
            if call.usable:
                key = (call.execution, call.server, call.tool, canonical(call.arguments))
                first = original(call.id, call.execution, call.message_seq, call.index)
                self._known[key] = _Known(first, 0, clock() - call.age_seconds)

    async def repeated(self, execution: UUID, server: str, tool: str, arguments: str) -> Original | None:
        """The call of this execution that already has the answer; waits for one that is under way."""
        key = (execution, server, tool, canonical(arguments))
        if key in self._open:
            await self._open[key].done.wait()
        known = self._known.get(key)
        if known is None or self._changing or known.changes != self._changes:
            return None
        young = self._seconds > 0 and self._clock() - known.at <= self._seconds
        return known.original if young else None

    def started(self, execution: UUID, server: str, tool: str, arguments: str, *, reads: bool) -> Ticket:
        """A call is about to be made; give the ticket back when it is over, whatever became of it."""
        ticket = Ticket((execution, server, tool, canonical(arguments)), self._changes, reads)
        if reads:
            self._open[ticket.key] = ticket
        else:
            self._changing += 1
        return ticket

    def finished(self, ticket: Ticket, answer: Original | None) -> None:
        """The call is over; `answer` when it may be given again."""
        if not ticket.reads:
            self._changing -= 1
            self._changes += 1
        elif answer is not None and not self._changing:
            self._known[ticket.key] = _Known(answer, ticket.changes, self._clock())
        if self._open.get(ticket.key) is ticket:
            del self._open[ticket.key]
        ticket.done.set()

    def answered(self, execution: UUID, message_seq: int, index: int, *, repeated: bool) -> None:
        """A call has its answer; `repeated` when the record gave it."""
        self._place(execution, message_seq, index, repeated=repeated)

    def in_a_row(self, execution: UUID) -> int:
        """How many of the last answers of an execution, one after the other, the record gave."""
        count = 0
        calls = self._answered.get(execution, {})
        for place in sorted(calls, reverse=True):
            if not calls[place]:
                break
            count += 1
        return count

    def _place(self, execution: UUID, message_seq: int, index: int, *, repeated: bool) -> None:
        self._answered.setdefault(execution, {})[(message_seq, index)] = repeated


def canonical(arguments: str) -> str:
    """Arguments in one form: the order of keys and white space do not matter."""
    text = arguments.strip()
    try:
        return orjson.dumps(orjson.loads(text or "{}"), option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONDecodeError:
        return text
