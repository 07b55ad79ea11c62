"""Reconciles ChatMessages: a question about a finished Investigation becomes an answer.

Watches: ChatMessages and Investigations. Decides: whether the question is accepted (the investigation has ended and was
not cancelled, its chain allows questions, the author may use the tools of the answer), and the order of questions that
are first seen together. Writes: the question into the record, the owner reference to the Investigation, and `Accepted`
until there is a record. From then on `publisher` writes the status from the record.
"""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from tarsy.controllers.machinery.cache import Key
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.machinery.lookup import look_up
from tarsy.controllers.machinery.status import write_status
from tarsy.controllers.runs.acceptance import rejected, wait_for_acceptance, was_given_up
from tarsy.controllers.runs.alert_of_run import mask_alert
from tarsy.controllers.runs.authorization import authorization_refusal, timeline_read
from tarsy.controllers.runs.chat_projection import project_answer
from tarsy.controllers.runs.inputs import NotYet
from tarsy.controllers.runs.rest import note_rest
from tarsy.controllers.runs.restored import ACCEPTED_UID
from tarsy.controllers.runs.run_secret import make_run_secret, remove_run_secret
from tarsy.plan.errors import FieldPath
from tarsy.plan.model import Plan
from tarsy.record.reading.conditions import phase
from tarsy.record.run import DesiredState, InvestigationRecord, State
from tarsy.resources.meta import API_VERSION
from tarsy.resources.v1alpha1 import ChatMessage, Investigation
from tarsy.store.questions import NewQuestion


class _Refused(Exception):
    """Raised when a question is never answered."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


async def reconcile(message: ChatMessage, context: ReconcileContext) -> float | None:
    """Reconciles a question; returns the seconds until the next look, None when none is needed.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
        StoreError, StoreUnavailable: the record could not be read or written.
    """
    now = datetime.now(UTC)
    identity = UUID(message.metadata.uid)
    record = await context.store.reads.record(identity)
    if record is not None:
        wanted = _wanted(message, context)
        if not record.state.finished and wanted is not record.desired_state:
            await context.store.runs.set_desired_state(identity, wanted)
        if ACCEPTED_UID not in message.metadata.annotations:  # a crash came between
            await _mark_accepted(message, record.parent, context)
        published = record.revision <= record.published_revision
        right = published and project_answer(record, message, now) == message.status
        if published and not right:
            context.publish_again(record)  # somebody else wrote the status
        if record.state.finished:
            await remove_run_secret(message, context)
            if right and ACCEPTED_UID in message.metadata.annotations:
                await note_rest(message, record, None, context)
        return None
    if was_given_up(message.status.conditions):
        return None
    try:
        _may_begin(message)
        about, plan = await _about(message, context)
        await _authorized(message, plan, context)
    except NotYet as refusal:
        return await wait_for_acceptance(message, refusal, context, now)
    except _Refused as end:
        await remove_run_secret(message, context)
        if end.reason != "RecordLost" or message.status.finished_at is None:  # an answer stays readable
            status = rejected(message, end.reason, end.message, now)
            await write_status(context.kubernetes.client, context.cache, message, status)
        return None
    new = context.cache.list(ChatMessage, message.metadata.namespace)
    together = [message, *(one for one in new if _comes_with(one, message))]
    allowed = [one for one in together if one is message or await _refusal(one, plan, context) is None]
    for one in allowed:
        await make_run_secret(one, plan, context)
    await context.store.questions.ask(
        about.id, [await _question(one, plan, context) for one in sorted(allowed, key=_turn)]
    )
    await _mark_accepted(message, about.id, context)
    return None


def _wanted(message: ChatMessage, context: ReconcileContext) -> DesiredState:
    """Returns the desired state of a question: cancelling an investigation cancels the questions about it."""
    about = context.cache.get(Investigation, message.metadata.namespace, message.spec.investigation_ref.name)
    owners = {owner.uid for owner in message.metadata.owner_references}
    if about is not None and about.metadata.uid in owners and about.spec.desired_state == "Cancelled":
        return DesiredState.CANCELLED
    return DesiredState(message.spec.desired_state)


def _may_begin(message: ChatMessage) -> None:
    uid, accepted = message.metadata.uid, message.metadata.annotations.get(ACCEPTED_UID)
    if accepted is not None and accepted != uid:
        raise _Refused("Restored", "This is a copy of a question that was answered before; ask again in a new one.")
    if accepted is not None:
        raise _Refused("RecordLost", "The record of this answer is gone from the database; ask again in a new message.")
    if message.spec.desired_state == "Cancelled":
        raise _Refused("CancelledBeforeStart", "The question was cancelled before it was accepted.")
    if message.spec.desired_state == "Concluded":
        raise _Refused("ConcludedBeforeStart", "The answer was asked to conclude before it started.")


async def _about(message: ChatMessage, context: ReconcileContext) -> tuple[InvestigationRecord, Plan]:
    """Returns the record of the investigation in question, and the plan of an answer."""
    namespace, name = message.metadata.namespace, message.spec.investigation_ref.name
    where = f"spec.investigationRef.name: Investigation {namespace}/{name}"
    investigation = await look_up(Investigation, namespace, name, context.cache, context.kubernetes.client)
    if investigation is None:
        raise NotYet("InvestigationMissing", f"{where} does not exist; create it, or name another")
    record = await context.store.reads.record(UUID(investigation.metadata.uid))
    plan = await context.store.questions.plan(record.id) if record else None
    if record is None or plan is None:
        if investigation.status.finished_at is None:
            raise _Refused("InvestigationNotFinished", f"{where} has not run yet; ask when it has finished")
        raise _Refused("InvestigationNotRecorded", f"{where} has no record to answer from; ask about another")
    if not record.state.finished:
        raise _Refused("InvestigationNotFinished", f"{where} is {phase(record)}; ask when it has finished")
    if record.state is State.CANCELLED or investigation.spec.desired_state == "Cancelled":
        raise _Refused("InvestigationCancelled", f"{where} was cancelled; ask about another")
    if plan.chat is None:
        chain = f"{plan.chain.namespace}/{plan.chain.name}"
        raise _Refused("ChatDisabled", f"{where} ran Chain {chain}, whose spec.chat.enabled is false")
    return record, plan.to_answer()


async def _authorized(message: ChatMessage, plan: Plan, context: ReconcileContext) -> None:
    if refused := await _refusal(message, plan, context):
        raise NotYet(*refused)


async def _refusal(message: ChatMessage, plan: Plan, context: ReconcileContext) -> tuple[str, str] | None:
    """Asks for the same rights as to run the chain: a question goes to its tools and to servers of the alert.

    It is answered out of the timeline, so who asks must be allowed to read that.
    """
    used = [Key(ref.kind, ref.namespace, ref.name) for ref in (plan.chain, *plan.brought)]
    reads = [timeline_read(message.spec.investigation_ref.name, FieldPath.of(message) / "investigationRef" / "name")]
    return await authorization_refusal(
        message.spec.author, used, context.kubernetes.client, required=context.settings.require_author, reads=reads
    )


def _comes_with(other: ChatMessage, message: ChatMessage) -> bool:
    """Checks whether `other`, which has not finished, is another new question about the same investigation."""
    same = other.spec.investigation_ref.name == message.spec.investigation_ref.name
    new = ACCEPTED_UID not in other.metadata.annotations and other.spec.desired_state == "Running"
    return other.metadata.uid != message.metadata.uid and same and new


def _turn(message: ChatMessage) -> tuple[str, int, str]:
    """Orders questions that are first seen together: by creation time, resourceVersion, name."""
    meta = message.metadata
    version = int(meta.resource_version) if meta.resource_version.isdigit() else 0
    return str(meta.creation_timestamp), version, meta.name


async def _question(message: ChatMessage, plan: Plan, context: ReconcileContext) -> NewQuestion:
    text = await mask_alert(message.spec.question, plan.alert_masking, context)
    author = message.spec.author.to_dict() if message.spec.author else {}
    if message.spec.via is not None:  # admission lets only the operator set it
        author["via"] = message.spec.via
    return NewQuestion(UUID(message.metadata.uid), message.metadata.name, text, plan, author)


async def _mark_accepted(message: ChatMessage, about: UUID | None, context: ReconcileContext) -> None:
    """Marks a question as accepted, which tells it from a restored copy, and makes the Investigation its owner."""
    meta, name, client = message.metadata, message.spec.investigation_ref.name, context.kubernetes.client
    body: dict[str, Any] = {"metadata": {"uid": meta.uid, "annotations": {ACCEPTED_UID: meta.uid}}}
    investigation = await look_up(Investigation, meta.namespace, name, context.cache, client, uid=str(about))
    if investigation is not None:
        owner = {
            "apiVersion": API_VERSION,
            "kind": Investigation.KIND,
            "name": investigation.metadata.name,
            "uid": investigation.metadata.uid,
        }
        others = [o.to_dict() for o in meta.owner_references if o.uid != owner["uid"]]
        body["metadata"]["ownerReferences"] = [*others, owner]
        body["metadata"]["resourceVersion"] = meta.resource_version
    context.cache.put(await client.patch(message.KIND, meta.namespace, meta.name, body))
