"""Tests kopf on the embedded API: it sees existing and new objects, and continues after an outage."""

import asyncio
import base64
import threading
from typing import Any

import aiohttp
import kopf
import pytest
import yaml

from embedded_kubeapi.server import EmbeddedApi
from integration.kubeapi.conftest import WIDGETS, widget

COUNT = 1000


@pytest.mark.heavy("a thousand objects")
@pytest.mark.usefixtures("widgets")
async def test_kopf_sees_a_thousand_objects(http: aiohttp.ClientSession, api: EmbeddedApi, namespace: str) -> None:
    url = WIDGETS.format(namespace=namespace)
    names = iter([f"w{number}" for number in range(COUNT)])

    async def make() -> None:
        for name in names:
            async with http.post(url, json=widget(name)) as answer:
                assert answer.status == 201

    await asyncio.gather(*(make() for _ in range(8)))
    seen: set[str] = set()
    loop, all_seen, late = asyncio.get_running_loop(), asyncio.Event(), asyncio.Event()
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    def login(**_: Any) -> kopf.ConnectionInfo:
        document = yaml.safe_load(api.kubeconfig.read_text())
        user = document["users"][0]["user"]
        return kopf.ConnectionInfo(
            server=api.url,
            ca_path=str(api.ca_file),
            certificate_data=base64.b64decode(user["client-certificate-data"]),
            private_key_data=base64.b64decode(user["client-key-data"]),
        )

    @kopf.on.event("demo.example.com", "v1", "widgets", registry=registry)
    async def on_event(name: str, **_: Any) -> None:
        seen.add(name)
        if len(seen) == COUNT:
            loop.call_soon_threadsafe(all_seen.set)
        if name == "late":
            loop.call_soon_threadsafe(late.set)

    stop = threading.Event()
    settings = kopf.OperatorSettings()
    settings.posting.enabled = False
    operator = kopf.operator(
        registry=registry, settings=settings, namespaces=[namespace], standalone=True, stop_flag=stop
    )
    thread = threading.Thread(target=lambda: asyncio.run(operator))
    thread.start()
    try:
        async with asyncio.timeout(60):
            await all_seen.wait()
            async with http.post(url, json=widget("late")) as answer:
                assert answer.status == 201
            await late.wait()
    finally:
        stop.set()
        await asyncio.to_thread(thread.join, 30)
