"""Defines a plan: its agents, stages, limits and budget."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from enum import StrEnum
from typing import Literal
from uuid import UUID

import orjson
from pydantic import Field

from tarsy.plan.model._provider import ProviderPlan
from tarsy.plan.model._reference import FrozenModel, ObjectRef
from tarsy.plan.model._server import MaskingPlan, ServerPlan
from tarsy.plan.model._skill import AgentSkill, SkillPlan


class Strategy(StrEnum):
    """Lists the strategies of agents; the strategy decides the family of the backend."""

    REACT = "react"
    NATIVE_THINKING = "native-thinking"
    LANGCHAIN = "langchain"
    SYNTHESIS = "synthesis"
    SYNTHESIS_NATIVE_THINKING = "synthesis-native-thinking"
    SINGLE_CALL = "single-call"


class SuccessPolicy(StrEnum):
    """When a stage counts as done: any agent completed, or all of them."""

    ANY = "Any"
    ALL = "All"


class AgentLimits(FrozenModel):
    """Limits of a run: seconds and counts. A provider's own `timeouts` override those of model calls."""

    investigation_seconds: float = 2400.0
    iteration_seconds: float = 360.0
    model_call_seconds: float = 300.0
    tool_call_seconds: float = 60.0
    first_token_seconds: float = 120.0
    stall_seconds: float = 60.0
    conclusion_seconds: float = 60.0
    """Each model call of a run that was asked to conclude."""
    consecutive_timeouts: int = 2
    empty_answers: int = 2
    repeat_seconds: float = 120.0
    """For this long, the result of a repeatable call is returned again instead of repeating the call."""
    repeats_in_a_row: int = 3
    """After this many repeated calls in a row, an agent must conclude."""
    context_tokens: int = 131_072
    """Context window of providers that do not declare one."""
    finding_repairs: int = Field(default=1, ge=0, le=1)


class PlannedBudget(FrozenModel):
    """Limits of a whole run; None is no limit. A run that reaches one must conclude."""

    tokens: int | None = None
    cost_usd: float | None = None
    tool_calls: int | None = None
    minutes: float | None = None


class FallbackPlan(FrozenModel):
    """Replacement for a provider that fails, with the strategy and the native tools to use with it."""

    provider: ProviderPlan
    strategy: Strategy
    native_tools: tuple[str, ...] = ()


class AgentPlan(FrozenModel):
    """One agent of one stage."""

    name: str
    """Display name, for example `triage-2` for a replica."""
    agent: str
    """Name of the Agent object."""
    strategy: Strategy
    provider: ProviderPlan
    max_iterations: int
    instructions: str = ""
    servers: tuple[ServerPlan, ...] = ()
    native_tools: tuple[str, ...] = ()
    """Enabled tools of the provider (`google_search`, `code_execution`, `url_context`), in a stable order."""
    fallback: tuple[FallbackPlan, ...] = ()
    """Replacements, tried in order."""
    fallback_skipped: tuple[str, ...] = ()
    """Providers that were left out of `fallback` because they cannot do this agent's work."""
    summarizer: ProviderPlan | None = None
    """Summarizes long tool results; None: `provider` does."""
    skills: tuple[AgentSkill, ...] = Field(default=(), exclude_if=lambda skills: not skills)
    """Only in plans with skills, so that older workers can read all others."""
    delegation: DelegationPlan | None = Field(default=None, exclude_if=lambda delegation: delegation is None)
    """Only in plans with sub-agents, so that older workers can read all others. A sub-agent has none."""

    @property
    def with_sub_agents(self) -> tuple[AgentPlan, ...]:
        """The agent, then those that it may dispatch."""
        return (self,) if self.delegation is None else (self, *(one.agent for one in self.delegation.agents))


class SubAgentPlan(FrozenModel):
    """An agent that another one may dispatch, at most so many times."""

    agent: AgentPlan
    description: str = ""
    max_dispatches: int


class DelegationPlan(FrozenModel):
    """The agents that an agent may dispatch, and the limits of all of them together."""

    agents: tuple[SubAgentPlan, ...]
    concurrent: int = 3
    """Dispatched agents that run at the same time."""
    dispatches: int = 10
    """Dispatches of one execution."""


class ChangesPlan(FrozenModel):
    """Holds the settings of a stage of kind Changes: its reads, and whether it may end the run."""

    account: str | None = None
    """ServiceAccount in the run's namespace that objects are read with; None: nothing is read."""
    window_seconds: float = 14_400.0
    """Seconds before the onset during which changes count."""
    stop_when: Literal["Never", "Certain"] = "Never"
    reader: str | None = None
    """Username of the person or ServiceAccount whose rights limit what is read; None: nobody's do."""
    readable: tuple[str, ...] | None = None
    """Kinds that the reader may list, as found at acceptance; None: there is no reader."""
    recorded: tuple[str, ...] | None = None
    """Kinds whose history is read where there is one, because the reader may get them; None: there is no reader."""


class ReplayPlan(FrozenModel):
    """Holds the settings of a replay: its source, and its answers to calls that are not recorded."""

    source: str
    """For people: `Investigation NAME`, or `ConfigMap NAME, key KEY`."""
    of: UUID | None = None
    """The recorded run, with which this replay is deleted; None: its record is kept elsewhere (a file, a case)."""
    on_miss: Literal["Refuse", "Live", "Simulate"] = "Refuse"
    seed: int | None = None


class EscalationPlan(FrozenModel):
    """When a stage runs once more, and its agents and synthesis with the other provider."""

    when: str
    """CEL over the finding (`tarsy.plan.escalation`)."""
    agents: tuple[AgentPlan, ...]
    synthesis: AgentPlan | None = None


class StagePlan(FrozenModel):
    """One stage: its agents, which run in parallel, and the synthesis that merges the results of several.

    A stage with `changes` has no agents. One that `acts` acts on the finding of those before, by calls that people
    approve, and adds nothing to it.
    """

    name: str
    acts: Literal[True] | None = Field(default=None, exclude_if=lambda acts: acts is None)
    """Only in plans with such a stage: a worker that does not know the field must not run it as any other."""
    agents: tuple[AgentPlan, ...] = ()
    changes: ChangesPlan | None = None
    parallel: Literal["multi_agent", "replica"] | None = None
    success_policy: SuccessPolicy = SuccessPolicy.ANY
    synthesis: AgentPlan | None = None
    escalation: EscalationPlan | None = Field(default=None, exclude_if=lambda escalation: escalation is None)
    """Only in plans with one, so that older workers can read all others."""

    @property
    def attempts(self) -> tuple[StagePlan, ...]:
        """The stage as it runs first, and as it may run once more."""
        first = self.model_copy(update={"escalation": None})
        if (second := self.escalation) is None:
            return (first,)
        changes = {"name": f"{self.name}-escalated", "agents": second.agents, "synthesis": second.synthesis}
        return first, first.model_copy(update=changes)

    @property
    def members(self) -> tuple[AgentPlan, ...]:
        """Agents of all attempts, each followed by those that it may dispatch."""
        own = (agent for attempt in self.attempts for agent in attempt.agents)
        return tuple(one for agent in own for one in agent.with_sub_agents)

    @property
    def syntheses(self) -> tuple[AgentPlan, ...]:
        """The synthesis of each attempt that has one."""
        return tuple(attempt.synthesis for attempt in self.attempts if attempt.synthesis is not None)

    @property
    def places(self) -> int:
        """Stages on record that it may take: each attempt, and the synthesis of each."""
        return sum(2 if attempt.is_joined else 1 for attempt in self.attempts)

    @property
    def is_joined(self) -> bool:
        """Whether a synthesis follows its agents."""
        return len(self.agents) > 1 and self.synthesis is not None

    def with_agents(self, change: Callable[[AgentPlan], AgentPlan], *, syntheses: bool = False) -> StagePlan:
        """Returns the stage with each agent of each attempt changed.

        Args:
            change: makes the other agent; sub-agents are its own to change.
            syntheses: whether the agents of syntheses are changed too.
        """

        def of(agents: tuple[AgentPlan, ...], joins: AgentPlan | None) -> dict[str, object]:
            return {
                "agents": tuple(map(change, agents)),
                "synthesis": change(joins) if syntheses and joins is not None else joins,
            }

        again = self.escalation
        second = again if again is None else again.model_copy(update=of(again.agents, again.synthesis))
        return self.model_copy(update={**of(self.agents, self.synthesis), "escalation": second})


class PrecedentsPlan(FrozenModel):
    """Tells agents about earlier investigations: those of the run's namespace, or also of namespaces that grant it."""

    scope: Literal["Namespace", "Granted"] = "Namespace"


class Plan(FrozenModel):
    """A whole run, resolved."""

    version: Literal[1] = 1
    namespace: str
    alert_type: str
    chain: ObjectRef
    stages: tuple[StagePlan, ...]
    executive_summary: AgentPlan | None
    chat: AgentPlan | None = None
    """Answers follow-up questions; None: no questions are accepted."""
    chat_seconds: float | None = None
    """Time limit of one answer; None: the run's own."""
    chat_budget: PlannedBudget = PlannedBudget()
    """Limits of one answer."""
    alert_masking: MaskingPlan | None = None
    """Masking of the alert and its runbook; None: the installation's."""
    model_output_masking: MaskingPlan | None = None
    """Masking of model output; None: the installation's."""
    limits: AgentLimits = AgentLimits()
    budget: PlannedBudget = PlannedBudget()
    namespace_limit: int | None = None
    """Maximum concurrent runs of the namespace; None: only the installation's own limit."""
    chain_limit: int | None = None
    """Maximum concurrent runs of the chain; None: only the installation's own limit."""
    objects: tuple[ObjectRef, ...] = ()
    """All objects that the plan was made from, with their generations."""
    brought: tuple[ObjectRef, ...] = ()
    """MCPServers among them that the alert names itself; a user needs permission to use them for this run."""
    replay: ReplayPlan | None = Field(default=None, exclude_if=lambda replay: replay is None)
    """Only in plans of replays, so that older workers can read all others."""
    skills: tuple[SkillPlan, ...] = Field(default=(), exclude_if=lambda skills: not skills)
    """The skills of all agents, by namespace and name."""
    precedents: PrecedentsPlan | None = Field(default=None, exclude_if=lambda precedents: precedents is None)
    """None: agents are told of no earlier investigations. Only where set, so that older workers can read the rest."""
    not_used: tuple[str, ...] = ()
    """A sentence for each setting that is ignored because the run acts with the rights of another namespace."""

    @property
    def agents(self) -> tuple[AgentPlan, ...]:
        """All agents of the run: of its stages, with their sub-agents, of syntheses, and of the executive summary."""
        own = [agent for stage in self.stages for agent in stage.members]
        joins = [agent for stage in self.stages for agent in stage.syntheses]
        return (*own, *joins, *((self.executive_summary,) if self.executive_summary is not None else ()))

    @property
    def providers(self) -> tuple[ProviderPlan, ...]:
        """All providers that agents of the run may ask: their own, those of their fallback and their summarizers."""
        asked = [(a.provider, *(entry.provider for entry in a.fallback), a.summarizer) for a in self.agents]
        return tuple(provider for of_agent in asked for provider in of_agent if provider is not None)

    def to_answer(self) -> Plan:
        """Returns the plan of the answer to one question about this run; requires `chat`."""
        if self.chat is None:
            raise ValueError("this plan takes no questions")
        seconds = self.chat_seconds or self.limits.investigation_seconds
        changes = {
            "stages": (StagePlan(name="chat", agents=(self.chat,)),),
            "executive_summary": None,
            "chat": None,
            "limits": self.limits.model_copy(update={"investigation_seconds": seconds}),
            "budget": self.chat_budget,
            "namespace_limit": None,
            "chain_limit": None,
        }
        return self.model_copy(update=changes)

    @property
    def accounts(self) -> frozenset[str]:
        """ServiceAccounts that this run acts as, without those of answers to questions."""
        agents = (agent for stage in self.stages for agent in stage.members)
        of_tools = {account for agent in agents for server in agent.servers for account in server.accounts}
        of_changes = {s.changes.account for s in self.stages if s.changes is not None and s.changes.account is not None}
        return frozenset(of_tools | of_changes)

    @property
    def reads_changes(self) -> bool:
        """Whether a stage reads objects of the run's namespace itself."""
        return any(stage.changes is not None and stage.changes.account is not None for stage in self.stages)

    def read_as(self, reader: str, readable: tuple[str, ...], recorded: tuple[str, ...]) -> Plan:
        """Returns the plan with the rights that limit what its stages of kind Changes read.

        Args:
            reader: username.
            readable: the kinds that the reader may list.
            recorded: those of them that the reader may get.
        """
        limits = {"reader": reader, "readable": readable, "recorded": recorded}
        stages = tuple(
            stage
            if stage.changes is None
            else stage.model_copy(update={"changes": stage.changes.model_copy(update=limits)})
            for stage in self.stages
        )
        return self.model_copy(update={"stages": stages})

    def replaying(self, replay: ReplayPlan) -> Plan:
        """Returns the plan of a replay: it takes no questions, because an answer would ask the tool servers of now."""
        return self.model_copy(update={"replay": replay, "chat": None})

    def dump(self) -> bytes:
        """Canonical JSON: the same plan always gives the same bytes."""
        return orjson.dumps(self.model_dump(mode="json"), option=orjson.OPT_SORT_KEYS)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON, as hex: what the status shows as `planHash`."""
        return hashlib.sha256(self.dump()).hexdigest()
