"""The empty Secret of a run, which the tokens that its agents act by are bound to (`tarsy.kube.tokens`).

Watches: nothing of its own. Decides: whether a run needs one, which is when an agent of its plan acts as a
ServiceAccount. Writes: the Secret before the run can be claimed, and its deletion once the run has ended, which revokes
the tokens. The object of the run owns it, so it goes with that too; an annotation on that object, made first and taken
away last, says that it may be there, so that no controller that comes after a crash has to look for it.

A namespace that does not let the operator make it gets its run all the same: the agents' tool servers are missing
there, and the run's timeline says why.
"""

import logging

from tarsy.controllers.machinery.cache import Cache
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.tokens import secret_name
from tarsy.resources.meta import API_VERSION
from tarsy.resources.v1alpha1 import ChatMessage, Investigation

_log = logging.getLogger(__name__)

RUN_SECRET = "tarsy.dev/run-secret"
_RUN_LABEL = "tarsy.dev/run"
_Run = Investigation | ChatMessage


async def make(run: _Run, client: KubeClient, cache: Cache) -> None:
    """Makes the Secret of a run, where it is not there.

    Raises:
        ApiError: the Kubernetes API failed or could not be reached.
    """
    meta = run.metadata
    await _mark(run, meta.uid, client, cache)
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
        await client.create(secret)
    except ApiError as error:
        if error.reason == "Forbidden":
            _log.warning(
                "%s acts as nobody: its Secret may not be made; component `tenant-agents`: %s", run, error.message
            )
        elif error.reason != "AlreadyExists":
            raise


async def remove(run: _Run, client: KubeClient, cache: Cache) -> None:
    """Deletes the Secret of a run that has ended, where it may be there.

    Raises:
        ApiError: the Kubernetes API failed or could not be reached.
    """
    if run.metadata.annotations.get(RUN_SECRET) != run.metadata.uid:
        return
    await revoke(run.metadata.uid, run.metadata.namespace, client)
    await _mark(run, None, client, cache)


async def revoke(uid: str, namespace: str, client: KubeClient) -> None:
    """Deletes the Secret of a run whose object has this uid.

    Raises:
        ApiError: the Kubernetes API failed or could not be reached.
    """
    try:
        await client.delete("Secret", namespace, secret_name(uid))
    except ApiError as error:
        if error.reason != "Forbidden":
            raise
        _log.warning("a Secret of an ended run in namespace %s was left to its owner: %s", namespace, error.message)


async def _mark(run: _Run, mark: str | None, client: KubeClient, cache: Cache) -> None:
    meta = run.metadata
    if meta.annotations.get(RUN_SECRET) == mark:
        return
    body = {"metadata": {"uid": meta.uid, "annotations": {RUN_SECRET: mark}}}
    try:
        cache.put(await client.patch(run.KIND, meta.namespace, meta.name, body))
    except ApiError as error:
        if error.reason != "NotFound":
            raise
