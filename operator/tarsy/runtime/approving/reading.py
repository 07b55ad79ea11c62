"""Reads the objects that a call changes, with a token of the run's ServiceAccount.

Decision: neither the worker's own rights nor those of a tool server read them, so people are shown what the account of
the run may read. Of Secrets only the metadata is read. Nothing is written.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.response_room import ResponseRoom, ResponseTooLarge
from tarsy.mcp.errors import OpenFailed
from tarsy.record.approvals.approval_targets import TargetName
from tarsy.runtime.service_account_tokens import RunTokens

_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
_ROOM = 4 * 1024 * 1024
_TRIES = 3
_PAUSE_SECONDS = 1.0


class TargetsUnread(Exception):
    """Objects could not be read; the text says why. `away`: the Kubernetes API did not answer, so that later it may."""

    def __init__(self, sentence: str, *, away: bool = False) -> None:
        super().__init__(sentence)
        self.away = away


async def read_nothing(account: str | None, names: Sequence[TargetName]) -> list[Mapping[str, Any] | None]:
    """Reads for a process that reads no objects of the cluster.

    Args:
        account: ServiceAccount of the run's namespace.
        names: of the objects.

    Raises:
        TargetsUnread: always.
    """
    raise TargetsUnread("this process reads no objects of the cluster")


class TargetReader:
    """Reads for one run.

    Args:
        client: the Kubernetes API without an identity.
        tokens: of the run.
        pause: seconds before a read is tried again.
    """

    def __init__(self, client: KubeClient, tokens: RunTokens, pause: float = _PAUSE_SECONDS) -> None:
        self._client = client
        self._tokens = tokens
        self._pause = pause
        self._resources: dict[str, Mapping[str, Any]] = {}

    async def read(self, account: str | None, names: Sequence[TargetName]) -> list[Mapping[str, Any] | None]:
        """Reads objects; None for one that does not exist.

        Args:
            account: ServiceAccount of the run's namespace.
            names: of the objects.

        Raises:
            TargetsUnread: one of them could not be read.
        """
        if account is None:
            raise TargetsUnread(
                "no ServiceAccount is known to read them with; set serviceAccountName of the Agent to one that may "
                "get them"
            )
        for left in range(_TRIES - 1, -1, -1):
            try:
                token = await self._tokens.for_cluster(account)
                client, room = self._client.bearing(token.text), ResponseRoom(_ROOM)
                return [await self._object(client, name, room) for name in names]
            except OpenFailed as failed:
                raise TargetsUnread(failed.sentence) from failed
            except ResponseTooLarge:
                raise TargetsUnread("they are larger than 4 MiB") from None
            except ApiError as error:
                if not error.transient:
                    raise TargetsUnread(f"ServiceAccount {account} cannot read them: {error.message}") from error
                if not left:
                    raise TargetsUnread(error.message, away=True) from error
                await asyncio.sleep(self._pause)
        raise AssertionError("the last try returns or raises")

    async def _object(self, client: KubeClient, name: TargetName, room: ResponseRoom) -> Mapping[str, Any] | None:
        found = await self._resource(client, name)
        if found.get("namespaced") and not name.namespace:
            raise TargetsUnread(f"the call names no namespace for {name}; name it")
        group = f"/api/{name.api_version}" if "/" not in name.api_version else f"/apis/{name.api_version}"
        place = f"/namespaces/{quote(name.namespace, safe='')}" if found.get("namespaced") else ""
        target = f"{group}{place}/{found['name']}/{quote(name.name, safe=':')}"
        secret = name.kind == "Secret"
        try:
            return await client.request("GET", target, accept=_METADATA if secret else "application/json", room=room)
        except ApiError as error:
            if error.reason == "NotFound":
                return None
            raise

    async def _resource(self, client: KubeClient, name: TargetName) -> Mapping[str, Any]:
        """Returns the entry of the API's discovery for a kind."""
        version = name.api_version
        if version not in self._resources:
            path = f"/api/{version}" if "/" not in version else f"/apis/{version}"
            try:
                listed = await client.request("GET", path)
            except ApiError as error:
                if error.status == 404:
                    raise TargetsUnread(f"the Kubernetes API does not serve {version}") from error
                raise
            self._resources[version] = {
                one["kind"]: one for one in listed.get("resources") or () if "/" not in str(one.get("name", "/"))
            }
        if name.kind not in self._resources[version]:
            raise TargetsUnread(f"the Kubernetes API serves no kind {name.kind} of {version}")
        found: Mapping[str, Any] = self._resources[version][name.kind]
        return found
