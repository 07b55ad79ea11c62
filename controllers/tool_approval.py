"""Reconciles ToolApprovals: takes the decisions of people, and lets the run go on.

Watches: ToolApprovals, and through the rounds of `approvals.requests` their rows. Decides: whether the decisions are
an approval now, by the rights of those who decided, uid and generation of the MCPServer, the entries of the Chain that
approve beforehand, and a forged decision that the API server must refuse. Writes: the decision into the database,
`Decided`, `Executed`, `ApprovalsEnforced`, an Event.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from tarsy.controllers.approvals.enforcement import why_not_enforced
from tarsy.controllers.approvals.pre_approved import pre_approved_by
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.machinery.status import write_status
from tarsy.controllers.runs.parked import ParkedRuns
from tarsy.kube.access import ResourceAttributes, Subject, may
from tarsy.kube.client import ApiError
from tarsy.record.approvals.approval import ApprovalState, AskedApproval, SignedDecision, judge_decisions
from tarsy.resources.meta import GROUP, Condition, Conditions, ConditionStatus, set_condition
from tarsy.resources.v1alpha1 import MCPServer, ToolApproval, ToolApprovalStatus
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.store.approvals import ApprovalRecord, ApprovalStore

DOUBT_SECONDS = 15.0
"""Seconds until decisions that do not count yet are judged again: rights and policies are not watched."""

SETTLED_KEPT = timedelta(days=7)
"""Time for which the object of a settled approval is kept; the record has it longer."""

_PHASES = {
    ApprovalState.PENDING: "Pending",
    ApprovalState.APPROVED: "Approved",
    ApprovalState.REJECTED: "Rejected",
    ApprovalState.EXPIRED: "Expired",
    ApprovalState.WITHDRAWN: "Withdrawn",
    ApprovalState.STALE: "Stale",
    ApprovalState.CONSUMED: "Executed",
}
_SAID = {
    ApprovalState.REJECTED: "Rejected; the call was not sent.",
    ApprovalState.EXPIRED: "No decision was made in time; the call was not sent.",
    ApprovalState.WITHDRAWN: "The run ended, or this object was deleted; the call was not sent.",
    ApprovalState.STALE: "The objects differ from those that approvers were shown; the call was not sent.",
    ApprovalState.APPROVED: "Approved; the run continues.",
    ApprovalState.CONSUMED: "The call was sent, once.",
}


async def reconcile(approval: ToolApproval, approvals: ApprovalStore, context: ReconcileContext) -> float | None:
    """Takes decisions and updates the status; returns the seconds until the next look, None when none is needed.

    Args:
        approval: the object.
        approvals: the stored approvals.
        context: of all reconciles.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
        StoreError: Postgres is unavailable.
    """
    now = datetime.now(UTC)
    record = await approvals.of_object(approval.metadata.uid)
    if record is None:
        status = _status(approval, ApprovalState.WITHDRAWN, "TARSy has no record of it; it has no effect.", now)
        await write_status(context.kubernetes.client, context.cache, approval, status)
        return None
    judged = _Judged(record.state)
    if record.state is ApprovalState.PENDING:
        judged = await _judged(approval, record, now, context)
        if judged.state is not ApprovalState.PENDING:
            await approvals.settle(record.id, judged.state, judged.decisions, _SAID[judged.state])
            record = await approvals.of_object(approval.metadata.uid) or record
    elif record.state is ApprovalState.APPROVED and not _is_as_shown(approval, record, context):
        await approvals.settle(record.id, ApprovalState.STALE, (), _SAID[ApprovalState.STALE])
        record = await approvals.of_object(approval.metadata.uid) or record
    if record.state is not ApprovalState.PENDING and record.revision > record.published:
        if record.state is ApprovalState.APPROVED:
            parked = ParkedRuns(context.kubernetes.client, context.cache, context.store.runs)
            await parked.round(record.investigation)  # what may not go on ends here, and is not woken
        await context.store.runs.wake(record.investigation)
    status = _status(approval, record.state, record.outcome or "", now, record, judged)
    written = await write_status(context.kubernetes.client, context.cache, approval, status)
    await approvals.published(record.id, record.revision)
    if written is not None and record.state is not ApprovalState.PENDING and status.phase != approval.status.phase:
        await context.kubernetes.events.tell(approval, _PHASES[record.state], record.outcome or "")
    if record.state in (ApprovalState.PENDING, ApprovalState.APPROVED):
        left = (record.expires_at - now).total_seconds()
        doubtful = approval.spec.decisions or judged.doubt or left <= 0
        return DOUBT_SECONDS if doubtful else min(left + 1, 600.0)
    return await _expire(approval, record, now, context)


async def withdraw_deleted(uid: str, approvals: ApprovalStore, context: ReconcileContext) -> None:
    """Withdraws an approval whose object was deleted; the decisions stay on record."""
    record = await approvals.of_object(uid)
    if record is not None:
        text = _SAID[ApprovalState.WITHDRAWN]
        await approvals.settle(record.id, ApprovalState.WITHDRAWN, outcome=text)
        await context.store.runs.wake(record.investigation)


@dataclass(frozen=True, slots=True)
class _Judged:
    """Holds the result of the decisions: those that count, why none can count, and why a pre-approval does not."""

    state: ApprovalState
    decisions: Sequence[SignedDecision] = ()
    not_enforced: str | None = None
    doubt: str = ""


async def _judged(approval: ToolApproval, record: ApprovalRecord, now: datetime, context: ReconcileContext) -> _Judged:
    if not record.run_open:
        return _Judged(ApprovalState.WITHDRAWN)
    decisions = [
        SignedDecision(one.username, one.decision == "Approve", one.arguments_digest, one.groups, one.reason or "")
        for one in approval.spec.decisions
    ]
    standing, doubt = pre_approved_by(record, context.cache, now)
    if standing is not None and all(one.username != standing.username for one in decisions):
        judged = await _weighed(approval, record, [*decisions, standing], now, context)
        if judged.state is not ApprovalState.APPROVED:
            doubt = (
                f"The approval of {standing.username} ({standing.reason}) is not sufficient." if doubt == "" else doubt
            )
            return replace(judged, doubt=doubt)
        if not _is_as_shown(approval, record, context):
            return replace(judged, state=ApprovalState.STALE)
        if (why := await why_not_enforced(approval, context.kubernetes.client, of_chains=True)) is None:
            return judged
        doubt = f"{standing.reason} does not count: {why}."
    judged = replace(await _weighed(approval, record, decisions, now, context), doubt=doubt)
    if judged.state is not ApprovalState.APPROVED:
        return judged
    if not _is_as_shown(approval, record, context):
        return replace(judged, state=ApprovalState.STALE)
    if (why := await why_not_enforced(approval, context.kubernetes.client)) is not None:
        return _Judged(ApprovalState.PENDING, (), why, doubt)
    return judged


async def _weighed(
    approval: ToolApproval,
    record: ApprovalRecord,
    decisions: Sequence[SignedDecision],
    now: datetime,
    context: ReconcileContext,
) -> _Judged:
    """Weighs decisions by the rights of those who made them."""
    asked = AskedApproval(record.digest, record.required, frozenset(record.requesters), record.expires_at)
    entitled = frozenset([one.username for one in decisions if await _may_approve(one, approval, context)])
    counted = [one for one in decisions if one.username in entitled and one.digest == record.digest]
    return _Judged(judge_decisions(asked, counted, entitled, now), counted)


async def _may_approve(decision: SignedDecision, approval: ToolApproval, context: ReconcileContext) -> bool:
    call = approval.spec.call
    what = ResourceAttributes("approve", GROUP, MCPServer.PLURAL, namespace=call.server_namespace, name=call.server)
    try:
        return await may(context.kubernetes.client, Subject(decision.username, groups=decision.groups), what)
    except ApiError as error:
        if error.transient:
            raise
        return False  # nobody could say, which is never a yes


def _is_as_shown(approval: ToolApproval, record: ApprovalRecord, context: ReconcileContext) -> bool:
    """Whether object and server are those that were asked about."""
    spec, asked = approval.spec, record.request
    server = context.cache.get(MCPServer, spec.call.server_namespace, spec.call.server)
    return (
        server is not None
        and {"uid": server.metadata.uid, "generation": server.metadata.generation} == asked["server"]
        and spec.arguments_digest == record.digest
        and spec.call.to_dict() == asked["shown"]["call"]
        and [target.to_dict() for target in spec.targets] == list(record.targets)
        and spec.required == record.required
    )


def _status(
    approval: ToolApproval,
    state: ApprovalState,
    said: str,
    now: datetime,
    record: ApprovalRecord | None = None,
    judged: _Judged | None = None,
) -> ToolApprovalStatus:
    over = state is not ApprovalState.PENDING
    not_enforced = judged.not_enforced if judged is not None else None
    approvers = [one.username for one in judged.decisions if one.approve] if judged is not None and not over else []
    wanted: list[tuple[ConditionType, ConditionStatus, str, str]] = [
        (
            ConditionType.DECIDED,
            "True" if over else "False",
            _PHASES[state],
            said or _SAID.get(state) or _waits(approval, approvers, judged),
        ),
        (
            ConditionType.EXECUTED,
            "True" if state is ApprovalState.CONSUMED else "False" if over else "Unknown",
            "Sent" if state is ApprovalState.CONSUMED else "NotSent",
            said or _SAID.get(state, ""),
        ),
    ]
    if not_enforced is not None:
        wanted.append((ConditionType.APPROVALS_ENFORCED, "False", "ForgeryAdmitted", f"Nothing runs: {not_enforced}."))
    elif state in (ApprovalState.APPROVED, ApprovalState.CONSUMED):
        told = "The API server refused a forged decision before this one counted."
        wanted.append((ConditionType.APPROVALS_ENFORCED, "True", "ForgeryRefused", told))
    conditions: Conditions = approval.status.conditions
    for type_, status, reason, message in wanted:
        new = Condition(type=type_, status=status, reason=reason, message=message)
        new = new.model_copy(update={"observed_generation": approval.metadata.generation})
        conditions = set_condition(conditions, new, now)
    return ToolApprovalStatus(
        observed_generation=approval.metadata.generation,
        conditions=conditions,
        phase=_PHASES[state],
        target=next((f"{one.kind}/{one.name}" for one in approval.spec.targets), None),
        decided_by=tuple(approvers) or (record.decided_by if record is not None else ()),
        decided_at=record.decided_at if record is not None else None,
        outcome=record.outcome if record is not None else said,
    )


def _waits(approval: ToolApproval, approvers: Sequence[str], judged: _Judged | None) -> str:
    spec = approval.spec
    told = f"Waits until {spec.expires_at:%Y-%m-%dT%H:%M:%SZ}."
    if spec.required > 1:
        told = f"{len(approvers)} of {spec.required} people approved. {told}"
    return f"{told} {judged.doubt}" if judged is not None and judged.doubt else told


async def _expire(
    approval: ToolApproval, record: ApprovalRecord, now: datetime, context: ReconcileContext
) -> float | None:
    left = ((record.decided_at or now) + SETTLED_KEPT - now).total_seconds()
    if left > 0:
        return left + 1
    meta = approval.metadata
    await context.kubernetes.client.delete(approval.KIND, meta.namespace, meta.name, uid=meta.uid)
    return None
