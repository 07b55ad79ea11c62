"""Dispatches a key to the reconcile function of its kind.

Objects that were deleted come first: a run whose object is gone is stopped even when another object has its name now.
Finished objects that rest are not parsed.
"""

from uuid import UUID

from tarsy.controllers import (
    alert,
    alert_route,
    alert_schedule,
    chat_message,
    configuration,
    eval_run,
    eval_suite,
    investigation,
    investigation_quota,
    mcp_server,
    review,
    skill,
    tool_approval,
)
from tarsy.controllers.evals.score_requests import take_score_request
from tarsy.controllers.machinery.cache import Key, UnreadableObject
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.machinery.informer import Informer
from tarsy.controllers.machinery.invalid_objects import mark_invalid
from tarsy.controllers.readiness.transitions import RECORDED_KINDS, TransitionRecorder
from tarsy.controllers.runs.rest import Rest
from tarsy.resources.v1alpha1 import (
    Alert,
    AlertRoute,
    AlertSchedule,
    Chain,
    ChatMessage,
    EvalRun,
    EvalSuite,
    Investigation,
    InvestigationQuota,
    MCPServer,
    Review,
    Skill,
    ToolApproval,
)

_RUNS = (Investigation.KIND, ChatMessage.KIND)
_EVALS = (EvalSuite.KIND, EvalRun.KIND)


class Reconciler:
    """Reconciles objects of all kinds.

    Args:
        context: the context of every reconcile.
        informer: knows the deleted objects of a name.
        rest: knows the finished objects that nothing is left to do for.
        transitions: records changes of conditions of configuration objects; None: nothing does.
    """

    def __init__(
        self, context: ReconcileContext, informer: Informer, rest: Rest, transitions: TransitionRecorder | None = None
    ) -> None:
        self._context = context
        self._informer = informer
        self._rest = rest
        self._transitions = transitions

    async def reconcile(self, key: Key) -> float | None:
        """Reconciles the object of a key; returns the seconds until the next look, None when none is needed.

        Raises:
            ApiError: the Kubernetes API refused or could not be reached.
            StoreError: the record could not be read or written.
        """
        for uid in self._informer.deleted(key):
            await self._deleted(key, uid)
            self._informer.ended(key, uid)
            if self._transitions is not None:
                self._transitions.forget(uid)
        if (resting := await self._rest.of(key)) is not None:
            return resting.seconds
        self._observe(key)
        try:
            return await self._dispatch(key)
        finally:  # a status may be written before an error
            self._observe(key)

    def _observe(self, key: Key) -> None:
        """Shows the conditions of an object to the recorder, whoever wrote them."""
        if self._transitions is not None and key.kind in RECORDED_KINDS:
            self._transitions.observe(self._context.cache.find(key))

    async def _dispatch(self, key: Key) -> float | None:
        context = self._context
        match context.cache.find(key):
            case None:
                return None
            case UnreadableObject() as broken:
                await mark_invalid(broken, context.kubernetes.client, context.cache)
                return None
            case Alert() as obj:
                return await alert.reconcile(obj, context)
            case Investigation() as obj:
                seconds = [await take_score_request(obj, context), await investigation.reconcile(obj, context)]
                return min((one for one in seconds if one is not None), default=None)
            case ChatMessage() as obj:
                return await chat_message.reconcile(obj, context)
            case MCPServer() as obj:
                return await mcp_server.reconcile(obj, context)
            case AlertRoute() as obj if context.store.intake is not None:
                return await alert_route.reconcile(obj, context.store.intake, context)
            case AlertSchedule() as obj:
                return await alert_schedule.reconcile(obj, context)
            case EvalSuite() as obj:
                evals = context.store.evals
                return None if evals is None else await eval_suite.reconcile(obj, evals, context)
            case EvalRun() as obj:
                evals = context.store.evals
                return None if evals is None else await eval_run.reconcile(obj, evals, context)
            case ToolApproval() as obj:
                approvals = context.store.approvals
                return None if approvals is None else await tool_approval.reconcile(obj, approvals, context)
            case Review() as obj:
                reviews = context.store.reviews
                return None if reviews is None else await review.reconcile(obj, reviews, context)
            case InvestigationQuota() as obj:
                quotas = context.store.quotas
                return None if quotas is None else await investigation_quota.reconcile(obj, quotas, context)
            case Skill() as obj:
                return await skill.reconcile(obj, context)
            case obj:
                return await configuration.reconcile(obj, context)

    async def _deleted(self, key: Key, uid: str) -> None:
        """Removes what the record and the cluster keep of a deleted object."""
        context = self._context
        if key.kind in _RUNS:
            await investigation.deleted(uid, key.namespace, context)
        if key.kind == Chain.KIND and context.store.revisions is not None:
            await context.store.revisions.forget(uid)
        if key.kind in _EVALS and context.store.evals is not None:
            await context.store.evals.deleted(UUID(uid))
        if key.kind == ToolApproval.KIND and context.store.approvals is not None:
            await tool_approval.withdraw_deleted(uid, context.store.approvals, context)
        if key.kind == Review.KIND and context.store.reviews is not None:
            await context.store.reviews.release(UUID(uid))
        if key.kind == InvestigationQuota.KIND and context.store.quotas is not None:
            await investigation_quota.deleted(uid, context.store.quotas, context)
        if key.kind == MCPServer.KIND and context.store.definitions is not None:
            await context.store.definitions.forget(uid)
            context.noted_tools.pop(uid, None)
