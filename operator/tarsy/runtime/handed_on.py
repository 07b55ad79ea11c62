"""Answers tool calls of a second attempt of a stage from the record of the first one; all other calls are made.

A call is answered if the first attempt made the same one, or one whose arguments mean the same (`evals.matching`), and
it did not fail. The latest result counts. A call that needs approval is made: people are asked about each. So is one
whose arguments contain a secret, because the record does not tell one secret from another.
"""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial

from tarsy.engine.ports import Toolbox, Toolboxes
from tarsy.engine.wrapped_toolbox import WrappedToolbox
from tarsy.evals.cassette import AlertRecord, Cassette, Header, RecordedCall, ServerRecord, ToolRecord
from tarsy.evals.matching import Ladder, RecordedAnswer
from tarsy.masking import off_loop
from tarsy.plan.model import ServerPlan
from tarsy.record.first_attempt import HandedOnCall
from tarsy.record.judging.replay import ReplayedFrom, Rung
from tarsy.record.messages import ToolDefinition, ToolOutcome

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


class HandedOnToolbox(WrappedToolbox):
    """The tools of one agent of a second attempt.

    Args:
        toolbox: makes the calls that the record does not answer.
        cassette: the calls of the first attempt.
        ladder: finds them.
    """

    def __init__(self, toolbox: Toolbox, cassette: Cassette, ladder: Ladder) -> None:
        super().__init__(toolbox)
        self._ladder = ladder
        self._size = _size(cassette)
        # All lines count as served, so that of several results of a call the last one answers.
        self._served = range(cassette.line(0), cassette.line(len(cassette.calls)))

    async def call(self, name: str, arguments: str, *, timeout: float, idempotency_key: str) -> ToolOutcome:
        """Answers a call from the record, or makes it. Only cancellation is raised.

        Args:
            name: `server.tool`.
            arguments: as the model wrote them.
            timeout: maximum seconds of a call that is made.
            idempotency_key: key that all attempts at this call share.
        """
        if not self.needs_approval(name) and self.shown(name, arguments) == arguments:
            found = await off_loop(partial(self._recorded, *self.split(name), arguments), self._size)
            if found.rung in _ANSWERED:
                return ToolOutcome(found.result, replayed=ReplayedFrom(found.rung, handed_on=True), marks=found.marks)
        return await super().call(name, arguments, timeout=timeout, idempotency_key=idempotency_key)

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
