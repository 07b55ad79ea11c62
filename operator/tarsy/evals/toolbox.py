"""Answers the tool calls of a replay from a cassette (`tarsy.engine.ports.Toolbox` and `Toolboxes`).

The tools that an agent is offered are those of the record which its plan allows, judged as for a usual run. No tool
server is opened. With `onMiss: Live` the servers are opened, and a call that is not recorded is made if its tool is
known to only read. A tool that may change something is never called.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol
from uuid import UUID

import mcp_types as types

from tarsy.evals.cassette import Cassette, Place, ServerRecord, ToolRecord
from tarsy.evals.matching import NO_DEFINITIONS, Ladder, RecordedAnswer
from tarsy.masking import InvalidPattern, MaskingOutcome, masking_size, off_loop, without_secrets_or_withheld
from tarsy.mcp.agent_tools import Offers, split
from tarsy.mcp.result_marks import labelled
from tarsy.mcp.tool_catalog import Offer, offer
from tarsy.plan.model import MaskingPlan, ServerPlan
from tarsy.record.ids import execution_id, idempotency_key, stage_id
from tarsy.record.judging.replay import ReplayedFrom, Rung
from tarsy.record.messages import Access, Refusal, ToolDefinition, ToolOutcome
from tarsy.resources.v1alpha1.investigation import OnMiss

OF_NOW: Final = "[Not recorded: this is the state of now, not of the time of the alert.]\n"
NOT_RECORDED: Final = "NotRecorded"
_NO_SERVER = "it is not in the record of this replay"
_WITHHELD = "The answer could not be searched for secrets and is withheld. Ask for less of it, or for something else."
_WITHHELD_ARGUMENTS = '{"withheld": "could not be searched for secrets"}'

_Mask = Callable[[str], str]


class LiveTools(Protocol):
    """The part of a toolbox that a replay asks for what is not recorded."""

    def access(self, name: str) -> Access:
        """Returns the known effect of a tool."""
        ...

    async def call(self, name: str, arguments: str, *, timeout: float, idempotency_key: str) -> ToolOutcome:
        """Calls a tool."""
        ...


class LiveToolboxes(Protocol):
    """Opens tool servers, as `tarsy.engine.ports.Toolboxes` does."""

    def open(self, servers: Sequence[ServerPlan]) -> AbstractAsyncContextManager[LiveTools]:
        """Opens the servers."""
        ...


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """Holds the options of a replay's answers.

    Attributes:
        on_miss: what happens to a call that is not recorded.
        served: lines that have answered a call before this attempt.
        mask_of: returns the masker for the setting of a server; a recorded text is masked again, since a cassette may
            come from anywhere.
        live: opens tool servers; needed for `Live` only.
    """

    on_miss: OnMiss = "Refuse"
    served: Collection[int] = ()
    mask_of: Callable[[MaskingPlan], _Mask] = lambda _: str
    live: LiveToolboxes | None = None


class ReplayToolboxes:
    """Opens toolboxes of one replay (`tarsy.engine.ports.Toolboxes`).

    Args:
        run: id of the replay, which places of calls are told by.
        cassette: the recorded calls.
        options: how calls are answered.
    """

    def __init__(self, run: UUID, cassette: Cassette, options: ReplayOptions = ReplayOptions()) -> None:
        if options.on_miss == "Live" and options.live is None:
            raise ValueError("onMiss: Live needs toolboxes that open tool servers")
        self._cassette = cassette
        self._options = options
        self._ladder = Ladder(cassette)
        self._served = set(options.served)
        self._places = {_key(run, call.place): call.place for call in cassette.calls if call.place is not None}

    @asynccontextmanager
    async def open(self, servers: Sequence[ServerPlan]) -> AsyncIterator["ReplayToolbox"]:
        """Offers the recorded tools of servers; those that are not in the record are in `unavailable`.

        Args:
            servers: the servers of one agent execution.
        """
        async with AsyncExitStack() as stack:
            live: LiveTools | None = None
            if self._options.on_miss == "Live" and self._options.live is not None:
                live = await stack.enter_async_context(self._options.live.open(servers))
            yield ReplayToolbox(servers, self, live)

    @property
    def simulates(self) -> bool:
        """Whether a model may make up the answer to a call that is not recorded."""
        return self._options.on_miss == "Simulate"

    def server(self, name: str) -> ServerRecord | None:
        """Returns what is recorded of a server; None: nothing."""
        return self._cassette.header.servers.get(name)

    def masker(self, plan: ServerPlan) -> _Mask:
        """Returns the masker of a server.

        Raises:
            InvalidPattern: its setting cannot be used.
        """
        return self._options.mask_of(plan.masking)

    async def answer(self, server: str, tool: str, arguments: str, key: str) -> RecordedAnswer:
        """Returns the recorded answer to a call; in a thread, because a derived one may read megabytes."""
        place = self._places.get(key)
        ask = partial(self._ladder.answer, server, tool, arguments, place=place, served=frozenset(self._served))
        found = await asyncio.to_thread(ask)
        if found.rung in (Rung.EXACT, Rung.NORMALISED) and found.line is not None:
            self._served.add(found.line)
        return found


class ReplayToolbox:
    """The recorded tools of one agent (`tarsy.engine.ports.Toolbox`)."""

    def __init__(self, servers: Sequence[ServerPlan], replay: ReplayToolboxes, live: LiveTools | None) -> None:
        self._replay = replay
        self._live = live
        self._plans = {plan.name: plan for plan in servers}
        self._masks: dict[str, _Mask] = {}
        self._unavailable: dict[str, str] = {}
        self._instructions: dict[str, str] = {}
        offers: dict[str, tuple[ServerPlan, Offer]] = {}
        for plan in servers:
            try:
                self._masks[plan.name] = replay.masker(plan)
            except InvalidPattern as error:
                self._unavailable[plan.name] = f"its masking cannot be used: {error.sentence}"
                continue
            recorded = replay.server(plan.name)
            if recorded is None or recorded.unavailable is not None:
                words = _NO_SERVER if recorded is None else recorded.unavailable or ""
                self._unavailable[plan.name] = self._masked(plan.name, words).text
                continue
            offers[plan.name] = (plan, _offered(plan, recorded))
            if recorded.instructions:
                self._instructions[plan.name] = self._masked(plan.name, recorded.instructions).text
        self._offers = Offers(offers)
        without = {name for name, (_, found) in offers.items() if not found.digests}
        self._unavailable |= {name: NO_DEFINITIONS.format(server=name) for name in without}
        self._unavailable |= {name: why for name, why in self._offers.empty.items() if name not in without}

    @property
    def tools(self) -> Sequence[ToolDefinition]:
        """The recorded tools that may be called, sorted by server and name."""
        return tuple(self._offers.tools.values())

    @property
    def unavailable(self) -> Mapping[str, str]:
        """A sentence by server that is not recorded, was not available, or has no tool for this agent."""
        return dict(self._unavailable)

    @property
    def instructions(self) -> Mapping[str, str]:
        """The recorded instructions of servers, by name."""
        return dict(self._instructions)

    def split(self, name: str) -> tuple[str, str]:
        """Splits `server.tool` or `server__tool`; returns ("", name) for other names."""
        return split(name)

    @property
    def digests(self) -> Mapping[str, Mapping[str, str]]:
        """Recorded digests of all tools by server."""
        return self._offers.digests

    @property
    def unaccepted(self) -> Mapping[str, Sequence[str]]:
        """Nothing: recorded tools need not be accepted."""
        return {}

    def hold(self, pinned: Mapping[str, Mapping[str, str]]) -> Mapping[str, Sequence[str]]:
        """Withholds tools that differ from those that the replay began with: none, as a cassette does not change."""
        return self._offers.hold(pinned)

    def access(self, name: str) -> Access:
        """Returns the recorded effect of a tool, as the plan trusts it."""
        return self._offers.access(name)

    def refusal(self, name: str) -> Refusal | None:
        """Returns the reason why an existing tool is withheld from this agent; None for other names."""
        return self._offers.refusal(name)

    def repeatable(self, name: str) -> bool:
        """Returns whether a call may be repeated if its outcome is unknown."""
        return self._offers.repeatable(name)

    def needs_approval(self, name: str) -> bool:
        """Returns False: a call that is answered from a record changes nothing."""
        return False

    def shown(self, name: str, arguments: str) -> str:
        """Masks the arguments of a call, as they are in the record. Never raises."""
        server, _ = split(name)
        return self._masked(server, arguments, _WITHHELD_ARGUMENTS).text

    async def call(self, name: str, arguments: str, *, timeout: float, idempotency_key: str) -> ToolOutcome:
        """Answers a call from the record, or as `onMiss` says. Only cancellation is raised.

        Args:
            name: `server.tool` or `server__tool`.
            arguments: as the model wrote them.
            timeout: maximum seconds of a call of a tool server.
            idempotency_key: key that all attempts at this call share, which tells its place in the run.
        """
        server, tool = split(name)
        found = await self._replay.answer(server, tool, self.shown(name, arguments), idempotency_key)
        if found.rung is not Rung.MISS:
            masked = await off_loop(partial(self._masked, server, found.result), masking_size(found.result))
            source = ReplayedFrom(found.rung, found.line)
            marks = None if found.marks is None or masked.withheld else found.marks.moved(found.result, masked.text)
            marks = labelled(self._plans[server], tool, marks) if server in self._plans else marks
            return ToolOutcome(masked.text, found.is_error or masked.withheld, source, marks)
        if self._live is not None and self._live.access(name) is self.access(name) is Access.READ_ONLY:
            outcome = await self._live.call(name, arguments, timeout=timeout, idempotency_key=idempotency_key)
            text = OF_NOW + outcome.content
            marks = outcome.marks.moved(outcome.content, text) if outcome.marks is not None else None
            return replace(outcome, content=text, replayed=ReplayedFrom(Rung.LIVE), marks=marks)
        simulates = self._replay.simulates and self.access(name) is Access.READ_ONLY
        missed = ReplayedFrom(Rung.MISS)
        return ToolOutcome(found.reason, is_error=True, replayed=missed, to_simulate=simulates, ours=True)

    def _masked(self, server: str, text: str, notice: str = _WITHHELD) -> MaskingOutcome:
        mask = self._masks.get(server)
        if mask is None:
            return MaskingOutcome(text)
        return without_secrets_or_withheld(mask, text, f"a recorded text of tool server {server}", notice)


def _key(run: UUID, place: Place) -> str:
    execution = execution_id(stage_id(run, place.stage), place.agent)
    return idempotency_key(execution, place.message, place.index)


def _offered(plan: ServerPlan, recorded: ServerRecord) -> Offer:
    """Returns the tools of a recorded server for an agent.

    Namespaces and approved tools are not enforced, and nobody approves: no call leaves, and what was answered is
    recorded. A tool that is recorded by name only was offered to no agent, so it has no definition that could be shown.
    """
    listed = [_as_listed(tool) for tool in recorded.tools]
    found = offer(plan.model_copy(update={"reach": None, "pin": None}), listed)
    bare = {tool.name for tool in recorded.tools if not tool.defined}
    withheld = dict(found.withheld)
    for name in sorted(bare - withheld.keys()):
        withheld[name] = Refusal(
            NOT_RECORDED,
            f"The tool {name!r} of server {plan.name!r} was not called: the record contains no definition of it.",
        )
    return replace(
        found,
        definitions=tuple(d for d in found.definitions if d.name.removeprefix(f"{plan.name}.") not in bare),
        withheld=withheld,
        digests={**found.digests, **{tool.name: tool.digest for tool in recorded.tools if tool.digest}},
    )


def _as_listed(tool: ToolRecord) -> types.Tool:
    """Returns a tool as its server listed it, with annotations that tell its recorded effect."""
    hints = {
        Access.READ_ONLY: {"read_only_hint": True},
        Access.CHANGES: {"read_only_hint": False, "destructive_hint": False},
        Access.DESTRUCTIVE: {"destructive_hint": True},
        Access.UNKNOWN: {},
    }[tool.access]
    annotations = types.ToolAnnotations(**hints, idempotent_hint=tool.repeatable or None)
    return types.Tool(
        name=tool.name,
        description=tool.description,
        input_schema=dict(tool.parameters_schema) or {"type": "object"},
        annotations=annotations,
    )
