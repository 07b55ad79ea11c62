"""Answers tool calls of a second attempt of a stage from the record of the first one; all other calls are made.

A call is answered if the first attempt made the same one, or one whose arguments mean the same (`evals.matching`), and
it did not fail. The latest result counts. A call that needs approval is made: people are asked about each. So is one
whose arguments contain a secret, because the record does not tell one secret from another.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial

from tarsy.engine.ports import Toolbox, Toolboxes
from tarsy.evals.cassette import AlertRecord, Cassette, Header, RecordedCall, ServerRecord, ToolRecord
from tarsy.evals.matching import Ladder, RecordedAnswer
from tarsy.masking import off_loop
from tarsy.plan.model import ServerPlan
from tarsy.record.first_attempt import HandedOnCall
from tarsy.record.messages import Access, Refusal, ToolDefinition, ToolOutcome
from tarsy.record.replay import ReplayedFrom, Rung

_ANSWERED = (Rung.EXACT, Rung.NORMALISED)
_EPOCH = datetime.fromtimestamp(0, UTC)


class HandedOnToolboxes:
    """Opens the tool servers of a second attempt (`tarsy.engine.ports.Toolboxes`).

    Args:
        toolboxes: opens the servers.
        calls: of the first attempt, in the order in which they were made.
    """

    def __init__(self, toolboxes: Toolboxes, calls: Sequence[HandedOnCall]) -> None:
        self._toolboxes = toolboxes
        self._calls = calls

    @asynccontextmanager
    async def open(self, servers: Sequence[ServerPlan]) -> AsyncIterator[Toolbox]:
        """Opens the servers of one agent execution."""
        async with self._toolboxes.open(servers) as toolbox:
            cassette = _cassette(self._calls, toolbox.tools)
            yield HandedOnToolbox(toolbox, cassette, await off_loop(partial(Ladder, cassette), _size(cassette)))


class HandedOnToolbox:
    """The tools of one agent of a second attempt (`tarsy.engine.ports.Toolbox`).

    Args:
        toolbox: makes the calls that the record does not answer.
        cassette: the calls of the first attempt.
        ladder: finds them.
    """

    def __init__(self, toolbox: Toolbox, cassette: Cassette, ladder: Ladder) -> None:
        self._toolbox = toolbox
        self._ladder = ladder
        self._size = _size(cassette)
        # All lines count as served, so that of several results of a call the last one answers.
        self._served = range(cassette.line(0), cassette.line(len(cassette.calls)))

    @property
    def tools(self) -> Sequence[ToolDefinition]:
        """The tools that may be called."""
        return self._toolbox.tools

    @property
    def unavailable(self) -> Mapping[str, str]:
        """Servers that could not be opened."""
        return self._toolbox.unavailable

    @property
    def instructions(self) -> Mapping[str, str]:
        """Instructions of servers."""
        return self._toolbox.instructions

    def split(self, name: str) -> tuple[str, str]:
        """Splits the name of a tool."""
        return self._toolbox.split(name)

    @property
    def digests(self) -> Mapping[str, Mapping[str, str]]:
        """Digests of all tools by server."""
        return self._toolbox.digests

    @property
    def unaccepted(self) -> Mapping[str, Sequence[str]]:
        """Tools that nobody accepted, by server."""
        return self._toolbox.unaccepted

    def hold(self, pinned: Mapping[str, Mapping[str, str]]) -> Mapping[str, Sequence[str]]:
        """Withholds tools that differ from those of the run's beginning."""
        return self._toolbox.hold(pinned)

    def access(self, name: str) -> Access:
        """Returns the known effect of a tool."""
        return self._toolbox.access(name)

    def refusal(self, name: str) -> Refusal | None:
        """Returns the reason why a tool is withheld."""
        return self._toolbox.refusal(name)

    def repeatable(self, name: str) -> bool:
        """Returns whether a call may be repeated if its outcome is unknown."""
        return self._toolbox.repeatable(name)

    def needs_approval(self, name: str) -> bool:
        """Returns whether people are asked about each call of a tool."""
        return self._toolbox.needs_approval(name)

    def shown(self, name: str, arguments: str) -> str:
        """Masks the arguments of a call."""
        return self._toolbox.shown(name, arguments)

    async def call(self, name: str, arguments: str, *, timeout: float, idempotency_key: str) -> ToolOutcome:
        """Answers a call from the record, or makes it. Only cancellation is raised.

        Args:
            name: `server.tool`.
            arguments: as the model wrote them.
            timeout: maximum seconds of a call that is made.
            idempotency_key: key that all attempts at this call share.
        """
        if not self._toolbox.needs_approval(name) and self._toolbox.shown(name, arguments) == arguments:
            found = await off_loop(partial(self._recorded, *self._toolbox.split(name), arguments), self._size)
            if found.rung in _ANSWERED:
                return ToolOutcome(found.result, replayed=ReplayedFrom(found.rung, handed_on=True), marks=found.marks)
        return await self._toolbox.call(name, arguments, timeout=timeout, idempotency_key=idempotency_key)

    def _recorded(self, server: str, tool: str, arguments: str) -> RecordedAnswer:
        return self._ladder.answer(server, tool, arguments, served=self._served)


def _size(cassette: Cassette) -> int:
    """Characters that are read to find a call."""
    return sum(len(call.arguments_text) + len(call.result) for call in cassette.calls)


def _cassette(calls: Sequence[HandedOnCall], tools: Sequence[ToolDefinition]) -> Cassette:
    """Makes a cassette of calls; the schemas of the tools make their arguments comparable."""
    defined: dict[str, list[ToolRecord]] = {}
    for tool in tools:
        server, _, name = tool.name.partition(".")
        defined.setdefault(server, []).append(ToolRecord(name=name, parameters_schema=dict(tool.parameters_schema)))
    servers = {name: ServerRecord(tools=tuple(records)) for name, records in defined.items()}
    header = Header(alert=AlertRecord(type="-", data=""), now=_EPOCH, servers=servers)
    return Cassette(header, tuple(_recorded(call) for call in calls if call.server in servers))


def _recorded(call: HandedOnCall) -> RecordedCall:
    marks = call.marks
    return RecordedCall(
        server=call.server,
        tool=call.tool,
        arguments=call.arguments,
        result=call.result,
        integrity=None if marks is None else marks.integrity,
        control=() if marks is None else marks.control,
        state=marks is not None and marks.state,
    )
