"""The agents of a plan: which strategy, model, tools and limits each of them gets.

Decision: each role (agent of a stage, synthesis, executive summary, chat) spells out its own levels, from lowest to
highest, so a row of reference section 1.5 can be read beside the code that follows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tarsy.plan import builtin
from tarsy.plan.errors import At
from tarsy.plan.levels import Level, Scope, last_filled, last_set
from tarsy.plan.lookup import Lookup
from tarsy.plan.model import AgentPlan, ServerPlan, Strategy
from tarsy.plan.parts import server_plan
from tarsy.plan.policy import ToolPolicy, stricter
from tarsy.plan.providers import Choice, Fallbacks, Providers, Work
from tarsy.plan.scope import admits
from tarsy.resources.v1alpha1.agent import Agent, AgentSpec
from tarsy.resources.v1alpha1.chain import ChatSettings, Stage, StageAgent, Synthesis
from tarsy.resources.v1alpha1.common import FallbackEntry, McpSelection
from tarsy.resources.v1alpha1.mcp_server import MCPServer


@dataclass(frozen=True, slots=True)
class Made:
    """An agent of the plan, and the field each of its settings comes from (missing: built in)."""

    plan: AgentPlan
    origins: Mapping[str, At] = field(default_factory=dict)

    def called(self, name: str) -> Made:
        """The same agent under another name."""
        return replace(self, plan=self.plan.model_copy(update={"name": name}))


Servers = tuple[tuple[ServerPlan, ...], At | None]


class Agents:
    """Makes the agents of one plan; what is wrong goes to `look`, and the agent is None."""

    def __init__(self, scope: Scope, look: Lookup, providers: Providers, brought: Servers | None) -> None:
        """Takes the servers that the alert brought (they replace those of every agent), or None."""
        self._scope = scope
        self._look = look
        self._providers = providers
        self._brought = brought

    def of_stage(self, stage: Stage, at: At, slot: StageAgent, at_slot: At) -> Made | None:
        """The agent in one slot of a stage."""
        scope = self._scope
        agent = self._look.named(Agent, scope.home, slot.name, at_slot / "name")
        spec = AgentSpec() if agent is None else agent.spec
        at_agent = At(Agent.KIND, scope.home, slot.name)
        strategy = last_set(
            (scope.defaults.strategy, scope.at_defaults / "strategy"),
            (spec.strategy, at_agent / "strategy"),
            (scope.chain.strategy, scope.at_chain / "strategy"),
            (slot.strategy, at_slot / "strategy"),
        )
        iterations = last_set(
            (scope.defaults.max_iterations, scope.at_defaults / "maxIterations"),
            (spec.max_iterations, at_agent / "maxIterations"),
            (scope.chain.max_iterations, scope.at_chain / "maxIterations"),
            (stage.max_iterations, at / "maxIterations"),
            (slot.max_iterations, at_slot / "maxIterations"),
        )
        found: Servers = ((), None)
        if _strategy(strategy) not in builtin.STRATEGIES_WITHOUT_TOOLS:
            policy = stricter(spec.tool_policy)
            found = self._brought_under(policy) or self._servers(
                policy,
                (spec.mcp_servers, at_agent / "mcpServers"),
                (scope.chain.mcp_servers, scope.at_chain / "mcpServers"),
                (stage.mcp_servers, at / "mcpServers"),
                (slot.mcp_servers, at_slot / "mcpServers"),
            )
        choice = self._providers.choose((slot.llm_provider, at_slot / "llmProvider"))
        return self._make(
            slot.display_name or slot.name,
            slot.name,
            agent,
            strategy,
            choice,
            iterations=iterations,
            servers=found,
            fallback=((stage.fallback, at / "fallback"), (slot.fallback, at_slot / "fallback")),
            wanted=agent is not None,
        )

    def synthesis(self, settings: Synthesis, at: At, stage: Stage) -> Made | None:
        """What joins the results of several agents; it never has MCP tools.

        The agent is the one named, else `synthesis-agent` of the chain's namespace or of the library, else built in.
        """
        agent = self._own_or_shared(settings.agent, builtin.SYNTHESIS_AGENT, at / "synthesis" / "agent")
        spec = AgentSpec() if agent is None else agent.spec
        at_agent = at if agent is None else At.of(agent)
        strategy = last_set(
            (spec.strategy, at_agent / "strategy"), (settings.strategy, at / "synthesis" / "strategy")
        ) or (Strategy.SYNTHESIS, None)
        if strategy[1] is not None and not self._look.joins(Strategy(strategy[0]), strategy[1]):
            strategy = (Strategy.SYNTHESIS, None)
        choice = self._providers.choose((settings.llm_provider, at / "synthesis" / "llmProvider"))
        name = builtin.SYNTHESIS_AGENT if agent is None else agent.metadata.name
        made = self._make(name, name, agent, strategy, choice, fallback=((stage.fallback, at / "fallback"),))
        if made is None or made.plan.instructions:
            return made
        instructions = {"instructions": builtin.SYNTHESIS_INSTRUCTIONS}
        return replace(made, plan=made.plan.model_copy(update=instructions))

    def executive_summary(self) -> Made | None:
        """The summary at the end, if the chain (or else the defaults) wants one; it never has tools.

        Its provider follows the row of the scoring provider in reference section 1.5: the defaults, the defaults for
        this purpose, the chain, the chain for this purpose.
        """
        scope = self._scope
        ours, theirs = scope.chain.executive_summary, scope.defaults.executive_summary
        wishes = [settings.enabled for settings in (ours, theirs) if settings is not None]
        if next((wish for wish in wishes if wish is not None), True) is False:
            return None
        choice = self._providers.choose(
            (ours.llm_provider if ours else None, scope.at_chain / "executiveSummary" / "llmProvider"),
            (theirs.llm_provider if theirs else None, scope.at_defaults / "executiveSummary" / "llmProvider"),
        )
        name = builtin.EXECUTIVE_SUMMARY_AGENT
        return self._make(name, name, None, (Strategy.SINGLE_CALL, None), choice)

    def chat(self, members: Iterable[AgentPlan]) -> Made | None:
        """Who answers follow-up questions, unless the chain takes none; `members` are the agents of all stages.

        The agent is the one named, else `chat-agent` of the chain's namespace or of the library, else built in. Its
        servers are its own, or the chain's (which has none: those of its stages), or those of the chat block.
        """
        scope = self._scope
        settings, at = scope.chain.chat or ChatSettings(), scope.at_chain / "chat"
        if not settings.enabled:
            return None
        agent = self._own_or_shared(settings.agent, builtin.CHAT_AGENT, at / "agent")
        spec = AgentSpec() if agent is None else agent.spec
        at_agent = at if agent is None else At.of(agent)
        strategy = last_set(
            (scope.defaults.strategy, scope.at_defaults / "strategy"),
            (spec.strategy, at_agent / "strategy"),
            (scope.chain.strategy, scope.at_chain / "strategy"),
            (settings.strategy, at / "strategy"),
        )
        iterations = last_set(
            (scope.defaults.max_iterations, scope.at_defaults / "maxIterations"),
            (spec.max_iterations, at_agent / "maxIterations"),
            (scope.chain.max_iterations, scope.at_chain / "maxIterations"),
            (settings.max_iterations, at / "maxIterations"),
        )
        found: Servers = ((), None)
        if _strategy(strategy) not in builtin.STRATEGIES_WITHOUT_TOOLS:
            policy, union = stricter(spec.tool_policy), union_of(members)
            found = self._brought_under(policy) or self._servers(
                policy,
                (spec.mcp_servers if not union else None, at_agent / "mcpServers"),
                (scope.chain.mcp_servers, scope.at_chain / "mcpServers"),
                (settings.mcp_servers, at / "mcpServers"),
            )
            if not found[0]:
                found = (held_to(policy, union), scope.at_chain / "stages" if union else None)
        choice = self._providers.choose((settings.llm_provider, at / "llmProvider"))
        name = builtin.CHAT_AGENT if agent is None else agent.metadata.name
        # A named agent that is not there was reported; the rest is made all the same, which finds its errors too.
        return self._make(name, name, agent, strategy, choice, iterations=iterations, servers=found)

    def _make(
        self,
        name: str,
        agent_name: str,
        agent: Agent | None,
        strategy: tuple[str, At | None] | None,
        choice: Choice | None,
        *,
        iterations: tuple[int, At] | None = None,
        servers: Servers = ((), None),
        fallback: tuple[Level[tuple[FallbackEntry, ...]], ...] = (),
        wanted: bool = True,
    ) -> Made | None:
        """The agent out of its parts; `wanted` is False when it was to be an object and is not there."""
        if choice is None:
            return None
        how = _strategy(strategy)
        at_strategy = strategy[1] if strategy else None
        self._look.runs_on(how, choice.provider, at_strategy or choice.at)
        wish = (agent.spec.native_tools, At.of(agent) / "nativeTools") if agent else (None, choice.at)
        work = self._providers.work(choice, how, wish, bool(servers[0]))
        change = self._providers.fallback(work, *fallback)
        summarizer = self._providers.summarizer() if servers[0] else None
        if not wanted:
            return None
        if agent is not None:
            self._look.use(agent)
        tools = how not in builtin.STRATEGIES_WITHOUT_TOOLS
        plan = AgentPlan(
            name=name,
            agent=agent_name,
            strategy=how,
            provider=choice.used_by(how),
            max_iterations=1 if not tools else iterations[0] if iterations else builtin.MAX_ITERATIONS,
            instructions=(agent.spec.instructions if agent else None) or "",
            servers=acting_as(agent.spec.service_account_name if agent else None, servers[0]),
            native_tools=tuple(work.native_tools),
            fallback=change.plans,
            fallback_skipped=change.skipped,
            summarizer=summarizer.used_by(Strategy.SINGLE_CALL) if summarizer else None,
        )
        origins = _origins(at_strategy, choice, iterations if tools else None, servers, work, change)
        if summarizer is not None:
            origins["summarizer"] = summarizer.at
        return Made(plan, origins)

    def _servers(self, policy: ToolPolicy, *levels: Level[tuple[McpSelection, ...]]) -> Servers:
        chosen = last_filled(*levels)
        if chosen is None:
            return (), None
        selections, at = chosen
        return servers(selections, at, (at.namespace,), self._look, policy), at

    def _brought_under(self, policy: ToolPolicy) -> Servers | None:
        """What the alert brought, under the policy of an agent."""
        return (held_to(policy, self._brought[0]), self._brought[1]) if self._brought else None

    def _own_or_shared(self, name: str | None, builtin_name: str, at: At) -> Agent | None:
        """The Agent a field names; one with the name of the built-in may also be the library's, or not be at all."""
        scope, catalog = self._scope, self._look.catalog
        if name is not None and name != builtin_name:
            return self._look.named(Agent, scope.home, name, at)
        labels = catalog.namespace_labels(scope.namespace)
        for place in (scope.home, *scope.path[1:]):
            agent = catalog.get(Agent, place, builtin_name)
            if agent is not None and (place == scope.home or admits(agent, scope.namespace, labels)):
                self._look.note(agent, at)
                return agent
        return None


def _strategy(chosen: tuple[str, At | None] | None) -> Strategy:
    return Strategy(chosen[0]) if chosen else builtin.STRATEGY


def _origins(
    strategy: At | None,
    choice: Choice,
    iterations: tuple[int, At] | None,
    servers: Servers,
    work: Work,
    change: Fallbacks,
) -> dict[str, At]:
    fields = {
        "strategy": strategy,
        "provider": choice.at,
        "max_iterations": iterations[1] if iterations else None,
        "servers": servers[1],
        "fallback": change.at,
    }
    fields |= {f"native_tools.{tool}": at for tool, at in work.native_tools.items()}
    return {name: at for name, at in fields.items() if at is not None}


def servers(
    selections: Sequence[McpSelection], at: At, path: Sequence[str], look: Lookup, policy: ToolPolicy = ToolPolicy.ALL
) -> tuple[ServerPlan, ...]:
    """The servers that field `at` selects, each from the first namespace of `path` that has it.

    `policy` is that of the agent they are for; All while no agent is known.
    """
    plans: list[ServerPlan] = []
    for index, selection in enumerate(selections):
        server = look.shared(MCPServer, path, selection.name, at[index] / "name")
        if server is not None:
            look.tools_exist(server, selection, at[index], policy)
            plans.append(server_plan(server, look.use(server), selection))
    return held_to(policy, plans)


def held_to(policy: ToolPolicy, plans: Iterable[ServerPlan]) -> tuple[ServerPlan, ...]:
    """The servers with the stricter of their policy and an agent's."""
    return tuple(plan.model_copy(update={"policy": stricter(plan.policy, policy)}) for plan in plans)


def acting_as(account: str | None, plans: Iterable[ServerPlan]) -> tuple[ServerPlan, ...]:
    """The servers, those that want one with the account of the agent that they are for; None leaves them theirs."""
    return tuple(
        plan.model_copy(update={"account": account}) if account is not None and plan.wants_account else plan
        for plan in plans
    )


def union_of(members: Iterable[AgentPlan]) -> tuple[ServerPlan, ...]:
    """The servers of several agents, each once, with all the tools that one of them may use of it.

    Where one of them may change things, so may who gets the union, within a policy of its own (`held_to`). A server
    that acts as somebody keeps acting so where all that use it agree on whom, else as nobody.
    """
    found: dict[str, ServerPlan] = {}
    for server in (server for member in members for server in member.servers):
        before = found.get(server.name)
        if before is None:
            found[server.name] = server
            continue
        either = ToolPolicy.ALL if ToolPolicy.ALL in (before.policy, server.policy) else ToolPolicy.READ_ONLY
        selected = before.selected and server.selected and tuple(dict.fromkeys(before.selected + server.selected))
        account = before.account if before.account == server.account else None
        changes = {"selected": selected, "policy": either, "account": account}
        found[server.name] = before.model_copy(update=changes)
    return tuple(found.values())
