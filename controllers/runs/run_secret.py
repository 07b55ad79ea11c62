"""Manages the empty Secret of a run, to which the tokens of its agents are bound (`tarsy.kube.tokens`).

Watches: nothing of its own. Decides: whether a run needs one, which is when an agent of its plan acts as a
ServiceAccount. Writes: the Secret before the run can be claimed, and its deletion once the run has ended, which revokes
the tokens. The object of the run owns it, so it goes with that too; an annotation on that object, made first and taken
away last, says that it may be there, so that no controller that comes after a crash has to look for it.

A namespace that does not let the operator make it gets its run all the same: the agents' tool servers are missing
there, and the run's timeline says why.
"""

import logging

from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.kube.client import ApiError
from tarsy.kube.tokens import secret_name
from tarsy.plan.model import Plan
from tarsy.resources.meta import API_VERSION
from tarsy.resources.v1alpha1 import ChatMessage, Investigation

_log = logging.getLogger(__name__)

RUN_SECRET = "tarsy.dev/run-secret"
_RUN_LABEL = "tarsy.dev/run"
_Run = Investigation | ChatMessage


async def make_run_secret(run: _Run, plan: Plan, context: ReconcileContext) -> None:
    """Makes the Secret of a run whose plan needs one, before a worker can claim the run.

    Args:
        run: the Investigation or ChatMessage, which owns the Secret.
        plan: of the run; without agents that act as a ServiceAccount, no Secret is made.
        context: of the reconcile; notes the run among those that have a Secret.

    Raises:
        ApiError: the Kubernetes API failed or could not be reached.
    """
    if not plan.accounts:
        return
    context.acting.add(run.metadata.uid)
    meta = run.metadata
    await _mark(run, meta.uid, context)
    owner = {"apiVersion": API_VERSION, "kind": run.KIND, "name": meta.name, "uid": meta.uid}
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": secret_name(meta.uid),
            "namespace": meta.namespace,
            "labels": {"app.kubernetes.io/managed-by": "tarsy", _RUN_LABEL: meta.uid},
            "ownerReferences": [owner],
        },
        "type": "tarsy.dev/run",
        "immutable": True,
    }
    try:
        await context.kubernetes.client.create(secret)
    except ApiError as error:
        if error.reason == "Forbidden":
            _log.warning(
                "the agents of %s have no ServiceAccount tokens: its Secret could not be created; apply the component "
                "`tenant-agents`: %s",
                run,
                error.message,
            )
        elif error.reason != "AlreadyExists":
            raise


async def remove_run_secret(run: _Run, context: ReconcileContext) -> None:
    """Deletes the Secret of a run that has ended, if its object says that there may be one.

    Raises:
        ApiError: the Kubernetes API failed or could not be reached.
    """
    meta = run.metadata
    if meta.annotations.get(RUN_SECRET) == meta.uid:
        await _revoke(meta.uid, meta.namespace, context)
        await _mark(run, None, context)
    context.acting.discard(meta.uid)


async def revoke_run_secret(uid: str, namespace: str, context: ReconcileContext) -> None:
    """Deletes the Secret of a run whose object is gone, if this controller made one.

    Args:
        uid: of the object.
        namespace: of the object.
        context: of the reconcile; knows which runs have a Secret.

    Raises:
        ApiError: the Kubernetes API failed or could not be reached.
    """
    if uid in context.acting:
        await _revoke(uid, namespace, context)
        context.acting.discard(uid)


async def _revoke(uid: str, namespace: str, context: ReconcileContext) -> None:
    try:
        await context.kubernetes.client.delete("Secret", namespace, secret_name(uid))
    except ApiError as error:
        if error.reason != "Forbidden":
            raise
        _log.warning(
            "the Secret of an ended run in namespace %s could not be deleted; it goes with the run's object: %s",
            namespace,
            error.message,
        )


async def _mark(run: _Run, mark: str | None, context: ReconcileContext) -> None:
    meta = run.metadata
    if meta.annotations.get(RUN_SECRET) == mark:
        return
    body = {"metadata": {"uid": meta.uid, "annotations": {RUN_SECRET: mark}}}
    try:
        context.cache.put(await context.kubernetes.client.patch(run.KIND, meta.namespace, meta.name, body))
    except ApiError as error:
        if error.reason != "NotFound":
            raise
