"""The agents of a plan: which strategy, model, tools and limits each of them gets.

Decision: a setting travels with the field it stands in, so the highest one that is set decides the value, the field
that an error names, and the namespace its name is looked up in: a configuration object's references resolve in its
own namespace. The lists of levels read from lowest to highest, as reference section 1.5 has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from tarsy.plan import builtin
from tarsy.plan.errors import At
from tarsy.plan.lookup import Lookup
from tarsy.plan.model import AgentPlan, ProviderPlan, ServerPlan, Strategy
from tarsy.plan.parts import provider_plan, server_plan
from tarsy.plan.scope import admits
from tarsy.resources.v1alpha1.agent import Agent, AgentSpec
from tarsy.resources.v1alpha1.chain import ChainSpec, Stage, StageAgent, Synthesis
from tarsy.resources.v1alpha1.common import McpSelection
from tarsy.resources.v1alpha1.investigation_defaults import InvestigationDefaults, InvestigationDefaultsSpec
from tarsy.resources.v1alpha1.llm_provider import LLMProvider
from tarsy.resources.v1alpha1.mcp_server import MCPServer

T = TypeVar("T")
Level = tuple[T | None, At]


@dataclass(frozen=True, slots=True)
class Scope:
    """What all agents of a run share: the chain and the defaults, with the fields they stand in.

    `path` is where the run's own references are looked up, in order; it begins with the run's namespace.
    """

    path: tuple[str, ...]
    chain: ChainSpec
    at_chain: At
    defaults: InvestigationDefaultsSpec
    at_defaults: At

    @property
    def namespace(self) -> str:
        """The run's namespace."""
        return self.path[0]

    @property
    def home(self) -> str:
        """The chain's namespace, where it looks up what it names."""
        return self.at_chain.namespace


def last_set(*levels: Level[T]) -> tuple[T, At] | None:
    """The highest level that is set, with its field."""
    return next(((value, at) for value, at in reversed(levels) if value is not None), None)


class Agents:
    """Makes the agents of one plan; what is wrong goes to `look`, and the agent is None."""

    def __init__(self, scope: Scope, look: Lookup, brought: tuple[ServerPlan, ...] | None) -> None:
        """Takes the servers that the alert brought (they replace those of every agent), or None."""
        self._scope = scope
        self._look = look
        self._brought = brought

    def of_stage(self, stage: Stage, at: At, slot: StageAgent, at_slot: At) -> AgentPlan | None:
        """The agent in one slot of a stage."""
        scope = self._scope
        agent = self._look.named(Agent, scope.home, slot.name, at_slot / "name")
        spec = AgentSpec() if agent is None else agent.spec
        at_agent = At(Agent.KIND, scope.home, slot.name)
        strategy = self._strategy(spec, at_agent, slot, at_slot)
        iterations = last_set(
            (scope.defaults.max_iterations, scope.at_defaults / "maxIterations"),
            (spec.max_iterations, at_agent / "maxIterations"),
            (scope.chain.max_iterations, scope.at_chain / "maxIterations"),
            (stage.max_iterations, at / "maxIterations"),
            (slot.max_iterations, at_slot / "maxIterations"),
        )
        tools = strategy not in builtin.STRATEGIES_WITHOUT_TOOLS
        servers = self._servers_of(spec, at_agent, stage, at, slot, at_slot) if tools else ()
        provider = self._provider((slot.llm_provider, at_slot / "llmProvider"))
        if agent is None or provider is None:
            return None
        self._look.use(agent)
        return AgentPlan(
            name=slot.display_name or slot.name,
            agent=slot.name,
            strategy=strategy,
            provider=provider,
            max_iterations=1 if not tools else iterations[0] if iterations else builtin.MAX_ITERATIONS,
            instructions=spec.instructions or "",
            servers=servers,
        )

    def synthesis(self, settings: Synthesis, at: At) -> AgentPlan | None:
        """What joins the results of several agents; it never has tools.

        The agent is the one named, else `synthesis-agent` of the chain's namespace or of the library, else built in.
        """
        agent = self._synthesis_agent(settings.agent, at / "agent")
        spec = AgentSpec() if agent is None else agent.spec
        at_agent = at if agent is None else At.of(agent)
        chosen = last_set((spec.strategy, at_agent / "strategy"), (settings.strategy, at / "strategy"))
        strategy = Strategy(chosen[0]) if chosen else Strategy.SYNTHESIS
        if chosen:
            self._look.strategy_runs(strategy, chosen[1], synthesis=True)
        provider = self._provider((settings.llm_provider, at / "llmProvider"))
        if provider is None:
            return None
        name = builtin.SYNTHESIS_AGENT
        if agent is not None:
            name = self._look.use(agent).name
        return AgentPlan(
            name=name,
            agent=name,
            strategy=strategy,
            provider=provider,
            max_iterations=1,
            instructions=spec.instructions or builtin.SYNTHESIS_INSTRUCTIONS,
        )

    def executive_summary(self) -> AgentPlan | None:
        """The summary at the end, if the chain (or else the defaults) wants one; it never has tools.

        Its provider follows the row of the scoring provider in reference section 1.5: the defaults, the defaults for
        this purpose, the chain, the chain for this purpose.
        """
        scope = self._scope
        ours, theirs = scope.chain.executive_summary, scope.defaults.executive_summary
        wishes = [settings.enabled for settings in (ours, theirs) if settings is not None]
        if next((wish for wish in wishes if wish is not None), True) is False:
            return None
        provider = self._provider(
            (ours.llm_provider if ours else None, scope.at_chain / "executiveSummary" / "llmProvider"),
            (theirs.llm_provider if theirs else None, scope.at_defaults / "executiveSummary" / "llmProvider"),
        )
        if provider is None:
            return None
        return AgentPlan(
            name=builtin.EXECUTIVE_SUMMARY_AGENT,
            agent=builtin.EXECUTIVE_SUMMARY_AGENT,
            strategy=Strategy.SINGLE_CALL,
            provider=provider,
            max_iterations=1,
        )

    def _strategy(self, spec: AgentSpec, at_agent: At, slot: StageAgent, at_slot: At) -> Strategy:
        scope = self._scope
        chosen = last_set(
            (scope.defaults.strategy, scope.at_defaults / "strategy"),
            (spec.strategy, at_agent / "strategy"),
            (scope.chain.strategy, scope.at_chain / "strategy"),
            (slot.strategy, at_slot / "strategy"),
        )
        if chosen is None:
            return builtin.STRATEGY
        strategy = Strategy(chosen[0])
        self._look.strategy_runs(strategy, chosen[1])
        return strategy

    def _servers_of(
        self, spec: AgentSpec, at_agent: At, stage: Stage, at: At, slot: StageAgent, at_slot: At
    ) -> tuple[ServerPlan, ...]:
        if self._brought is not None:
            return self._brought
        # An empty list is as good as none: the last that is not empty counts.
        chosen = last_set(
            (spec.mcp_servers or None, at_agent / "mcpServers"),
            (self._scope.chain.mcp_servers or None, self._scope.at_chain / "mcpServers"),
            (stage.mcp_servers or None, at / "mcpServers"),
            (slot.mcp_servers or None, at_slot / "mcpServers"),
        )
        if chosen is None:
            return ()
        selections, field = chosen
        return servers(selections, field, (field.namespace,), self._look)

    def _provider(self, own: Level[str], of_defaults: Level[str] | None = None) -> ProviderPlan | None:
        scope = self._scope
        chosen = last_set(
            (scope.defaults.llm_provider, scope.at_defaults / "llmProvider"),
            of_defaults or (None, scope.at_defaults),
            (scope.chain.llm_provider, scope.at_chain / "llmProvider"),
            own,
        )
        if chosen is None:
            self._look.report(
                scope.at_chain / "llmProvider",
                "no LLMProvider is chosen; name one here, or in spec.llmProvider of "
                f"{InvestigationDefaults.KIND} {scope.at_defaults.name} in namespace {' or '.join(scope.path)}",
            )
            return None
        name, at = chosen
        provider = self._look.named(LLMProvider, at.namespace, name, at)
        # Defaults grant nothing to other namespaces, so what the library's name must admit the run by itself.
        from_defaults = at.kind == InvestigationDefaults.KIND
        if provider is None or (from_defaults and not self._look.admitted(provider, scope.namespace, at)):
            return None
        return provider_plan(provider, self._look.use(provider))

    def _synthesis_agent(self, name: str | None, at: At) -> Agent | None:
        scope, catalog = self._scope, self._look.catalog
        if name is not None and name != builtin.SYNTHESIS_AGENT:
            return self._look.named(Agent, scope.home, name, at)
        labels = catalog.namespace_labels(scope.namespace)
        for place in (scope.home, *scope.path[1:]):
            agent = catalog.get(Agent, place, builtin.SYNTHESIS_AGENT)
            if agent is not None and (place == scope.home or admits(agent, scope.namespace, labels)):
                return agent
        return None


def servers(selections: Sequence[McpSelection], at: At, path: Sequence[str], look: Lookup) -> tuple[ServerPlan, ...]:
    """The servers that field `at` selects, each from the first namespace of `path` that has it."""
    plans: list[ServerPlan] = []
    for index, selection in enumerate(selections):
        server = look.shared(MCPServer, path, selection.name, at[index] / "name")
        if server is not None:
            look.tools_exist(server, selection, at[index])
            plans.append(server_plan(server, look.use(server), selection))
    return tuple(plans)
