"""Provides the HTTP API of a test: the real routes at the direct port, a Kubernetes API, a record, tokens."""

import contextlib
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable

import asyncpg
import pytest
from aiohttp.test_utils import TestServer

from apis import LocalApi
from integration.http.door import Door, open_door
from integration.http.site import Site, Visitor
from tarsy.http.application import build_application
from tarsy.http.authentication.access import AccessReviews
from tarsy.http.authentication.frontends import BearerFrontend
from tarsy.http.intake.configuration import Configuration
from tarsy.http.intake.texts import LargeTexts
from tarsy.http.namespaces import NamespaceReader
from tarsy.http.services import Services
from tarsy.http.table import all_routes
from tarsy.kube.client import KubeClient
from tarsy.record.judging.shown_confidence import HIGH_FLOOR
from tarsy.store.history.object_history import ObjectHistory
from tarsy.store.intake import Intake
from tarsy.store.reading.reads import Reads

Grant = Callable[..., Awaitable[Visitor]]


@pytest.fixture
async def site(tarsy_api: LocalApi, kube: KubeClient, records: asyncpg.Pool) -> AsyncIterator[Site]:
    """The API, open."""
    async with contextlib.AsyncExitStack() as stack:
        callers = await stack.enter_async_context(kube.without_identity())
        services = Services(
            pool=records,
            reads=Reads(records, HIGH_FLOOR),
            kube=kube,
            callers=callers,
            access=AccessReviews(kube),
            namespaces=NamespaceReader(kube),
            texts=LargeTexts(Configuration(kube, "tarsy-library"), Intake(records)),
            history=ObjectHistory(records),
            library_namespace=f"library-{uuid.uuid4().hex[:8]}",
        )
        await kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": services.library_namespace}})
        server = TestServer(build_application(all_routes(), BearerFrontend(kube), services))
        await stack.enter_async_context(server)
        yield Site(str(server.make_url("")).rstrip("/"), services, stack)


@pytest.fixture
async def administrator(site: Site, namespace: str) -> Visitor:
    """Who may do everything."""
    return await site.visitor(
        namespace, "administrator", everywhere=[{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
    )


@pytest.fixture
async def door(kube: KubeClient, records: asyncpg.Pool, namespace: str) -> AsyncIterator[Door]:
    """The intake, open."""
    async with open_door(kube, records, namespace) as door:
        yield door
