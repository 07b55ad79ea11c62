"""Builders of plans and of the world the engine runs in: scripted models, tools out of a dict, a control that obeys."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from tarsy.engine.conversation.masking import Mask
from tarsy.engine.investigation import InvestigationRun, investigate
from tarsy.engine.ports import Approvals, Live, ObjectReader
from tarsy.engine.run_context import NoApprovals, NoFollowers, NoObjects, RunContext
from tarsy.llm.protocol import GenerateRequest, LLMClient, ModelError
from tarsy.plan.model import (
    AgentLimits,
    AgentPlan,
    HttpTransport,
    ObjectRef,
    Plan,
    ProviderPlan,
    ServerPlan,
    StagePlan,
    Strategy,
    SuccessPolicy,
)
from tarsy.plan.policy import ToolPolicy
from tarsy.record.integrity import EvidenceMarks
from tarsy.record.judging.precedent import Precedent
from tarsy.record.messages import Access, Message, Refusal, Role, ToolCall, ToolDefinition, ToolOutcome
from tarsy.record.run import LeaseLost, RunOutcome
from tarsy.record.waiting import WaitingRoom
from tarsy.runtime.handed_on import HandedOnToolboxes
from unit.engine.memory import Crash, MemoryRecorder, Record
from wire.scripted_client import Answer, ScriptedClient

RUN = UUID("00000000-0000-4000-8000-000000000001")


def ref(kind: str, name: str) -> ObjectRef:
    return ObjectRef(kind=kind, namespace="team-a", name=name)


def agent(
    name: str = "triage",
    *,
    strategy: Strategy = Strategy.LANGCHAIN,
    iterations: int = 5,
    servers: Sequence[str] = (),
) -> AgentPlan:
    return AgentPlan(
        name=name,
        agent="kubernetes-agent",
        strategy=strategy,
        provider=ProviderPlan(ref=ref("LLMProvider", "local"), type="openai", model="scripted"),
        max_iterations=iterations,
        servers=tuple(
            ServerPlan(
                ref=ref("MCPServer", s),
                name=s,
                transport=HttpTransport(url=f"http://{s}/mcp"),
                policy=ToolPolicy.READ_ONLY,
            )
            for s in servers
        ),
    )


def single(name: str, strategy: Strategy = Strategy.SYNTHESIS) -> AgentPlan:
    """A single-call agent, limited as the plan limits it: to one iteration."""
    return agent(name, strategy=strategy, iterations=1)


def stage(name: str, *agents: AgentPlan, policy: SuccessPolicy = SuccessPolicy.ANY) -> StagePlan:
    several = len(agents) > 1
    return StagePlan(
        name=name, agents=agents, success_policy=policy, synthesis=single(f"{name}-synth") if several else None
    )


def plan(*stages: StagePlan, summary: bool = False, limits: AgentLimits | None = None) -> Plan:
    return Plan(
        namespace="team-a",
        alert_type="KubePodCrashLooping",
        chain=ref("Chain", "crashloop"),
        stages=stages,
        executive_summary=single("summary", Strategy.SINGLE_CALL) if summary else None,
        limits=limits or AgentLimits(finding_repairs=0),
    )


def call(name: str, identity: str = "c1", arguments: str = "{}") -> ToolCall:
    return ToolCall(identity, name, arguments)


Brain = Callable[[GenerateRequest], Answer] | Mapping[str, Sequence[Answer]]


class ScriptedModels:
    """Every provider is one script: by agent name and turn (assistant messages so far), or a function."""

    def __init__(self, brain: Brain) -> None:
        self._brain = brain
        self.requests: list[GenerateRequest] = []
        self.asked: dict[str, int] = {}
        self.clients: list[ScriptedClient] = []
        self.missing: ModelError | None = None

    @asynccontextmanager
    async def client(self, provider: ProviderPlan) -> AsyncIterator[LLMClient]:
        if self.missing is not None:
            raise self.missing
        client = ScriptedClient(self._answer)
        self.clients.append(client)
        try:
            yield client
        finally:
            await client.aclose()

    def requests_of(self, name: str) -> list[GenerateRequest]:
        return [r for r in self.requests if r.agent == name]

    def _answer(self, request: GenerateRequest) -> Answer:
        self.requests.append(request)
        if callable(self._brain):
            return self._brain(request)
        turn = self.asked.get(request.agent, 0)
        self.asked[request.agent] = turn + 1
        return self._brain[request.agent][turn]


def by_turn(script: Mapping[str, Sequence[Answer]]) -> Callable[[GenerateRequest], Answer]:
    """Answers by agent and by how often the model has answered in this conversation: the same after a crash."""

    def answer(request: GenerateRequest) -> Answer:
        return script[request.agent][sum(m.role is Role.ASSISTANT for m in request.messages)]

    return answer


Tool = Callable[[str], Awaitable[ToolOutcome]]


@dataclass
class FakeToolbox:
    """Tools out of a dict."""

    functions: Mapping[str, Tool]
    unavailable: Mapping[str, str]
    repeatables: frozenset[str]
    called: list[tuple[str, str, str]]
    instructions: Mapping[str, str] = field(default_factory=dict)
    refusals: Mapping[str, Refusal] = field(default_factory=dict)
    seen: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    idempotent: frozenset[str] = frozenset()
    gated: frozenset[str] = frozenset()
    schemas: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    unaccepted: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def tools(self) -> Sequence[ToolDefinition]:
        return tuple(
            ToolDefinition(name, f"does {name}", self.schemas.get(name, {})) for name in sorted(self.functions)
        )

    def split(self, name: str) -> tuple[str, str]:
        server, dot, tool = name.partition(".")
        return (server, tool) if dot else ("", name)

    def repeatable(self, name: str) -> bool:
        return name in self.repeatables or name in self.idempotent

    @property
    def digests(self) -> Mapping[str, Mapping[str, str]]:
        return self.seen

    def hold(self, pinned: Mapping[str, Mapping[str, str]]) -> Mapping[str, Sequence[str]]:
        changed = {
            server: [tool for tool, digest in pinned[server].items() if tools.get(tool) != digest]
            for server, tools in self.seen.items()
        }
        return {server: tools for server, tools in changed.items() if tools}

    def access(self, name: str) -> Access:
        return Access.READ_ONLY if name in self.repeatables else Access.UNKNOWN

    def refusal(self, name: str) -> Refusal | None:
        return self.refusals.get(name)

    def needs_approval(self, name: str) -> bool:
        return name in self.gated

    def shown(self, name: str, arguments: str) -> str:
        return arguments

    async def call(self, name: str, arguments: str, *, timeout: float, idempotency_key: str) -> ToolOutcome:
        self.called.append((name, arguments, idempotency_key))
        if name not in self.functions:
            return ToolOutcome(f"There is no tool {name}.", is_error=True)
        return await self.functions[name](arguments)


@dataclass
class FakeToolboxes:
    """Opens toolboxes; `called` are all calls of all of them, `open_now` how many are open, and calls of `gated` need
    approval.

    `repeatables` only read, `idempotent` change something and may be called again; `seen` are the digests that every
    toolbox finds, or `later` those of each in turn.
    """

    functions: Mapping[str, Tool] = field(default_factory=dict)
    unavailable: Mapping[str, str] = field(default_factory=dict)
    repeatables: frozenset[str] = frozenset()
    called: list[tuple[str, str, str]] = field(default_factory=list)
    open_now: int = 0
    instructions: Mapping[str, str] = field(default_factory=dict)
    refusals: Mapping[str, Refusal] = field(default_factory=dict)
    seen: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    later: list[Mapping[str, Mapping[str, str]]] = field(default_factory=list)
    idempotent: frozenset[str] = frozenset()
    gated: frozenset[str] = frozenset()
    schemas: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    unaccepted: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @asynccontextmanager
    async def open(self, servers: Sequence[ServerPlan]) -> AsyncIterator[FakeToolbox]:
        self.open_now += 1
        try:
            yield FakeToolbox(
                self.functions,
                self.unavailable,
                self.repeatables,
                self.called,
                self.instructions,
                self.refusals,
                self.later.pop(0) if self.later else self.seen,
                self.idempotent,
                self.gated,
                self.schemas,
                self.unaccepted,
            )
        finally:
            self.open_now -= 1


@dataclass
class FakeControl:
    """`checks_left` is the number of checks before the lease is lost."""

    concluding: bool = False
    checks_left: int | None = None
    to_tell: list[Callable[[], None]] = field(default_factory=list)

    def conclude(self) -> None:
        """A person asks the run to conclude."""
        self.concluding = True
        for tell in list(self.to_tell):
            tell()

    @contextmanager
    def when_concluding(self, tell: Callable[[], None]) -> Iterator[None]:
        if self.concluding:
            tell()
        self.to_tell.append(tell)
        try:
            yield
        finally:
            self.to_tell.remove(tell)

    def check(self) -> None:
        if self.checks_left is None:
            return
        if self.checks_left == 0:
            raise LeaseLost("the lease was not renewed in time")
        self.checks_left -= 1


async def until(seen: Callable[[], object]) -> None:
    """Lets everybody else go on until it is so."""
    for _ in range(10_000):
        if seen():
            return
        await asyncio.sleep(0)
    raise AssertionError("it never came to be")


def told(message: Message) -> str:
    """What a tool message tells, without the line that names its call."""
    header, _, text = message.content.partition("\n")
    assert header.startswith("[callId: call_"), message
    return text


def says(text: str, marks: EvidenceMarks | None = None) -> Tool:
    """A tool that always gives that answer."""

    async def answer(_: str) -> ToolOutcome:
        return ToolOutcome(text, marks=marks)

    return answer


@dataclass
class Scene:
    """A world with its parts in reach, and the run of a plan in it."""

    models: ScriptedModels
    toolboxes: FakeToolboxes = field(default_factory=FakeToolboxes)
    control: FakeControl = field(default_factory=FakeControl)
    record: Record = field(default_factory=Record)
    mask: Mask = str
    live: Live = field(default_factory=NoFollowers)
    objects: ObjectReader = field(default_factory=NoObjects)
    approvals: Approvals = field(default_factory=NoApprovals)
    waiting: WaitingRoom = field(default_factory=WaitingRoom)
    recorder: MemoryRecorder = field(init=False)

    def __post_init__(self) -> None:
        self.recorder = MemoryRecorder(self.record)

    async def run(
        self,
        of: Plan,
        *,
        alert: str = "pod checkout-7d",
        runbook: str = "# Look",
        precedents: Sequence[Precedent] = (),
    ) -> RunOutcome:
        world = RunContext(
            self.recorder,
            self.models,
            self.toolboxes,
            self.control,
            mask=self.mask,
            live=self.live,
            objects=self.objects,
            approvals=self.approvals,
            waiting=self.waiting,
            hand_on=HandedOnToolboxes,
        )
        return await investigate(InvestigationRun(RUN, of, alert, runbook, precedents), world)

    def resume(self, *, die_at: int | None = None, before: bool = True, hold: bool = False) -> None:
        """A new attempt on the same record; `hold`: the end of a call is held for the next step."""
        self.recorder = MemoryRecorder(self.record, die_at=die_at, before=before, hold=hold)


def scene(brain: Brain, **parts: object) -> Scene:
    return Scene(ScriptedModels(brain), **parts)  # type: ignore[arg-type]


async def live(s: Scene, of: Plan) -> RunOutcome | None:
    """Runs until the end, or None when the process died."""
    try:
        return await s.run(of)
    except Crash:
        return None
    except BaseExceptionGroup as group:
        assert group.subgroup(Crash) is not None, group
        return None
