"""Makes the ToolApprovals that runs ask for, and hands those with news to their reconcile.

Watches: approvals in Postgres, every two seconds. Decides: nothing. Writes: the objects, whose name derives from the
approval, so that making one twice is making it once.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any
from uuid import UUID

from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.kube.client import ApiError, KubeClient
from tarsy.record.approvals.approval import ApprovalState
from tarsy.resources.meta import API_VERSION
from tarsy.resources.v1alpha1 import ToolApproval
from tarsy.store.approvals import ApprovalRecord, ApprovalStore

_log = logging.getLogger(__name__)
ASKING_SECONDS = 2.0


class ApprovalRequests:
    """Makes objects of approvals.

    Args:
        client: the Kubernetes API.
        cache: takes the objects that were made.
        approvals: the stored approvals.
        wake: lets a parked run go on.
        look_at: takes the key of an object that is to be reconciled.
    """

    def __init__(
        self,
        client: KubeClient,
        cache: Cache,
        approvals: ApprovalStore,
        wake: Callable[[UUID], Awaitable[bool]],
        look_at: Callable[[Key], None],
    ) -> None:
        self._client = client
        self._cache = cache
        self._approvals = approvals
        self._wake = wake
        self._look_at = look_at

    async def round(self) -> None:
        """Does all that is due.

        Raises:
            ApiError: the Kubernetes API is away.
            StoreError: Postgres is away.
        """
        for record in await self._approvals.unsettled():
            key = Key(ToolApproval.KIND, record.namespace, record.object_name)
            if record.object_uid is not None:
                if self._cache.version(key) is not None:
                    self._look_at(key)
                elif record.state not in (ApprovalState.PENDING, ApprovalState.APPROVED):
                    await self._told(record)  # its object is gone
            elif record.state is ApprovalState.PENDING:
                await self._make(record, key)
            else:
                await self._told(record)

    async def _told(self, record: ApprovalRecord) -> None:
        """Lets the run of an approval without an object go on."""
        await self._wake(record.investigation)
        await self._approvals.published(record.id, record.revision)

    async def _make(self, record: ApprovalRecord, key: Key) -> None:
        if not record.requesters:
            text = "The user who started the run is unknown (spec.author is not set), so approvers cannot be checked."
            await self._approvals.settle(record.id, ApprovalState.REJECTED, outcome=text)
            return
        try:
            raw = await self._client.create(object_of(record))
        except ApiError as error:
            if error.transient:
                raise
            if error.reason != "AlreadyExists":
                text = f"The ToolApproval could not be created: {error.message}"
                _log.warning("approval %s of %s/%s: %s", record.id, record.namespace, record.run_name, text)
                await self._approvals.settle(record.id, ApprovalState.REJECTED, outcome=text)
                return
            raw = await self._client.get(key.kind, key.namespace, key.name)
            if raw["spec"].get("argumentsDigest") != record.digest or raw["spec"].get("decisions"):
                text = f"Another ToolApproval {key.name} exists, which TARSy did not create."
                await self._approvals.settle(record.id, ApprovalState.REJECTED, outcome=text)
                return
        await self._approvals.made(record.id, raw["metadata"]["uid"])
        self._look_at(self._cache.put(raw))


def object_of(record: ApprovalRecord) -> Mapping[str, Any]:
    """Returns the object that people see."""
    kind = "ChatMessage" if record.question else "Investigation"
    spec = {
        **record.request["shown"],
        "provenance": record.request.get("provenance", []),
        "runRef": {"name": record.run_name, "uid": str(record.investigation), "kind": kind},
        "argumentsDigest": record.digest,
        "targets": list(record.targets),
        "expiresAt": record.expires_at.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "required": record.required,
        "requesters": list(record.requesters),
        "decisions": [],
    }
    meta = {"namespace": record.namespace, "name": record.object_name}
    made = ToolApproval.model_validate({"metadata": meta, "spec": spec})
    written = made.to_dict()
    # Kubernetes 1.20 as some build it takes an empty text for null.
    written["spec"]["preview"] = {name: value for name, value in written["spec"]["preview"].items() if value != ""}
    return {"apiVersion": API_VERSION, **written}
