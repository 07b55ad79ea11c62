"""Writes Kubernetes Events, which `kubectl describe` prints.

An Event's name is derived from its object, reason and message, so telling a thing twice (after a crash, by a second
controller for the seconds two overlap) makes no second Event. Events are best effort by their nature: failing to write
one is logged, never an error of what it tells about.
"""

import hashlib
import logging
from datetime import UTC, datetime
from typing import Literal

from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.meta import AnyResource

_log = logging.getLogger(__name__)
_MESSAGE_LIMIT = 1024
_NAME_LIMIT = 253


class Events:
    """Writes Events."""

    def __init__(self, client: KubeClient, *, component: str = "tarsy", instance: str = "") -> None:
        self._client = client
        self._component = component
        self._instance = instance

    async def tell(
        self, obj: AnyResource, reason: str, message: str, *, kind: Literal["Normal", "Warning"] = "Normal"
    ) -> None:
        """Writes one Event about an object.

        Args:
            obj: the object.
            reason: one CamelCase word.
            message: a sentence.
            kind: Normal or Warning.
        """
        meta = obj.metadata
        digest = hashlib.sha256(f"{meta.uid}\0{reason}\0{message}".encode()).hexdigest()[:16]
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        body = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{meta.name[: _NAME_LIMIT - 17]}.{digest}", "namespace": meta.namespace},
            "involvedObject": {
                "apiVersion": obj.api_version,
                "kind": obj.KIND,
                "name": meta.name,
                "namespace": meta.namespace,
                "uid": meta.uid,
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
