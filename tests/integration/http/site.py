"""Provides the running API to tests: users with tokens and permissions, and records to request."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import aiohttp

import rights
from integration.store.build import new_run
from tarsy.http.services import Services
from tarsy.resources.meta import API_VERSION
from tarsy.store.runs.lifecycle import NewRun, Runs

Rules = Sequence[Mapping[str, Sequence[str]]]


@dataclass(frozen=True)
class Answer:
    """What was answered: status, JSON, headers."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def message(self) -> str:
        """The sentence of an error."""
        return str(self.body["error"]["message"])


@dataclass(frozen=True)
class Visitor:
    """Somebody with a token."""

    base: str
    session: aiohttp.ClientSession
    username: str

    async def get(self, path: str, **query: Any) -> Answer:
        """Asks. A list as a parameter is given several times."""
        return await self._ask("GET", path, query)

    async def post(self, path: str, body: Any = None, **headers: str) -> Answer:
        """Sends JSON, or nothing; `_` in the name of a header is `-`."""
        return await self._ask("POST", path, {}, body, {name.replace("_", "-"): v for name, v in headers.items()})

    async def _ask(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        pairs = [(k, str(one)) for k, v in query.items() for one in (v if isinstance(v, list) else [v])]
        url = f"{self.base}/api/v1{path}"
        async with self.session.request(method, url, params=pairs, json=body, headers=headers) as answer:
            return Answer(answer.status, await answer.json(), answer.headers)


class Site:
    """Where the API is, and what it stands on."""

    def __init__(self, base: str, services: Services, stack: contextlib.AsyncExitStack) -> None:
        self.base = base
        self.services = services
        self._stack = stack

    async def visitor(self, namespace: str, name: str, *, here: Rules = (), everywhere: Rules = ()) -> Visitor:
        """A ServiceAccount of the namespace with rules for it and for the cluster."""
        kube = self.services.kube
        await kube.create(_object("v1", "ServiceAccount", name, namespace))
        for kind, rules, space in (("Role", here, namespace), ("ClusterRole", everywhere, "")):
            if rules:
                called = f"{name}-{uuid4().hex[:8]}"
                bound = rights.binding(called, space, kind, called, rights.account(name, namespace))
                await rights.put_rights(kube, (rights.role(called, space, *rules), bound))
        token = await kube.create_token(namespace, name)
        headers = {"Authorization": f"Bearer {token}"}
        session = await self._stack.enter_async_context(aiohttp.ClientSession(headers=headers))
        return Visitor(self.base, session, f"system:serviceaccount:{namespace}:{name}")

    async def uid_of(self, namespace: str) -> str:
        """The uid of a namespace."""
        return str((await self.services.kube.get("Namespace", None, namespace))["metadata"]["uid"])

    async def accepted(self, namespace: str, name: str = "alert-1", **changes: Any) -> NewRun:
        """A run on record in a namespace that there is."""
        of_run = new_run(namespace=namespace, name=name)
        values = {field: getattr(of_run, field) for field in NewRun.__dataclass_fields__}
        run = NewRun(**{**values, "namespace_uid": await self.uid_of(namespace), **changes})
        await Runs(self.services.pool).accept(run)
        return run

    async def put(self, kind: str, namespace: str, name: str, spec: Mapping[str, Any], **status: Any) -> dict[str, Any]:
        """An object of ours, with a status."""
        kube = self.services.kube
        made = await kube.create(_object(API_VERSION, kind, name, namespace) | {"spec": dict(spec)})
        if status:
            made = await kube.patch(kind, namespace, name, {"status": status}, subresource="status")
        return made


def condition(type_: str, status: str, reason: str = "Because", message: str = "It is so.") -> dict[str, str]:
    """A condition as a status has it."""
    return {
        "type": type_,
        "status": status,
        "reason": reason,
        "message": message,
        "lastTransitionTime": "2026-11-22T12:00:00Z",
    }


def uid(made: Mapping[str, Any]) -> UUID:
    """The uid of an object."""
    return UUID(made["metadata"]["uid"])


def _object(version: str, kind: str, name: str, namespace: str | None) -> dict[str, Any]:
    meta = {"name": name} | ({"namespace": namespace} if namespace else {})
    return {"apiVersion": version, "kind": kind, "metadata": meta}
