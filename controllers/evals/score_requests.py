"""Takes requests of people for another score of an investigation that has ended.

Watches: Investigations with the annotation `tarsy.dev/score`. Decides: whether a suite scores it. Writes: the
request into the database, then removes the annotation; an Event if no suite scores it.
"""

from uuid import UUID

from tarsy.controllers.evals.scoring import ROUND_SECONDS
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.resources.v1alpha1 import Investigation
from tarsy.resources.v1alpha1.scoring import SCORE_REQUEST

_LONGEST = 64


async def take_score_request(investigation: Investigation, context: ReconcileContext) -> float | None:
    """Takes the request of an Investigation, if it has one; returns the seconds until the next look, None: no need.

    Args:
        investigation: the object.
        context: of all reconciles.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
        StoreError: Postgres is unavailable.
    """
    meta, scoring = investigation.metadata, context.scoring
    if (request := meta.annotations.get(SCORE_REQUEST)) is None or scoring is None:
        return None
    run = await context.store.reads.record(UUID(meta.uid))
    if run is None or not run.state.finished:
        return None  # its end is seen here too
    scorable = run.outcome is not None and run.outcome.finding is not None and not run.replay
    taken = await scoring.request(run, request[:_LONGEST]) if scorable else False
    if taken is None:
        return ROUND_SECONDS
    if not taken:
        text = f"No enabled EvalSuite of this namespace lists Chain {run.chain} in spec.scoring.chains."
        if not scorable:
            text = "It has no finding, or is a replay."
        await context.kubernetes.events.tell(investigation, "NotScored", text, kind="Warning")
    body = {"metadata": {"uid": meta.uid, "annotations": {SCORE_REQUEST: None}}}
    context.cache.put(await context.kubernetes.client.patch(investigation.KIND, meta.namespace, meta.name, body))
    return None
