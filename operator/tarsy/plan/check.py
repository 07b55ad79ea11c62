"""Checks a configuration object by itself, and lists the objects that it names.

Decision: both come from one walk (`_named`), so an object is checked again for exactly the names it was checked by.
Only its own references are checked here; `tarsy.plan.readiness` checks whether a run could start with it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tarsy.plan import builtin
from tarsy.plan.catalog import Catalog
from tarsy.plan.cron_times import schedule_errors
from tarsy.plan.errors import FieldPath, PlanError
from tarsy.plan.lookup import Lookup
from tarsy.plan.model import ConfigMapKey, SecretKey, Strategy
from tarsy.plan.policy import ToolPolicy, names, stricter
from tarsy.plan.select import claimants
from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1.agent import Agent
from tarsy.resources.v1alpha1.alert_route import AlertRoute
from tarsy.resources.v1alpha1.alert_schedule import AlertSchedule
from tarsy.resources.v1alpha1.chain import Chain
from tarsy.resources.v1alpha1.common import FallbackEntry, McpSelection, SecretKeyRef
from tarsy.resources.v1alpha1.investigation_defaults import InvestigationDefaults
from tarsy.resources.v1alpha1.llm_provider import LLMProvider
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from tarsy.resources.v1alpha1.transport import Header
from tarsy.resources.v1alpha1.workload import EnvVar

Nameable = type[Agent] | type[LLMProvider] | type[MCPServer]


@dataclass(frozen=True, slots=True)
class _Named:
    """A field that names an object, with the tools it selects of it."""

    kind: Nameable
    name: str
    at: FieldPath
    selection: McpSelection | None = None


def references(obj: AnyResource) -> set[tuple[str, str, str]]:
    """Returns kind, namespace and name of the objects that `obj` names; when one changes, `obj` is checked again."""
    return {(named.kind.KIND, obj.metadata.namespace, named.name) for named in _named(obj)}


def providers_named(defaults: InvestigationDefaults) -> set[str]:
    """The LLMProviders that defaults name, for any purpose."""
    return {named.name for named in _named(defaults) if named.kind is LLMProvider}


def named_objects(obj: AnyResource, catalog: Catalog) -> list[tuple[AnyResource, FieldPath]]:
    """The objects that `obj` names and that are there, each with the field that names it."""
    look = Lookup(catalog)
    for named in _named(obj):
        at = named.at if named.selection is None else named.at / "name"
        look.named(named.kind, obj.metadata.namespace, named.name, at)
    return list(look.found.values())


def secrets(obj: AnyResource) -> list[tuple[SecretKey, FieldPath]]:
    """The Secret keys that `obj` names for its use, each with its field.

    A Secret is only ever in the object's own namespace.
    """
    at = FieldPath.of(obj)
    found: list[tuple[SecretKeyRef, FieldPath]] = []
    if isinstance(obj, LLMProvider) and obj.spec.api_key_secret_ref is not None:
        found.append((obj.spec.api_key_secret_ref, at / "apiKeySecretRef"))
    if isinstance(obj, AlertRoute) and obj.spec.auth is not None:
        if obj.spec.auth.basic is not None:
            found.append((obj.spec.auth.basic.password_secret_ref, at / "auth" / "basic" / "passwordSecretRef"))
        if obj.spec.auth.hmac is not None:
            found.append((obj.spec.auth.hmac.secret_ref, at / "auth" / "hmac" / "secretRef"))
    if isinstance(obj, InvestigationDefaults):
        for index, host in enumerate(obj.spec.runbook_hosts):
            if host.token_secret_ref is not None:
                found.append((host.token_secret_ref, (at / "runbookHosts")[index] / "tokenSecretRef"))
    if isinstance(obj, MCPServer):
        stdio, http = obj.spec.transport.stdio, obj.spec.transport.http
        values: list[tuple[EnvVar | Header, FieldPath]] = []
        if stdio is not None:
            values += [(item, (at / "transport" / "stdio" / "env")[n]) for n, item in enumerate(stdio.env)]
        if obj.spec.run is not None:
            values += [(item, (at / "run" / "env")[n]) for n, item in enumerate(obj.spec.run.env)]
        if http is not None:
            values += [(item, (at / "transport" / "http" / "headers")[n]) for n, item in enumerate(http.headers)]
            at_http = at / "transport" / "http"
            if http.bearer_token_secret_ref is not None:
                found.append((http.bearer_token_secret_ref, at_http / "bearerTokenSecretRef"))
            if http.tls is not None and http.tls.ca_from.secret_key_ref is not None:
                found.append((http.tls.ca_from.secret_key_ref, at_http / "tls" / "caFrom" / "secretKeyRef"))
        for item, field in values:
            if item.value_from is not None:
                found.append((item.value_from.secret_key_ref, field / "valueFrom" / "secretKeyRef"))
    return [_key(at, ref, field) for ref, field in found]


def notify_secrets(obj: AnyResource) -> list[tuple[SecretKey, FieldPath]]:
    """Returns the Secret keys of notification targets; no run needs them, so they do not affect readiness."""
    if not isinstance(obj, Chain | AlertRoute):
        return []
    at = FieldPath.of(obj)
    found: list[tuple[SecretKey, FieldPath]] = []
    for index, target in enumerate(obj.spec.notify):
        field = (at / "notify")[index]
        if target.slack is not None:
            found.append(_key(at, target.slack.token_secret_ref, field / "slack" / "tokenSecretRef"))
        if target.webhook is not None:
            found.append(_key(at, target.webhook.signing_secret_ref, field / "webhook" / "signingSecretRef"))
        for number, header in enumerate(target.request.headers if target.request is not None else ()):
            if header.value_from is not None:
                at_header = (field / "request" / "headers")[number] / "valueFrom" / "secretKeyRef"
                found.append(_key(at, header.value_from.secret_key_ref, at_header))
    return found


def _key(at: FieldPath, ref: SecretKeyRef, field: FieldPath) -> tuple[SecretKey, FieldPath]:
    return SecretKey(namespace=at.namespace, name=ref.name, key=ref.key), field


def config_maps(obj: AnyResource) -> list[tuple[ConfigMapKey, FieldPath]]:
    """The ConfigMap keys that `obj` names and that are fetched on use, each with its field."""
    http = obj.spec.transport.http if isinstance(obj, MCPServer) else None
    if http is None or http.tls is None or http.tls.ca_from.config_map_key_ref is None:
        return []
    at, ref = FieldPath.of(obj), http.tls.ca_from.config_map_key_ref
    field = at / "transport" / "http" / "tls" / "caFrom" / "configMapKeyRef"
    return [(ConfigMapKey(namespace=at.namespace, name=ref.name, key=ref.key), field)]


def check_references(obj: AnyResource, catalog: Catalog) -> list[PlanError]:
    """Returns the errors that make `obj` not Ready, in the order of its fields.

    Secrets (see `secrets`) and whether a server answers are not looked at: that needs more than a catalog.
    """
    look = Lookup(catalog)
    for named in _named(obj):
        if named.selection is None:
            look.named(named.kind, obj.metadata.namespace, named.name, named.at)
            continue
        server = look.named(MCPServer, obj.metadata.namespace, named.name, named.at / "name")
        if server is not None:
            policy = stricter(obj.spec.tool_policy) if isinstance(obj, Agent) else ToolPolicy.ALL
            look.tools_exist(server, named.selection, named.at, policy)
    match obj:
        case Chain():
            _check_chain(obj, look)
        case LLMProvider():
            look.native_tools_exist(obj)
            look.thinking_fits(obj)
        case MCPServer():
            _check_tools(obj, look)
        case AlertSchedule():
            return [error for error, _ in schedule_errors(obj)]
        case _:
            pass
    return list(look.errors)


def _check_tools(server: MCPServer, look: Lookup) -> None:
    """Reports lists that leave nothing, and such as contradict each other."""
    spec, at = server.spec, FieldPath.of(server)
    allow, deny = spec.tools.allow, spec.tools.deny
    if allow is not None and all(names(deny, entry) for entry in allow):
        look.report(at / "tools" / "deny", "denies all of spec.tools.allow; deny fewer tools")
    for index, entry in enumerate(spec.tools.read_only):
        if entry in spec.tools.destructive:
            look.report(
                (at / "tools" / "readOnly")[index], f"{entry} is also in spec.tools.destructive; keep it in one of them"
            )
    told = spec.trust_annotations or any(not names(deny, entry) for entry in spec.tools.read_only)
    if stricter(spec.tool_policy) is ToolPolicy.READ_ONLY and not told:
        look.report(
            at / "toolPolicy",
            "agents get only tools that are known to be read-only, and none is known: list them in "
            "spec.tools.readOnly, or set spec.trustAnnotations: true to trust the server's annotations, or set "
            "toolPolicy: Approve or All here and on the agents that may make changes",
        )


def _check_chain(chain: Chain, look: Lookup) -> None:
    at = FieldPath.of(chain)
    for index, stage in enumerate(chain.spec.stages):
        look.stage_fits(stage, (at / "stages")[index])
        if stage.synthesis is not None and stage.synthesis.strategy is not None:
            look.joins(Strategy(stage.synthesis.strategy), (at / "stages")[index] / "synthesis" / "strategy")
    for index, alert_type in enumerate(chain.spec.alert_types):
        names = [other.metadata.name for other in claimants(look.catalog, at.namespace, alert_type)]
        others = ", ".join(name for name in names if name != at.name)
        if others:
            look.report(
                (at / "alertTypes")[index],
                f"alert type {alert_type} is also claimed by Chain {others} of this namespace; keep it in one of them",
            )


def _named(obj: AnyResource) -> Iterator[_Named]:
    at = FieldPath.of(obj)
    match obj:
        case Agent():
            yield from _selected(obj.spec.mcp_servers, at)
        case InvestigationDefaults():
            yield from _provider(obj.spec.llm_provider, at)
            yield from _fallback(obj.spec.fallback, at)
            if obj.spec.executive_summary is not None:
                yield from _provider(obj.spec.executive_summary.llm_provider, at / "executiveSummary")
            if obj.spec.summarization is not None:
                yield from _provider(obj.spec.summarization.llm_provider, at / "summarization")
        case Chain():
            yield from _named_by_chain(obj, at)
        case _:
            return


def _named_by_chain(chain: Chain, at: FieldPath) -> Iterator[_Named]:
    spec = chain.spec
    yield from _provider(spec.llm_provider, at)
    yield from _selected(spec.mcp_servers, at)
    yield from _fallback(spec.fallback, at)
    for number, stage in enumerate(spec.stages):
        at_stage = (at / "stages")[number]
        for index, slot in enumerate(stage.agents):
            at_slot = (at_stage / "agents")[index]
            yield _Named(Agent, slot.name, at_slot / "name")
            yield from _provider(slot.llm_provider, at_slot)
            yield from _selected(slot.mcp_servers, at_slot)
            yield from _fallback(slot.fallback, at_slot)
            for place, sub_agent in enumerate(slot.sub_agents):
                yield _Named(Agent, sub_agent.agent_ref.name, (at_slot / "subAgents")[place] / "agentRef" / "name")
        yield from _selected(stage.mcp_servers, at_stage)
        yield from _fallback(stage.fallback, at_stage)
        if stage.synthesis is not None:
            # The name of the built-in agent never dangles.
            if stage.synthesis.agent not in (None, builtin.SYNTHESIS_AGENT):
                yield _Named(Agent, stage.synthesis.agent, at_stage / "synthesis" / "agent")
            yield from _provider(stage.synthesis.llm_provider, at_stage / "synthesis")
        if stage.escalate is not None:
            yield _Named(LLMProvider, stage.escalate.to, at_stage / "escalate" / "to")
    if spec.executive_summary is not None:
        yield from _provider(spec.executive_summary.llm_provider, at / "executiveSummary")
    if spec.summarization is not None:
        yield from _provider(spec.summarization.llm_provider, at / "summarization")
    if spec.chat is not None:
        if spec.chat.agent not in (None, builtin.CHAT_AGENT):
            yield _Named(Agent, spec.chat.agent, at / "chat" / "agent")
        yield from _provider(spec.chat.llm_provider, at / "chat")
        yield from _selected(spec.chat.mcp_servers, at / "chat")


def _provider(name: str | None, at: FieldPath) -> Iterator[_Named]:
    if name is not None:
        yield _Named(LLMProvider, name, at / "llmProvider")


def _fallback(entries: Sequence[FallbackEntry] | None, at: FieldPath) -> Iterator[_Named]:
    for index, entry in enumerate(entries or ()):
        yield _Named(LLMProvider, entry.llm_provider, (at / "fallback")[index] / "llmProvider")


def _selected(selections: Sequence[McpSelection] | None, at: FieldPath) -> Iterator[_Named]:
    for index, selection in enumerate(selections or ()):
        yield _Named(MCPServer, selection.name, (at / "mcpServers")[index], selection)
