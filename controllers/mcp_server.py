"""Reconciles MCPServers: checks that they can be used, respond, and have the tools that their object names.

Watches: MCPServers. Decides: `Ready` as for all configuration (`tarsy.controllers.configuration`), without stdio
commands in a cluster; `Available` by health checks (`tarsy.controllers.readiness.server_checks`), after several
failures in a row; `Verified` by comparing the lists of its object with the tools of the server; `NeedsApproval` by
its policy and `tools.destructive`, where calls of its tools need the approval of people; `EvidenceDeclared` by whether
its object declares who can write the results; `ToolsChanged` by `spec.pin` and the acceptances that count. Writes:
these conditions, the tools' names and hash, the pinned tools, the last error, Events when a server comes, goes, or
changes its tools, and the definitions of pinned tools into the database.

A failed check changes the status only when it counts; until then, and after a restart of the operator, the status
stays.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from tarsy.controllers.approvals.acceptance_of_tools import ACCEPTANCE_SECONDS, count_acceptances
from tarsy.controllers.configuration import problems, validate
from tarsy.controllers.machinery.cache import Key
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.machinery.status import write_status
from tarsy.controllers.readiness.server_checks import Health
from tarsy.controllers.readiness.tool_pins import (
    NOTHING_ACCEPTED,
    CountedAcceptances,
    PinnedState,
    pinned_state,
    tools_changed,
)
from tarsy.controllers.tool_workloads.shared import Workload, keep_workload
from tarsy.masking import without_secrets_or_withheld
from tarsy.mcp.connection import NO_STDIO
from tarsy.mcp.health import Look
from tarsy.mcp.tool_catalog import list_hash, nothing_offered
from tarsy.plan.approval_expressions import expression_errors
from tarsy.plan.errors import FieldPath, PlanError
from tarsy.plan.model import ApprovalPlan, HttpTransport, ObjectRef, ServerPlan, WorkloadTransport
from tarsy.plan.parts import server_plan
from tarsy.plan.policy import ToolPolicy, names
from tarsy.plan.readiness import readiness
from tarsy.record.messages import ToolDefinition
from tarsy.resources.meta import Condition, ConditionStatus, condition, set_condition
from tarsy.resources.v1alpha1.approval_settings import ApprovalSettings
from tarsy.resources.v1alpha1.common import ConditionType, McpSelection
from tarsy.resources.v1alpha1.data_flow import DataFlow
from tarsy.resources.v1alpha1.evidence import EvidenceDeclaration
from tarsy.resources.v1alpha1.mcp_server import MAX_TOOLS, MCPServer, MCPServerStatus

_Told = tuple[Literal["Normal", "Warning"], str, str]


async def reconcile(server: MCPServer, context: ReconcileContext) -> float | None:
    """Updates the conditions; returns the seconds until the next look, None when none is needed.

    What runs for it (`spec.run`) is kept where the operator says in which namespace those are who may reach it.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
        StoreError: definitions of pinned tools could not be stored.
    """
    client, checks = context.kubernetes.client, context.checks.servers
    judged = readiness(server, context.cache, None)
    errors, waits, _ = await problems(server, judged, client, context.kubernetes.read_secret)
    errors += [(error, "ExpressionInvalid") for error in expression_errors(server)]
    plan, health = server_plan_of(server), None
    if checks is not None:
        errors += stdio_errors(server, checks.policy.allow_stdio)
    errors += pin_errors(server, plan)
    workload = Workload(server.status.workload)
    if context.settings.pods is not None and not errors:
        workload = await keep_workload(server, client, context.settings.pods)
        errors += workload.problems
        waits += [workload.again] if workload.again is not None else []
    if checks is not None and not errors and not _only_in_runs(plan):
        key = Key(server.KIND, server.metadata.namespace, server.metadata.name)
        health, again = checks.health(key, plan)
        waits += [again] if again is not None else []
    now = datetime.now(UTC)
    counted = await count_acceptances(server, client)
    waits += [ACCEPTANCE_SECONDS] if server.spec.pin is not None and server.spec.accepted_tools else []
    status = assess_server(server, plan, errors, health, now, counted)
    status = status.model_copy(update={"workload": workload.name})
    if health is not None and health.found is not None:  # before the status, which then names only what can be read
        await _note_definitions(server, health.found, context)
    if await write_status(client, context.cache, server, status) is not None:
        for kind, reason, message in happened(server.status, status):
            await context.kubernetes.events.tell(server, reason, message, kind=kind)
    return min(waits, default=None)


async def _note_definitions(server: MCPServer, found: Look, context: ReconcileContext) -> None:
    """Stores the definitions of a server with `spec.pin`, once a look that found other ones than those stored."""
    store = context.store.definitions
    if store is None or server.spec.pin is None or not found.listed:
        return
    seen = list_hash(found.digests)
    if context.noted_tools.get(server.metadata.uid) == seen:
        return
    what = f"the definition of a tool of {server}"
    texts = {
        name: (tool.digest, without_secrets_or_withheld(context.mask, tool.definition, what, _WITHHELD).text)
        for name, tool in found.listed.items()
    }
    await store.note(server.metadata.uid, texts)
    context.noted_tools[server.metadata.uid] = seen


def server_plan_of(server: MCPServer) -> ServerPlan:
    """Makes the plan of a server by itself, with all of its tools, whether or not somebody accepted them."""
    meta = server.metadata
    ref = ObjectRef(kind=server.KIND, namespace=meta.namespace, name=meta.name, uid=meta.uid or "")
    return server_plan(server, ref, McpSelection(name=meta.name)).model_copy(update={"pin": None})


def pin_errors(server: MCPServer, plan: ServerPlan) -> list[tuple[PlanError, str]]:
    """Reports `spec.pin` of a server whose tools the operator cannot see."""
    if server.spec.pin is None or not _only_in_runs(plan):
        return []
    text = (
        "tools of this server are seen only within runs (transport.http.tokenAudience, or run.scope PerRun), so they "
        "cannot be accepted; leave pin out, or run the server with an account of its own"
    )
    return [((FieldPath.of(server) / "pin").error(text), "PinNotPossible")]


def stdio_errors(server: MCPServer, allowed: bool) -> list[tuple[PlanError, str]]:
    """Reports a stdio command where none may run: in a cluster it would run with the rights of the worker."""
    if allowed or server.spec.transport.stdio is None:
        return []
    return [((FieldPath.of(server) / "transport" / "type").error(NO_STDIO), "StdioNotInCluster")]


def assess_server(
    server: MCPServer,
    plan: ServerPlan,
    errors: Sequence[tuple[PlanError, str]],
    health: Health | None,
    now: datetime,
    counted: CountedAcceptances = NOTHING_ACCEPTED,
) -> MCPServerStatus:
    """Makes the status from what is known.

    Args:
        server: the object as it is.
        plan: the same as a part of a plan.
        errors: all that makes it not Ready, each with a reason.
        health: what is known of the server; None when it is not looked at.
        now: the time of this change.
        counted: the acceptances of tools that count.
    """
    generation, before = server.metadata.generation, server.status
    conditions = validate(server, errors, now).conditions
    declared = _evidence_declared(server).model_copy(update={"observed_generation": generation})
    conditions = set_condition(conditions, declared, now)
    look = health.found if health is not None and not errors else None
    pinned = pinned_state(server, look.listed if look is not None else None, counted)
    known = _known(server, plan, health, pinned) if not errors else _Known(_NOT_READY, _NOT_READY)
    for kind, said in ((ConditionType.AVAILABLE, known.available), (ConditionType.VERIFIED, known.verified)):
        old = condition(before.conditions, kind)
        if not said.only_if_nothing_is_known or old is None or old.observed_generation != generation:
            new = Condition(type=kind, status=said.status, reason=said.reason, message=said.message)
            new = new.model_copy(update={"observed_generation": generation})
            conditions = set_condition(conditions, new, now)
    conditions = tuple(one for one in conditions if one.type != ConditionType.NEEDS_APPROVAL)
    if (gated := _gated_tools(server, plan, health)) and not errors:
        new = Condition(type=ConditionType.NEEDS_APPROVAL, status="True", reason="ToolsNeedApproval", message=gated)
        new = new.model_copy(update={"observed_generation": generation})
        was = condition(before.conditions, ConditionType.NEEDS_APPROVAL)
        conditions = set_condition((*conditions, was) if was else conditions, new, now)
    conditions = tuple(one for one in conditions if one.type != ConditionType.TOOLS_CHANGED)
    if server.spec.pin is not None:
        new = tools_changed(server, pinned, counted).model_copy(update={"observed_generation": generation})
        was = condition(before.conditions, ConditionType.TOOLS_CHANGED)
        conditions = set_condition((*conditions, was) if was else conditions, new, now)
    fields = {**before.model_dump(include={"tool_count", "tools", "tools_hash"}), **known.fields}
    return MCPServerStatus(observed_generation=generation, conditions=conditions, pinned_tools=pinned.tools, **fields)


def _evidence_declared(server: MCPServer) -> Condition:
    kind, declared = ConditionType.EVIDENCE_DECLARED, server.spec.evidence
    if declared is None:
        text = (
            "spec.evidence declares no classes, so all results count as writable by workloads (class A), and "
            "findings that rest on them alone have at most medium confidence. Declare the class of each tool in "
            "spec.evidence.classes."
        )
        return Condition(type=kind, status="False", reason="NothingDeclared", message=text)
    marks = " It trusts the marks of the server in results of class A." if declared.trust_marks else ""
    text = f"spec.evidence has {len(declared.classes)} entries; results of other tools are of class A.{marks}"
    return Condition(type=kind, status="True", reason="EvidenceDeclared", message=text)


@dataclass(frozen=True, slots=True)
class _Said:
    """Describes a condition; with `only_if_nothing_is_known`, an existing one of this generation stays."""

    status: ConditionStatus
    reason: str
    message: str
    only_if_nothing_is_known: bool = False


@dataclass(frozen=True, slots=True)
class _Known:
    available: _Said
    verified: _Said
    fields: Mapping[str, Any] = field(default_factory=dict)


def _gated_tools(server: MCPServer, plan: ServerPlan, health: Health | None) -> str:
    """Names the tools of which each call needs approval, in a sentence; empty: none does."""
    if plan.policy is ToolPolicy.READ_ONLY:
        return ""
    found = health.found if health is not None else None
    known = sorted(found.offer.gated) if found is not None and found.digests else []
    which = known or list(server.spec.tools.destructive)
    if not which and plan.policy is not ToolPolicy.APPROVE:
        return ""
    shown = ", ".join(which[:20]) + (f" and {len(which) - 20} more" if len(which) > 20 else "")
    told = f"Each call of these tools needs approval: {shown or 'all that are not known to be read-only'}."
    unknown = which if plan.approval is None else [one for one in which if plan.approval.target_rule(one) is None]
    if which and not unknown:
        return told
    return f"{told} {_unknown_objects(plan.approval, unknown)}".strip()


def _unknown_objects(approval: ApprovalPlan | None, tools: Sequence[str]) -> str:
    """Reports what becomes of calls whose objects are not declared.

    Args:
        approval: what the server declares.
        tools: of which it declares none; empty: they are not known yet.
    """
    if approval is None:
        return (
            "spec.approval is not set, so the objects that they change are unknown: people decide without a preview, "
            "and calls on objects that Argo CD, Flux or Helm manages are not refused. Declare them in "
            "spec.approval.targets."
        )
    if not tools:
        return ""
    shown = ", ".join(tools[:20])
    if approval.undetermined == "Refuse":
        return f"Calls of {shown} are refused: spec.approval.targets does not declare the objects that they change."
    return (
        f"spec.approval.targets does not declare the objects of {shown}: people decide without a preview, "
        f"and calls on objects that Argo CD, Flux or Helm manages are not refused."
    )


_WITHHELD = "The definition could not be searched for secrets and is withheld."
_ONLY_IN_RUNS = "Not checked: it needs the token of an agent's ServiceAccount, which exists only within a run."
_NOT_READY = _Said("Unknown", "NotReady", "Not checked until the MCPServer is Ready.")


def _only_in_runs(plan: ServerPlan) -> str:
    """Explains why a server can be checked only within a run; empty when it can be checked."""
    if isinstance(plan.transport, WorkloadTransport) and plan.transport.per_run:
        return "Not checked: each run starts a server of its own (spec.run.scope is PerRun)."
    return _ONLY_IN_RUNS if isinstance(plan.transport, HttpTransport) and plan.wants_account else ""


def _known(server: MCPServer, plan: ServerPlan, health: Health | None, pinned: PinnedState) -> _Known:
    """Derives the conditions of a server that is Ready from its health."""
    failed = health.failed if health is not None else None
    error = {"last_error": (failed.failure or failed.reason) if failed else server.status.last_error}
    if health is not None and health.away and failed is not None:
        text = f"Several health checks in a row failed: {failed.failure}"
        verified = _Said("Unknown", "NotChecked", "The server must respond first.", only_if_nothing_is_known=True)
        return _Known(_Said("False", failed.reason or "McpError", text), verified, error)
    if health is None or health.found is None or failed is not None:
        not_yet = _only_in_runs(plan) or "Not checked yet."
        text = f"A health check failed: {failed.failure}" if failed else not_yet
        unknown = _Said("Unknown", "NotChecked", text, only_if_nothing_is_known=True)
        return _Known(unknown, unknown, error)
    digests = health.found.digests
    names_of_tools = sorted(digests)
    fields = {
        "tool_count": len(digests),
        "tools": tuple(names_of_tools[:MAX_TOOLS]),
        "tools_hash": list_hash(digests),
        "last_error": None,
    }
    available = _Said("True", "Answers", f"It responds and lists {len(digests)} tools.")
    return _Known(available, _verified(server, plan, health.found, pinned), fields)


def _verified(server: MCPServer, plan: ServerPlan, found: Look, pinned: PinnedState) -> _Said:
    count, missing = len(found.digests), "; ".join(_missing(server, found.digests))
    if not count:
        return _Said("False", "NothingOffered", "It has no tools.")
    if missing:
        text = f"The server does not have these tools: {missing}. Correct the names, or update the server."
        return _Said("False", "ToolsMissing", text)
    if wrong := "; ".join(_missing_arguments(server, found.offer.definitions)):
        text = f"None of the tools has these arguments: {wrong}. Correct the names, or update the server."
        return _Said("False", "ToolsMissing", text)
    if (why := nothing_offered(plan, found.offer)) is not None:
        return _Said("False", "NothingOffered", f"Agents get none of its tools: {why}.")
    offered = [tool.name.partition(".")[2] for tool in found.offer.definitions]
    if server.spec.pin is not None:
        offered = [name for name in offered if name in pinned.trusted]
        if not offered:
            text = "Agents get none of its tools: no tool has been accepted; see the condition ToolsChanged."
            return _Said("False", "NothingOffered", text)
    text = f"Agents get at most {len(offered)} of its {count} tools (toolPolicy {plan.policy})."
    bindable = sum(name in found.offer.bindable for name in offered)
    if bindable < len(offered):
        text += f" In runs of other namespaces, which spec.reach binds to their own namespace: at most {bindable}."
    return _Said("True", "ToolsKnown", text)


def happened(before: MCPServerStatus, after: MCPServerStatus) -> Iterator[_Told]:
    """Lists the Events for a change: kind, reason and message of each."""
    was, now = (condition(status.conditions, ConditionType.AVAILABLE) for status in (before, after))
    old = was.status if was is not None else "Unknown"
    if now is not None and now.status != old:
        since = f" (since {now.last_transition_time:%Y-%m-%dT%H:%M:%SZ})" if now.last_transition_time else ""
        if now.status == "False":
            yield "Warning", "Unavailable", now.message[:900] + since
        elif now.status == "True" and old == "False":
            yield "Normal", "AvailableAgain", now.message + since
    if before.tools_hash and after.tools_hash and before.tools_hash != after.tools_hash:
        yield "Warning", "ToolsChanged", _difference(before, after)


def _difference(before: MCPServerStatus, after: MCPServerStatus) -> str:
    old, new = set(before.tools), set(after.tools)
    parts = [
        f"{what} {', '.join(sorted(which)[:20])}{' and more' if len(which) > 20 else ''}"
        for what, which in (("new:", new - old), ("gone:", old - new))
        if which
    ]
    told = "; ".join(parts) or "descriptions or parameters of some"
    return f"Its list of tools changed: {told} (hash {(after.tools_hash or '')[:12]})."


def _named_in(evidence: EvidenceDeclaration | None) -> tuple[str, ...]:
    if evidence is None:
        return ()
    return (*(tool for rule in evidence.classes for tool in rule.tools), *evidence.state_tools)


def _gated_in(approval: ApprovalSettings | None) -> tuple[str, ...]:
    if approval is None:
        return ()
    lists = [rule.tools for rule in approval.targets] + [rule.tools for rule in approval.dry_run]
    lists += [(*rule.tools, rule.tool) for rule in approval.undo]
    return tuple(tool for tools in lists for tool in tools)


def _flowing_in(flow: DataFlow | None) -> tuple[str, ...]:
    if flow is None:
        return ()
    return (*(tool for rule in flow.outbound_arguments for tool in rule.tools), *flow.sensitive_tools)


def _missing_arguments(server: MCPServer, definitions: Collection[ToolDefinition]) -> Iterator[str]:
    """Lists outbound arguments that no offered tool of their rule declares; a misspelt one would protect nothing."""
    flow = server.spec.data_flow or DataFlow()
    for place, rule in enumerate(flow.outbound_arguments):
        schemas = [one.parameters_schema for one in definitions if names(rule.tools, one.name.partition(".")[2])]
        known = {name for schema in schemas for name in schema.get("properties") or ()}
        unknown = [name for name in rule.arguments if name not in known]
        if known and unknown:
            yield f"spec.dataFlow.outboundArguments[{place}] names the arguments {', '.join(unknown[:5])}"


def _missing(server: MCPServer, tools: Collection[str]) -> Iterator[str]:
    """Lists the entries of the object's lists that match no tool of the server, with their field."""
    spec = server.spec
    lists = {
        "spec.tools.allow": spec.tools.allow or (),
        "spec.tools.deny": spec.tools.deny,
        "spec.tools.readOnly": spec.tools.read_only,
        "spec.tools.destructive": spec.tools.destructive,
        "spec.repeatableTools": spec.repeatable_tools,
        "spec.evidence": _named_in(spec.evidence),
        "spec.approval": _gated_in(spec.approval),
        "spec.dataFlow": _flowing_in(spec.data_flow),
        "spec.extraction": tuple(tool for rule in spec.extraction for tool in rule.tools),
    }
    for path, entries in lists.items():
        unknown = [entry for entry in entries if not any(names((entry,), tool) for tool in tools)]
        if unknown:
            yield f"{path} names {', '.join(unknown[:5])}{' and more' if len(unknown) > 5 else ''}"
