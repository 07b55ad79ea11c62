"""Writes Kubernetes Events, which `kubectl describe` prints.

An Event's name is derived from its object, reason and message, so telling a thing twice (after a crash, by a second
controller for the seconds two overlap) makes no second Event. Events are best effort by their nature: failing to write
one is logged, never an error of what it tells about.
"""

import hashlib
import logging
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.meta import API_VERSION, AnyResource

_log = logging.getLogger(__name__)
_MESSAGE_LIMIT = 1024
_NAME_LIMIT = 253


@dataclass(frozen=True, slots=True)
class ObjectReference:
    """Names an object of this project that the caller need not have read."""

    kind: str
    namespace: str
    name: str
    uid: str

    def __str__(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"


class Events:
    """Writes Events."""

    def __init__(self, client: KubeClient, *, component: str = "tarsy", instance: str = "") -> None:
        self._client = client
        self._component = component
        self._instance = instance

    async def tell(
        self,
        obj: AnyResource | ObjectReference,
        reason: str,
        message: str,
        *,
        kind: Literal["Normal", "Warning"] = "Normal",
    ) -> None:
        """Writes one Event about an object.

        Args:
            obj: the object, or a reference to it.
            reason: one CamelCase word.
            message: a sentence.
            kind: Normal or Warning.
        """
        about = obj if isinstance(obj, ObjectReference) else _reference(obj)
        digest = hashlib.sha256(f"{about.uid}\0{reason}\0{message}".encode()).hexdigest()[:16]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{about.name[: _NAME_LIMIT - 17]}.{digest}", "namespace": about.namespace},
            "involvedObject": {
                "apiVersion": API_VERSION,
                "kind": about.kind,
                "name": about.name,
                "namespace": about.namespace,
                "uid": about.uid,
            },
            "reason": reason,
            "message": message[:_MESSAGE_LIMIT],
            "type": kind,
            "source": {"component": self._component, "host": self._instance},
            "reportingComponent": self._component,
            "reportingInstance": self._instance,
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
        try:
            await self._client.create(body)
        except ApiError as error:
            if error.reason != "AlreadyExists":
                _log.warning("Event %s of %s could not be written: %s", reason, obj, error.message)


def _reference(obj: AnyResource) -> ObjectReference:
    meta = obj.metadata
    return ObjectReference(obj.KIND, meta.namespace, meta.name, meta.uid)
