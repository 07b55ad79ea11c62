"""Determines the rights that limit the reads of stages of kind Changes, when a run is to be accepted.

Watches: nothing of its own. Decides: the reader of a run, and the kinds of its namespace that the reader may list.
Writes: nothing; the answer is frozen in the plan.

A stage reads with its ServiceAccount, whatever that may; a person must not see through it what they may not list
themselves. So the Kubernetes API is asked about each kind as the reader: the author of the run, or, for an alert that
came over HTTP, the reader that its AlertRoute names. That one counts only for runs of the alert's own author: somebody
else who names the alert in an Investigation has their own rights and no others. A kind about which the API cannot
decide is not read. Where the namespace has a history, it is also asked which kinds the reader may get: the history of a
kind tells of single objects, and of deleted ones.
"""

from collections.abc import Iterable

from tarsy.evidence.history.kinds import RECORDED_KINDS
from tarsy.evidence.reading import KINDS, ReadKind, allowed_kinds
from tarsy.kube.access import UNDECIDED, ResourceAttributes, Subject, may
from tarsy.kube.client import ApiError, KubeClient
from tarsy.plan.model import Plan
from tarsy.resources.v1alpha1.alert import AlertContent, AlertSpec
from tarsy.resources.v1alpha1.common import Author


def reader_of(author: Author | None, alert: AlertContent, named_by: Author | None) -> Author | None:
    """Returns whose rights limit what a run reads; None: nobody is known, so nobody's do.

    Args:
        author: of the run.
        alert: the alert.
        named_by: author of the alert.
    """
    stamped = alert.reader if isinstance(alert, AlertSpec) else None
    return stamped if stamped is not None and named_by == author else author


async def limited_to_reader(plan: Plan, reader: Author | None, client: KubeClient, *, history: bool = False) -> Plan:
    """Returns the plan with the kinds that the reader may list, where a stage reads at all.

    Args:
        plan: of the run.
        reader: whose rights limit it; None: nobody's.
        client: as somebody who may create SubjectAccessReviews.
        history: whether changes of objects in the run's namespace are recorded.

    Raises:
        ApiError: nobody could say; that is never a yes.
    """
    if not plan.reads_changes or reader is None:
        return plan
    subject = Subject(reader.username, reader.uid or "", reader.groups)

    async def allowed(verb: str, kinds: Iterable[ReadKind]) -> tuple[ReadKind, ...]:
        return await allowed_kinds(kinds, lambda kind: _may(subject, verb, kind, plan.namespace, client))

    readable = await allowed("list", KINDS)
    recorded = await allowed("get", [one for one in readable if one in RECORDED_KINDS]) if history else ()
    return plan.read_as(reader.username, tuple(one.kind for one in readable), tuple(one.kind for one in recorded))


async def _may(subject: Subject, verb: str, kind: ReadKind, namespace: str, client: KubeClient) -> bool:
    what = ResourceAttributes(verb, kind.api_group, kind.plural, namespace=namespace if kind.namespaced else "")
    try:
        return await may(client, subject, what)
    except ApiError as error:
        if error.reason != UNDECIDED:
            raise
        return False
