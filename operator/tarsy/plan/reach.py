"""Decides whose rights the calls of a tool server use, and which namespaces they reach.

Decision: rights are the server's unless it acts as a ServiceAccount of the run's namespace and holds no credentials of
its own. Calls with the rights of another namespace are held to the run's namespace, outside of what a model writes
(`tarsy.mcp.namespace_binding`, or the server itself); only the owner of the server grants more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache, partial

from tarsy.plan.model import (
    AgentPlan,
    HttpTransport,
    Plan,
    ReachPlan,
    ServerPlan,
    StdioTransport,
    WorkloadTransport,
)
from tarsy.plan.scope import lets_in
from tarsy.resources.v1alpha1.mcp_server import MCPServer

KEPT_PLANS = 64
"""Parsed plans that are kept: the runs of a chain have equal plans until its configuration changes."""

LARGEST_KEPT = 128 * 1024
"""Characters or bytes of the largest stored plan that is kept parsed."""


def acts_elsewhere(server: MCPServer, namespace: str) -> bool:
    """Whether the calls of a server for a run in `namespace` use the rights of another namespace."""
    if server.metadata.namespace == namespace:
        return False
    transport, run = server.spec.transport, server.spec.run
    if run is not None:
        return not run.kubeconfig or any(item.value_from for item in run.env)
    if transport.stdio is not None:
        return not transport.stdio.kubeconfig or any(item.value_from for item in transport.stdio.env)
    http = transport.http
    return http is None or http.token_audience is None or any(header.value_from for header in http.headers)


def reach_plan(server: MCPServer, namespace: str, labels: Mapping[str, str]) -> ReachPlan:
    """Returns the namespaces that a server can reach in a run in `namespace`, whose labels are `labels`."""
    spec = server.spec.reach
    foreign = acts_elsewhere(server, namespace)
    return ReachPlan(
        foreign=foreign,
        namespace=namespace if foreign and not lets_in(spec.unbound_namespaces, labels) else None,
        bound_by=spec.bound_by,
        arguments=spec.namespace_arguments,
        cluster_tools=spec.cluster_tools,
    )


def reach_message(server: MCPServer, reach: ReachPlan) -> str:
    """The instructions of a server, with the namespace that its calls are held to."""
    said = server.spec.instructions or ""
    if reach.namespace is None:
        return said
    where = (
        f"In this investigation the tools of {server.metadata.name} reach namespace {reach.namespace} and no other. "
        "What lies in other namespaces cannot be seen with them: name it as what is not known."
    )
    return f"{said.rstrip()}\n\n{where}\n" if said.strip() else where


def read_plan(text: str | bytes) -> Plan:
    """Parses a stored plan; bounds the servers of other namespaces in plans that are older than the field `reach`.

    Raises:
        ValidationError: this version cannot read it.
    """
    return _kept(text) if len(text) <= LARGEST_KEPT else _read(text)


@lru_cache(maxsize=KEPT_PLANS)
def _kept(text: str | bytes) -> Plan:
    return _read(text)


def _read(text: str | bytes) -> Plan:
    plan = Plan.model_validate_json(text)
    if all(server.reach is not None for agent in _agents(plan) for server in agent.servers):
        return plan
    stages = tuple(
        stage.with_agents(partial(_bound, namespace=plan.namespace), syntheses=True) for stage in plan.stages
    )
    return plan.model_copy(
        update={"stages": stages, "chat": _bound(plan.chat, plan.namespace) if plan.chat is not None else None}
    )


def _agents(plan: Plan) -> Iterator[AgentPlan]:
    for stage in plan.stages:
        yield from stage.members
        yield from stage.syntheses
    if plan.chat is not None:
        yield plan.chat


def _bound(agent: AgentPlan, namespace: str) -> AgentPlan:
    return agent.model_copy(update={"servers": tuple(_with_reach(server, namespace) for server in agent.servers)})


def _with_reach(server: ServerPlan, namespace: str) -> ServerPlan:
    if server.reach is not None:
        return server
    foreign = server.ref.namespace != namespace and not (server.wants_account and not _holds_credentials(server))
    reach = ReachPlan(foreign=foreign, namespace=namespace if foreign else None)
    return server.model_copy(update={"reach": reach})


def _holds_credentials(server: ServerPlan) -> bool:
    match server.transport:
        case StdioTransport():
            return any(value.secret for value in server.transport.env)
        case HttpTransport():
            return any(value.secret for value in server.transport.headers)
        case WorkloadTransport():  # an old plan does not hold what its pod is given
            return False
