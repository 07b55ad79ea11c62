"""Reports the limits of a Chain that other namespaces run: the condition `ReachBound`.

Decision: it is told on the Chain, because the owner of the Chain can grant more. It names the servers that act with the
rights of its namespace, the namespaces whose runs they are bound for, and those whose providers are not used with them.
"""

from collections.abc import Iterator, Sequence
from datetime import datetime

from tarsy.controllers.machinery.cache import Cache
from tarsy.plan.check import providers_named
from tarsy.plan.reach import acts_elsewhere
from tarsy.plan.scope import admits, lets_in
from tarsy.resources.meta import AnyResource, Condition, Conditions, set_condition
from tarsy.resources.v1alpha1 import Agent, Chain, InvestigationDefaults, MCPServer
from tarsy.resources.v1alpha1.common import ConditionType, ConfigStatus, McpSelection
from tarsy.resources.v1alpha1.investigation_defaults import DEFAULTS_NAME
from tarsy.resources.v1alpha1.namespace_grant import AllowedNamespaces

_LISTED = 10


def with_reach(status: ConfigStatus, obj: AnyResource, cache: Cache, now: datetime) -> ConfigStatus:
    """Adds the condition `ReachBound` where `obj` is a Chain whose tools are bound for other namespaces.

    Args:
        status: of the object.
        obj: the object.
        cache: the cached objects.
        now: the current time.
    """
    said = sentence(obj, cache) if isinstance(obj, Chain) else None
    kept: Conditions = tuple(item for item in status.conditions if item.type != ConditionType.REACH_BOUND)
    if said is None:
        return status.model_copy(update={"conditions": kept})
    new = Condition(
        type=ConditionType.REACH_BOUND,
        status="True",
        reason="RunNamespaceOnly",
        message=said,
        observed_generation=obj.metadata.generation,
    )
    return status.model_copy(update={"conditions": set_condition(status.conditions, new, now)})


def sentence(chain: Chain, cache: Cache) -> str | None:
    """Explains which runs of a Chain are bound to their own namespace, and how to grant more; None where none is."""
    foreign = [server for server in servers_of(chain, cache) if acts_elsewhere(server, "")]
    if not foreign:
        return None
    parts = [
        f"Runs of {runs} reach only their own namespace through {server}, which acts with the rights of namespace "
        f"{server.metadata.namespace}; to grant them more, select them in its spec.reach.unboundNamespaces."
        for server in foreign
        if (runs := _runs(chain, server.spec.reach.unbound_namespaces, cache)) is not None
    ]
    if lenders := _named(_lenders(chain, cache)):
        parts.append(
            f"LLMProviders that InvestigationDefaults of {lenders} name are not used in its runs; to use them, select "
            "those namespaces in spec.allowedProviderNamespaces."
        )
    return " ".join(parts) or None


def servers_of(chain: Chain, cache: Cache) -> list[MCPServer]:
    """Lists the MCPServers that a Chain and its Agents name, each once."""
    home, spec = chain.metadata.namespace, chain.spec
    found: dict[str, MCPServer] = {}
    selections: list[Sequence[McpSelection] | None] = [spec.mcp_servers, spec.chat.mcp_servers if spec.chat else None]
    slots = [slot for stage in spec.stages for slot in stage.agents]
    agents = {slot.name for slot in slots} | {sub.agent_ref.name for slot in slots for sub in slot.sub_agents}
    for stage in spec.stages:
        selections += [stage.mcp_servers, *(slot.mcp_servers for slot in stage.agents)]
    for name in sorted(agents | {spec.chat.agent} if spec.chat and spec.chat.agent else agents):
        agent = cache.get(Agent, home, name)
        selections.append(agent.spec.mcp_servers if agent is not None else None)
    for selection in (one for chosen in selections for one in chosen or ()):
        server = cache.get(MCPServer, home, selection.name)
        if server is not None:
            found.setdefault(selection.name, server)
    return [found[name] for name in sorted(found)]


def _runs(chain: Chain, unbound: AllowedNamespaces | None, cache: Cache) -> str | None:
    """Names the namespaces whose runs of a Chain are bound; None where there are none."""
    allowed, home = chain.spec.allowed_namespaces, chain.metadata.namespace
    if allowed is None or allowed.from_ == "None" or (unbound is not None and unbound.from_ == "All"):
        return None
    if allowed.from_ == "All" and (unbound is None or unbound.from_ == "None"):
        return "all other namespaces"
    there = (name for name in cache.namespaces if name != home)
    bound = [
        name
        for name in there
        if admits(chain, name, cache.namespace_labels(name)) and not lets_in(unbound, cache.namespace_labels(name))
    ]
    return _named(bound)


def _lenders(chain: Chain, cache: Cache) -> Iterator[str]:
    """Lists the namespaces whose defaults name providers that a Chain does not accept."""
    grant = chain.spec.allowed_provider_namespaces
    for key in cache.keys_of(InvestigationDefaults.KIND):
        defaults = cache.get(InvestigationDefaults, key.namespace, DEFAULTS_NAME)
        if defaults is None or key.namespace == chain.metadata.namespace or not providers_named(defaults):
            continue
        labels = cache.namespace_labels(key.namespace)
        if admits(chain, key.namespace, labels) and not lets_in(grant, labels):
            yield key.namespace


def _named(namespaces: Iterator[str] | list[str]) -> str | None:
    names = sorted(namespaces)
    if not names:
        return None
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"namespace{'s' if len(names) > 1 else ''} {', '.join(names[:_LISTED])}{more}"
