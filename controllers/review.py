"""Reconciles Reviews: stores the verdict of a person on a finding.

Watches: Reviews. Decides: whether the investigation has ended with a finding, and whether the author may review in this
namespace, by SubjectAccessReview: in a cluster without the admission webhook anybody could write any author. Writes: an
entry of the log when the Review says something new, `Accepted`, the phase.
"""

from datetime import UTC, datetime
from uuid import UUID

from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.machinery.status import write_status
from tarsy.controllers.runs.authorization import UNKNOWN_AUTHOR
from tarsy.kube.access import ResourceAttributes, Subject, may
from tarsy.kube.client import ApiError
from tarsy.record.judging.review import ReviewAction, ReviewActivity, ReviewVerdict, why_unreviewable
from tarsy.record.text import clean
from tarsy.resources.meta import GROUP, Condition, set_condition
from tarsy.resources.v1alpha1 import Review, ReviewStatus
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.resources.v1alpha1.review import ReviewPhase
from tarsy.store.judging.reviews import ReviewLogFull, Reviews

UNREVIEWABLE_SECONDS = 60.0
"""Seconds until a Review is looked at again whose investigation is missing or runs, or whose author lacks a right."""

_PHASES: dict[ReviewAction, ReviewPhase] = {
    ReviewAction.CLAIMED: "InProgress",
    ReviewAction.COMPLETED: "Completed",
    ReviewAction.REOPENED: "Reopened",
}


async def reconcile(review: Review, reviews: Reviews, context: ReconcileContext) -> float | None:
    """Stores what a Review says, and updates its status; returns the seconds until the next look, None: no more.

    Args:
        review: the object.
        reviews: the stored reviews.
        context: of all reconciles.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
        StoreError: Postgres is unavailable.
    """
    ref, namespace = review.spec.investigation_ref, review.metadata.namespace
    found = await context.kubernetes.client.find("Namespace", None, namespace) or {}
    namespace_uid = str(found.get("metadata", {}).get("uid", ""))
    run = await reviews.reviewable(namespace, namespace_uid, ref.name, _uid(review))
    unreviewable = why_unreviewable(run, _which(review))
    if unreviewable is not None:
        unreviewable = (unreviewable[0], f"spec.investigationRef: {unreviewable[1]}")
    refusal = unreviewable or await _unentitled(review, context)
    said = what_it_says(review, context)
    if refusal is None and run is not None:
        try:
            if await reviews.note(run.id, UUID(review.metadata.uid), said) is None:
                refusal = why_unreviewable(None, _which(review))
        except ReviewLogFull as error:
            refusal = ("TooManyReviews", f"{error}; this one is not stored")
    now = datetime.now(UTC)
    accepted = Condition(
        type=ConditionType.ACCEPTED,
        status="True" if refusal is None else "False",
        reason=refusal[0] if refusal else "Stored",
        message=refusal[1] if refusal else "This Review is on record.",
        observed_generation=review.metadata.generation,
    )
    stored = refusal is None and run is not None
    phase = _PHASES[said.action] if stored else review.status.phase
    same = stored and review.status.observed_generation == review.metadata.generation
    status = ReviewStatus(
        observed_generation=review.metadata.generation,
        conditions=set_condition(review.status.conditions, accepted, now),
        phase=phase,
        investigation_uid=str(run.id) if run is not None else review.status.investigation_uid,
        noted_at=review.status.noted_at if same or not stored else now,
    )
    await write_status(context.kubernetes.client, context.cache, review, status)
    lost = refusal is not None and run is None and review.status.phase is not None  # what it said went with the record
    return None if refusal is None or lost else UNREVIEWABLE_SECONDS


def what_it_says(review: Review, context: ReconcileContext) -> ReviewActivity:
    """Returns what a Review says, as an entry of the log, without secrets.

    Args:
        review: the object.
        context: masks the note.
    """
    spec = review.spec
    action = ReviewAction.COMPLETED if spec.verdict else ReviewAction.CLAIMED
    return ReviewActivity(
        review=review.metadata.name,
        author=spec.author.username if spec.author else "",
        action=ReviewAction.REOPENED if spec.reopen else action,
        verdict=ReviewVerdict(spec.verdict) if spec.verdict else None,
        root_cause=spec.root_cause.to_dict() if spec.root_cause else None,
        note=clean(context.mask(spec.note)) if spec.note else None,
    )


def _uid(review: Review) -> UUID | None:
    """Returns the investigation that a Review means; once it was found, it stays the same one."""
    named = review.spec.investigation_ref.uid or review.status.investigation_uid
    try:
        return UUID(named) if named else None
    except ValueError:
        return UUID(int=0)  # not the uid of any run


def _which(review: Review) -> str:
    ref = review.spec.investigation_ref
    return f"Investigation {review.metadata.namespace}/{ref.name}" + (f" with uid {ref.uid}" if ref.uid else "")


async def _unentitled(review: Review, context: ReconcileContext) -> tuple[str, str] | None:
    author = review.spec.author
    if author is None:
        return UNKNOWN_AUTHOR
    namespace = review.metadata.namespace
    subject = Subject(author.username, author.uid or "", author.groups)
    what = ResourceAttributes("create", GROUP, Review.PLURAL, namespace=namespace)
    try:
        entitled = await may(context.kubernetes.client, subject, what)
    except ApiError as error:
        if error.transient:
            raise
        entitled = False  # nobody could say, which is never a yes
    if entitled:
        return None
    return (
        "AuthorForbidden",
        f"spec.author: {author.username} may not create reviews.tarsy.dev in namespace {namespace}; grant them the "
        "role tarsy-reviewer there",
    )
