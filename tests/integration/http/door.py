"""Provides the intake to tests: open at the direct port, with a Kubernetes API, a record, and a sender with a token."""

import base64
import contextlib
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import aiohttp
import asyncpg
from aiohttp.test_utils import TestServer

import rights
from integration.http.site import Site
from tarsy.http.application import build_application
from tarsy.http.authentication.access import AccessReviews
from tarsy.http.authentication.frontends import BearerFrontend
from tarsy.http.intake.application import add_intake
from tarsy.http.namespaces import NamespaceReader
from tarsy.http.services import Services
from tarsy.kube.client import KubeClient
from tarsy.kube.credentials import LABEL, Secrets
from tarsy.observe.metrics import Metrics
from tarsy.resources.meta import API_VERSION
from tarsy.store.intake import Intake
from tarsy.store.reading.reads import Reads

CREATE = [{"apiGroups": ["tarsy.dev"], "resources": ["alerts"], "verbs": ["create"]}]
SENDER = "prometheus"
"""The ServiceAccount that may create Alerts."""


@dataclass
class Door:
    """The intake, open, and how tests send to it."""

    base: str
    kube: KubeClient
    pool: asyncpg.Pool
    namespace: str
    session: aiohttp.ClientSession
    site: Site
    metrics: Metrics

    async def send(self, content: Any, source: str = "alertmanager", **more: Any) -> tuple[int, dict[str, Any]]:
        """Status and JSON of the answer."""
        data = content if isinstance(content, bytes) else json.dumps(content).encode()
        session = more.pop("session", self.session)
        more.setdefault("params", {"namespace": self.namespace})  # the routes of this test
        async with session.post(f"{self.base}/intake/v1/{source}", data=data, **more) as answer:
            return answer.status, await answer.json()

    @property
    def address(self) -> str:
        """Where Alertmanager sends to."""
        return self.address_at(self.base)

    def address_at(self, base: str) -> str:
        """Where it sends to by way of another host."""
        return f"{base}/intake/v1/alertmanager?namespace={self.namespace}"

    async def route(self, name: str = "all", **spec: Any) -> None:
        await self.put("AlertRoute", name, spec)

    async def put(self, kind: str, name: str, spec: dict[str, Any], namespace: str | None = None) -> None:
        meta = {"name": name, "namespace": namespace or self.namespace}
        await self.kube.create({"apiVersion": API_VERSION, "kind": kind, "metadata": meta, "spec": spec})

    async def secret(self, name: str, value: str, **labels: str) -> None:
        meta = {"name": name, "namespace": self.namespace, "labels": labels or {LABEL: "true"}}
        data = {"key": base64.b64encode(value.encode()).decode()}
        await self.kube.create({"apiVersion": "v1", "kind": "Secret", "metadata": meta, "data": data})

    async def allow(self, account: str) -> None:
        """Lets a ServiceAccount of the namespace create Alerts there."""
        name = f"senders-{account}"
        bound = rights.binding(name, self.namespace, "Role", name, rights.account(account, self.namespace))
        await rights.put_rights(self.kube, (rights.role(name, self.namespace, *CREATE), bound))

    async def alerts(self) -> list[dict[str, Any]]:
        return await self.kube.list("Alert", self.namespace)

    async def rows(self) -> list[tuple[str, str]]:
        found = await self.pool.fetch("SELECT fate, reason FROM notification ORDER BY id")
        return [(row["fate"], row["reason"]) for row in found]


@contextlib.asynccontextmanager
async def open_intake(kube: KubeClient, records: asyncpg.Pool) -> AsyncIterator[tuple[str, Services, Metrics]]:
    """An intake that has just started: its URL, and what it stands on."""
    async with contextlib.AsyncExitStack() as stack:
        callers = await stack.enter_async_context(kube.without_identity())
        access, metrics = AccessReviews(kube, seconds=0.0), Metrics()
        services = Services(records, Reads(records), kube, callers, access, NamespaceReader(kube))
        direct = BearerFrontend(kube)
        app = build_application((), direct, services, metrics)
        add_intake(
            app,
            direct,
            services=services,
            metrics=metrics,
            read_secret=Secrets(kube),
            intake=Intake(records, queue_limit=5),
        )
        server = TestServer(app, handler_cancellation=True)
        await stack.enter_async_context(server)
        yield str(server.make_url("")).rstrip("/"), services, metrics


@contextlib.asynccontextmanager
async def open_door(kube: KubeClient, records: asyncpg.Pool, namespace: str) -> AsyncIterator[Door]:
    """The intake of a test, open."""
    async with contextlib.AsyncExitStack() as stack:
        base, services, metrics = await stack.enter_async_context(open_intake(kube, records))
        site = Site(base, services, stack)
        sender = await site.visitor(namespace, SENDER, here=CREATE)
        yield Door(site.base, kube, records, namespace, sender.session, site, metrics)
