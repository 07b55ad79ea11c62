"""Resolves the tool servers of a plan, and whether they act with the rights of another namespace.

Decision: servers are found without looking at models, so that it is known which models may serve them before one is
chosen (`acts_elsewhere_in`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tarsy.plan import builtin
from tarsy.plan.errors import FieldPath
from tarsy.plan.levels import AgentLevels, Level, Scope, last_filled
from tarsy.plan.lookup import Lookup
from tarsy.plan.model import AgentPlan, ServerPlan, Strategy
from tarsy.plan.parts import server_plan
from tarsy.plan.policy import ToolPolicy, looser, stricter
from tarsy.plan.reach import reach_plan
from tarsy.plan.scope import admits
from tarsy.resources.v1alpha1.agent import Agent
from tarsy.resources.v1alpha1.chain import ChatSettings
from tarsy.resources.v1alpha1.common import McpSelection
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from tarsy.resources.v1alpha1.stage import Stage

Servers = tuple[tuple[ServerPlan, ...], FieldPath | None]


class Tools:
    """Finds the tool servers of the agents of one plan; what is wrong goes to `look`."""

    def __init__(self, scope: Scope, look: Lookup, brought: Servers | None) -> None:
        """Takes the servers that the alert names itself (they replace those of every agent), or None."""
        self._scope = scope
        self._look = look
        self._brought = brought

    def levels_of_stage(self, stage: Stage, at: FieldPath, index: int) -> AgentLevels:
        """Returns the levels of one agent of a stage; reports an Agent that does not exist.

        Args:
            stage: the stage.
            at: its field.
            index: of its entry in `agents`.
        """
        scope, slot, at_slot = self._scope, stage.agents[index], (at / "agents")[index]
        agent = self._look.named(Agent, scope.home, slot.name, at_slot / "name")
        at_agent = FieldPath(Agent.KIND, scope.home, slot.name)
        return AgentLevels(scope, agent, at_agent, ((stage, at), (slot, at_slot)))

    def levels_of_sub_agent(self, stage: Stage, at: FieldPath, index: int, place: int) -> AgentLevels:
        """Returns the levels of an agent that one of a stage may dispatch, without the entry of that one.

        Args:
            stage: the stage.
            at: its field.
            index: of the entry in `agents` that may dispatch it.
            place: in the `subAgents` of that entry.
        """
        scope, name = self._scope, stage.agents[index].sub_agents[place].agent_ref.name
        field = (((at / "agents")[index] / "subAgents")[place]) / "agentRef" / "name"
        agent = self._look.named(Agent, scope.home, name, field)
        return AgentLevels(scope, agent, FieldPath(Agent.KIND, scope.home, name), ((stage, at),))

    def levels_of_chat(self) -> AgentLevels | None:
        """Returns the levels of the agent that answers questions; None where the chain takes none.

        The agent is the one named, else `chat-agent` of the chain's namespace or of the library, else built in.
        """
        scope = self._scope
        settings, at = scope.chain.chat or ChatSettings(), scope.at_chain / "chat"
        if not settings.enabled:
            return None
        agent = self.own_or_shared(settings.agent, builtin.CHAT_AGENT, at / "agent")
        return AgentLevels(scope, agent, at if agent is None else FieldPath.of(agent), ((settings, at),))

    def servers_of(self, levels: AgentLevels, union: tuple[ServerPlan, ...] | None = None) -> Servers:
        """Returns the servers of an agent.

        Args:
            levels: its levels.
            union: for the agent that answers questions, the servers of all stages. It gets them where chain and chat
                block name none, instead of its own.
        """
        if strategy_in(levels.strategy()) in builtin.STRATEGIES_WITHOUT_TOOLS:
            return (), None
        policy = stricter(levels.spec.tool_policy)
        own, *others = levels.servers()
        found = self._brought_under(policy) or self._servers(policy, *others if union else (own, *others))
        if union is None or found[0]:
            return found
        return held_to(policy, union), self._scope.at_chain / "stages" if union else None

    def own_or_shared(self, name: str | None, builtin_name: str, at: FieldPath) -> Agent | None:
        """Returns the Agent that a field names; one with the built-in name may be the library's, or may not exist.

        Args:
            name: the name in the field, or None.
            builtin_name: name of the built-in agent.
            at: the field.
        """
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
        """Returns the alert's servers, under the policy of an agent."""
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
            found += tools.servers_of(tools.levels_of_stage(stage, at, index))[0]
            for place in range(len(slot.sub_agents)):
                found += tools.servers_of(tools.levels_of_sub_agent(stage, at, index, place))[0]
    yield from found
    if (chat := tools.levels_of_chat()) is not None:
        yield from tools.servers_of(chat, tuple(found))[0]


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
    """Returns the servers that a field selects.

    Args:
        selections: the selections of the field.
        at: the field.
        path: namespaces in which a server is looked up, in order.
        namespace: the run's.
        look: resolves references and gathers errors.
        policy: the agent's; All while no agent is known.
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
    """The servers with the account of the agent that they are for; None leaves them theirs.

    Those that want one act as it, and what the calls of any of them change is read with it.
    """
    return tuple(plans) if account is None else tuple(_with_account(account, plan) for plan in plans)


def _with_account(account: str, plan: ServerPlan) -> ServerPlan:
    changes: dict[str, object] = {"account": account} if plan.wants_account else {}
    if plan.approval is not None:
        changes["approval"] = plan.approval.model_copy(update={"account": account})
    return plan.model_copy(update=changes) if changes else plan


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
        either = looser(before.policy, server.policy)
        selected = before.selected and server.selected and tuple(dict.fromkeys(before.selected + server.selected))
        account = before.account if before.account == server.account else None
        changes: dict[str, object] = {"selected": selected, "policy": either, "account": account}
        if before.approval is not None and before.approval != server.approval:
            changes["approval"] = before.approval.model_copy(update={"account": None})
        found[server.name] = before.model_copy(update=changes)
    return tuple(found.values())
