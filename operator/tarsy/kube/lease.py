"""Elects the active controller by one `coordination.k8s.io` Lease.

Time is judged by how long the Lease has not changed as seen here, never by comparing clocks of two machines (the way
of client-go's leader election). A holder that cannot renew gives its role up after two thirds of the Lease, counted
from before its last renewal was sent, hence before anybody else may take it. Yet a replica that was paused believes for
a moment longer, so everything an active controller does is idempotent; the Lease saves work, it is not the fence.
"""

import asyncio
import logging
import time
from datetime import UTC, datetime
from typing import Any

from tarsy.kube.client import ApiError, KubeClient

GIVE_BACK_SECONDS = 2.0
"""How long a holder that ends tries to give the Lease back; without that it lapses."""

_log = logging.getLogger(__name__)


class LeaderElection:
    """Holds, or waits for, one Lease.

    Args:
        seconds: how long a holder that is not heard of keeps the Lease.
        renew_seconds: pause between renewals; must be well below `seconds`.

    `active` is set while the Lease is held, `passive` while it is not.
    """

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        name: str,
        identity: str,
        *,
        seconds: float = 15.0,
        renew_seconds: float = 3.0,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._seconds = seconds
        self._renew_seconds = renew_seconds
        self._trusted_seconds = seconds * 2 / 3
        self._seen: tuple[str, float] | None = None
        self._renewed = 0.0
        self.active = asyncio.Event()
        self.passive = asyncio.Event()
        self.passive.set()

    async def run(self) -> None:
        """Competes for the Lease until cancelled, then releases it."""
        try:
            while True:
                await self._step()
                await asyncio.sleep(self._pause())
        finally:
            if self.active.is_set():
                self._become(False)
                await asyncio.shield(self._give_back())

    def _pause(self) -> float:
        """Returns the seconds until the next try; never past the moment at which an unrenewed Lease is given up."""
        if not self.active.is_set():
            return self._renew_seconds
        left = self._renewed + self._trusted_seconds - time.monotonic()
        return max(0.0, min(self._renew_seconds, left))

    async def _step(self) -> None:
        asked = time.monotonic()
        patience = self._seconds / 2
        if self.active.is_set():
            patience = min(patience, self._renewed + self._trusted_seconds - asked)
        try:
            async with asyncio.timeout(patience):
                held = await self._acquire_or_renew()
        except (ApiError, TimeoutError) as error:
            text = str(error) or f"no answer within {patience:.1f} s"
            _log.warning("lease %s/%s could not be renewed: %s", self._namespace, self._name, text)
            trusted = self._renewed + self._trusted_seconds - time.monotonic()
            held = self.active.is_set() and trusted > 0
        else:
            if held:
                self._renewed = asked
        if held and not self.active.is_set():
            _log.info("%s is the active controller", self._identity)
            self._become(True)
        elif not held and self.active.is_set():
            _log.warning("%s is no longer the active controller", self._identity)
            self._become(False)

    def _become(self, active: bool) -> None:
        on, off = (self.active, self.passive) if active else (self.passive, self.active)
        off.clear()
        on.set()

    async def _acquire_or_renew(self) -> bool:
        lease = await self._client.find("Lease", self._namespace, self._name)
        if lease is None:
            return await self._write(self._client.create, self._body({}, {}, transitions=0))
        spec: dict[str, Any] = lease.get("spec") or {}
        holder = spec.get("holderIdentity") or ""
        if holder not in ("", self._identity) and not self._abandoned(lease, spec):
            return False
        transitions = int(spec.get("leaseTransitions") or 0) + (holder != self._identity)
        return await self._write(self._client.replace, self._body(lease["metadata"], spec, transitions))

    def _abandoned(self, lease: dict[str, Any], spec: dict[str, Any]) -> bool:
        version, now = lease["metadata"]["resourceVersion"], time.monotonic()
        if self._seen is None or self._seen[0] != version:
            self._seen = (version, now)
        return now - self._seen[1] > float(spec.get("leaseDurationSeconds") or self._seconds)

    async def _write(self, write: Any, body: dict[str, Any]) -> bool:
        try:
            await write(body)
        except ApiError as error:
            if error.reason in ("Conflict", "AlreadyExists", "NotFound"):
                return False
            raise
        return True

    def _body(self, metadata: dict[str, Any], old: dict[str, Any], transitions: int) -> dict[str, Any]:
        kept = {k: metadata[k] for k in ("resourceVersion", "uid") if k in metadata}
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        ours = old.get("holderIdentity") == self._identity
        return {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": self._name, "namespace": self._namespace, **kept},
            "spec": {
                "holderIdentity": self._identity,
                "leaseDurationSeconds": max(1, round(self._seconds)),
                "renewTime": now,
                "acquireTime": old.get("acquireTime") or now if ours else now,
                "leaseTransitions": transitions,
            },
        }

    async def _give_back(self) -> None:
        try:
            async with asyncio.timeout(GIVE_BACK_SECONDS):
                lease = await self._client.find("Lease", self._namespace, self._name)
                spec: dict[str, Any] = (lease or {}).get("spec") or {}
                if lease and spec.get("holderIdentity") == self._identity:
                    body = self._body(lease["metadata"], spec, int(spec.get("leaseTransitions") or 0))
                    body["spec"]["holderIdentity"] = ""
                    await self._client.replace(body)
        except (ApiError, TimeoutError) as error:
            _log.info("lease %s/%s could not be released and will expire: %s", self._namespace, self._name, error)
