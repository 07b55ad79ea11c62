"""The tool servers of a plan: which of them each agent gets, and whether they act with rights of another namespace.

Decision: servers are found without looking at models, so that it is known which models may serve them before one is
chosen (`acts_elsewhere_in`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tarsy.plan import builtin
from tarsy.plan.errors import FieldPath
from tarsy.plan.levels import Level, Scope, last_filled, last_set
from tarsy.plan.lookup import Lookup
from tarsy.plan.model import AgentPlan, ServerPlan, Strategy
from tarsy.plan.parts import server_plan
from tarsy.plan.policy import ToolPolicy, stricter
from tarsy.plan.reach import reach_plan
from tarsy.plan.scope import admits
from tarsy.resources.v1alpha1.agent import Agent, AgentSpec
from tarsy.resources.v1alpha1.chain import ChatSettings, Stage, StageAgent
from tarsy.resources.v1alpha1.common import McpSelection
from tarsy.resources.v1alpha1.mcp_server import MCPServer

Servers = tuple[tuple[ServerPlan, ...], FieldPath | None]
_Chosen = tuple[str, FieldPath] | None


class Tools:
    """Finds the tool servers of the agents of one plan; what is wrong goes to `look`."""

    def __init__(self, scope: Scope, look: Lookup, brought: Servers | None) -> None:
        """Takes the servers that the alert brought (they replace those of every agent), or None."""
        self._scope = scope
        self._look = look
        self._brought = brought

    def strategy_of_stage(self, spec: AgentSpec, at_agent: FieldPath, slot: StageAgent, at_slot: FieldPath) -> _Chosen:
        """The strategy of the agent in one slot of a stage, with the field it stands in."""
        scope = self._scope
        return last_set(
            (scope.defaults.strategy, scope.at_defaults / "strategy"),
            (spec.strategy, at_agent / "strategy"),
            (scope.chain.strategy, scope.at_chain / "strategy"),
            (slot.strategy, at_slot / "strategy"),
        )

    def strategy_of_chat(self, spec: AgentSpec, at_agent: FieldPath, settings: ChatSettings, at: FieldPath) -> _Chosen:
        """The strategy of whoever answers questions, with the field it stands in."""
        scope = self._scope
        return last_set(
            (scope.defaults.strategy, scope.at_defaults / "strategy"),
            (spec.strategy, at_agent / "strategy"),
            (scope.chain.strategy, scope.at_chain / "strategy"),
            (settings.strategy, at / "strategy"),
        )

    def of_stage(
        self,
        stage: Stage,
        at: FieldPath,
        slot: StageAgent,
        at_slot: FieldPath,
        spec: AgentSpec,
        at_agent: FieldPath,
        strategy: _Chosen,
    ) -> Servers:
        """The servers of the agent in one slot of a stage."""
        if strategy_in(strategy) in builtin.STRATEGIES_WITHOUT_TOOLS:
            return (), None
        policy = stricter(spec.tool_policy)
        return self._brought_under(policy) or self._servers(
            policy,
            (spec.mcp_servers, at_agent / "mcpServers"),
            (self._scope.chain.mcp_servers, self._scope.at_chain / "mcpServers"),
            (stage.mcp_servers, at / "mcpServers"),
            (slot.mcp_servers, at_slot / "mcpServers"),
        )

    def of_chat(
        self,
        settings: ChatSettings,
        at: FieldPath,
        spec: AgentSpec,
        at_agent: FieldPath,
        strategy: _Chosen,
        union: tuple[ServerPlan, ...],
    ) -> Servers:
        """The servers of whoever answers questions; `union` are those of all stages."""
        if strategy_in(strategy) in builtin.STRATEGIES_WITHOUT_TOOLS:
            return (), None
        policy = stricter(spec.tool_policy)
        found = self._brought_under(policy) or self._servers(
            policy,
            (spec.mcp_servers if not union else None, at_agent / "mcpServers"),
            (self._scope.chain.mcp_servers, self._scope.at_chain / "mcpServers"),
            (settings.mcp_servers, at / "mcpServers"),
        )
        return found if found[0] else (held_to(policy, union), self._scope.at_chain / "stages" if union else None)

    def own_or_shared(self, name: str | None, builtin_name: str, at: FieldPath) -> Agent | None:
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

    def _servers(self, policy: ToolPolicy, *levels: Level[tuple[McpSelection, ...]]) -> Servers:
        chosen = last_filled(*levels)
        if chosen is None:
            return (), None
        selections, at = chosen
        if at.namespace != self._scope.home:
            # An Agent of the library in a chain of the run's namespace: what it names is not of that chain's owner.
            selections = tuple(one for one in selections if self._let_in(one, at))
        return servers(selections, at, (at.namespace,), self._scope.namespace, self._look, policy), at

    def _let_in(self, selection: McpSelection, at: FieldPath) -> bool:
        server = self._look.catalog.get(MCPServer, at.namespace, selection.name)
        labels = self._look.catalog.namespace_labels(self._scope.namespace)
        if server is None or admits(server, self._scope.namespace, labels):
            return True
        chain = self._scope.at_chain
        self._look.leave_out(
            f"{at.kind} {at.namespace}/{at.name}: {at.path}: {server} is not used in Chain {chain.namespace}/"
            f"{chain.name}: its spec.allowedNamespaces does not admit namespace {self._scope.namespace}"
        )
        return False

    def _brought_under(self, policy: ToolPolicy) -> Servers | None:
        """What the alert brought, under the policy of an agent."""
        return (held_to(policy, self._brought[0]), self._brought[1]) if self._brought else None


def acts_elsewhere_in(scope: Scope, look: Lookup, brought: Servers | None) -> tuple[str, ...]:
    """The servers in a run, by namespace and name, that act with the rights of another namespace than the run's.

    Args:
        scope: of the run.
        look: notes nothing that counts; a lookup of its own.
        brought: the servers that the alert brought, or None.
    """
    found = {f"{server.ref.namespace}/{server.name}" for server in _all(scope, look, brought) if _foreign(server)}
    return tuple(sorted(found))


def _foreign(server: ServerPlan) -> bool:
    return server.reach is not None and server.reach.foreign


def _all(scope: Scope, look: Lookup, brought: Servers | None) -> Iterator[ServerPlan]:
    tools = Tools(scope, look, brought)
    found: list[ServerPlan] = []
    for number, stage in enumerate(scope.chain.stages):
        at = (scope.at_chain / "stages")[number]
        for index, slot in enumerate(stage.agents):
            at_slot = (at / "agents")[index]
            agent = look.named(Agent, scope.home, slot.name, at_slot / "name")
            spec, at_agent = AgentSpec() if agent is None else agent.spec, FieldPath(Agent.KIND, scope.home, slot.name)
            strategy = tools.strategy_of_stage(spec, at_agent, slot, at_slot)
            found += tools.of_stage(stage, at, slot, at_slot, spec, at_agent, strategy)[0]
    yield from found
    settings, at = scope.chain.chat or ChatSettings(), scope.at_chain / "chat"
    if settings.enabled:
        answers = tools.own_or_shared(settings.agent, builtin.CHAT_AGENT, at / "agent")
        spec, at_agent = (AgentSpec(), at) if answers is None else (answers.spec, FieldPath.of(answers))
        strategy = tools.strategy_of_chat(spec, at_agent, settings, at)
        yield from tools.of_chat(settings, at, spec, at_agent, strategy, tuple(found))[0]


def strategy_in(chosen: tuple[str, FieldPath | None] | None) -> Strategy:
    """The strategy that was chosen, else the built-in one."""
    return Strategy(chosen[0]) if chosen else builtin.STRATEGY


def servers(
    selections: Sequence[McpSelection],
    at: FieldPath,
    path: Sequence[str],
    namespace: str,
    look: Lookup,
    policy: ToolPolicy = ToolPolicy.ALL,
) -> tuple[ServerPlan, ...]:
    """The servers that field `at` selects for a run in `namespace`.

    Each is from the first namespace of `path` that has it. `policy` is that of the agent they are for; All while no
    agent is known.
    """
    plans: list[ServerPlan] = []
    labels = look.catalog.namespace_labels(namespace)
    for index, selection in enumerate(selections):
        server = look.shared(MCPServer, path, selection.name, at[index] / "name")
        if server is not None:
            look.tools_exist(server, selection, at[index], policy)
            reach = reach_plan(server, namespace, labels)
            plans.append(server_plan(server, look.use(server), selection, reach))
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
