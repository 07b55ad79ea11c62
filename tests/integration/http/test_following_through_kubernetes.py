"""Tests server-sent events through the Kubernetes API: no buffering, and no loss after a reconnect."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import pytest
import yaml

from apis import LocalApi
from integration.http.doors import certificate_of, client_tls, install, open_doors, uninstall
from integration.live.api import PATIENCE, frames, read_frames, running_run
from tarsy.http.aggregated import AggregatedFrontend
from tarsy.http.live.hub import CHANNELS, Hub
from tarsy.http.table import all_routes
from tarsy.kube.client import KubeClient
from tarsy.stream.listener import Listener
from tarsy.stream.notifier import Notifier
from tarsy_dev.apiserver.process import free_port


@pytest.fixture(scope="module")
def record_port(tarsy_api: LocalApi) -> Iterator[int]:
    """The port that the APIService leads to."""
    port = free_port()
    asyncio.run(install(tarsy_api, port))
    yield port
    asyncio.run(uninstall(tarsy_api))


@pytest.fixture
def person(tarsy_api: LocalApi, tmp_path: Path) -> tuple[str, ssl.SSLContext]:
    """The address of the Kubernetes API, and the certificate of somebody who may do everything there."""
    kubeconfig = tarsy_api.kubeconfig_for("ann", ["system:masters"])
    server = str(yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]["server"])
    return server, client_tls(*certificate_of(kubeconfig, tmp_path))


@pytest.fixture
async def open_to_followers(
    tarsy_api: LocalApi, record_port: int, kube: KubeClient, records: asyncpg.Pool, database_url: str
) -> AsyncIterator[None]:
    live = Hub(records, Listener(database_url, CHANNELS), Notifier(records))
    async with open_doors(tarsy_api, record_port, kube, records, routes=all_routes(), live=live):
        yield


async def test_what_happens_comes_at_once_and_goes_on_after_a_cut(
    open_to_followers: None,
    person: tuple[str, ssl.SSLContext],
    kube: KubeClient,
    records: asyncpg.Pool,
    namespace: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    server, tls = person
    path = f"/apis/record.tarsy.dev/v1alpha1/namespaces/{namespace}/investigations/alert-1/events?follow=true"
    uid = str((await kube.get("Namespace", None, namespace))["metadata"]["uid"])
    async with running_run(records, namespace=namespace) as run, aiohttp.ClientSession() as http:
        await records.execute("UPDATE investigation SET namespace_uid = $1", uid)
        await run.event("before")
        async with http.get(server + path, ssl=tls) as answer:
            assert answer.status == 200, await answer.text()
            assert answer.headers["Content-Type"].startswith("text/event-stream")
            told = await frames(answer, "caughtUp")
            for part in ("one", "two"):
                await run.event(part)
                told += await frames(answer, "timelineEvent.closed")
        monkeypatch.setattr(AggregatedFrontend, "stream_seconds", 0.5)
        await run.event("missed")
        async with asyncio.timeout(PATIENCE):
            while not any(_content(frame) == "missed" for frame in told):
                last = [frame["id"] for frame in told if "id" in frame][-1]
                async with http.get(server + path, ssl=tls, headers={"Last-Event-ID": last}) as answer:
                    told += read_frames(await answer.text())  # all of it: the stream has ended in order
        assert [content for frame in told if (content := _content(frame))] == ["before", "one", "two", "missed"]


def _content(frame: dict[str, Any]) -> str | None:
    event = frame["data"].get("event")
    return event["content"] if isinstance(event, dict) else None
