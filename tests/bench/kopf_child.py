"""The active controller in a process of its own: `python kopf_child.py KUBECONFIG DSN kopf|bare`.

With `bare` its watch is a loop of aiohttp and orjson in a thread of its own instead of kopf. For each line of the
standard input it prints what it has used and seen so far, as JSON; it ends with the input.
"""

import asyncio
import json
import ssl
import sys
import threading
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

import aiohttp
import orjson

from tarsy.controllers.machinery.active import ActiveController
from tarsy.controllers.machinery.context import ControllerSettings, KubernetesPorts, StorePorts
from tarsy.controllers.machinery.watch import OnEvent, Watch
from tarsy.kube.client import PAGE_SIZE, KubeClient
from tarsy.kube.credentials import Secrets
from tarsy.kube.events import Events
from tarsy.kube.kinds import path
from tarsy.kube.lease import LeaderElection
from tarsy.resources.v1alpha1 import KINDS
from tarsy.store.database import open_pool
from tarsy.store.questions import Questions
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.lifecycle import Runs

_seen = {"events": 0}


class CountedWatch(Watch):
    """The watch of the product; counts its events."""

    def __init__(self, client: KubeClient, on_event: OnEvent, *, namespaces: tuple[str, ...] = ()) -> None:
        super().__init__(client, _counted(on_event), namespaces=namespaces)


class BareWatch:
    """Lists and watches the same kinds; an error ends it. Its thread has the name of kopf's."""

    def __init__(self, client: KubeClient, on_event: OnEvent, *, namespaces: tuple[str, ...] = ()) -> None:
        self._client = client
        self._on_event = _counted(on_event)

    def why_not(self) -> str | None:
        return None

    async def run(self) -> None:
        """Watches until the process ends."""
        main, way = asyncio.get_running_loop(), await self._client.connection()
        tls = ssl.create_default_context(cafile=way.ca_file)
        if way.certificate_file:
            tls.load_cert_chain(way.certificate_file, way.key_file)
        token = await self._client.token()
        headers = {"Authorization": f"Bearer {token}"} if token else {}

        async def watch_all() -> None:
            connector = aiohttp.TCPConnector(ssl=tls, limit=0)
            async with aiohttp.ClientSession(way.server, connector=connector, headers=headers) as http:
                async with asyncio.TaskGroup() as group:
                    for kind in ("Namespace", *KINDS):
                        group.create_task(self._kind(http, kind, main))

        threading.Thread(target=lambda: asyncio.run(watch_all()), name="kopf", daemon=True).start()
        await asyncio.Event().wait()

    async def _kind(self, http: aiohttp.ClientSession, kind: str, main: asyncio.AbstractEventLoop) -> None:
        query = {"limit": str(PAGE_SIZE)}
        while True:
            async with http.get(path(kind), params=query, raise_for_status=True) as answer:
                page = orjson.loads(await answer.read())
            for item in page["items"]:
                main.call_soon_threadsafe(self._on_event, None, {**item, "kind": kind})
            if not (following := page["metadata"].get("continue")):
                break
            query["continue"] = following
        watch = {"watch": "true", "resourceVersion": page["metadata"]["resourceVersion"]}
        patience = aiohttp.ClientTimeout(total=None)
        async with http.get(path(kind), params=watch, timeout=patience, raise_for_status=True) as stream:
            async for line in _lines(stream.content.iter_any()):
                event = orjson.loads(line)
                main.call_soon_threadsafe(self._on_event, event["type"], event["object"])


class Chosen(LeaderElection):
    """Is active at once, whatever the Lease says."""

    async def run(self) -> None:
        self.passive.clear()
        self.active.set()
        await asyncio.Event().wait()


def _counted(on_event: OnEvent) -> OnEvent:
    def event(kind: str | None, raw: Mapping[str, Any]) -> None:
        _seen["events"] += 1
        on_event(kind, raw)

    return event


async def _lines(pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    rest = b""
    async for piece in pieces:
        *whole, rest = (rest + piece).split(b"\n")
        for line in whole:
            yield line


def _used() -> dict[str, float]:
    """Seconds of CPU of the process and of the thread that watches, and the events so far."""
    found = [one for one in threading.enumerate() if one.name == "kopf" and one.ident is not None]
    watching = sum(time.clock_gettime(time.pthread_getcpuclockid(one.ident or 0)) for one in found)
    return {"total": time.process_time(), "watch": watching, **_seen}


async def _main(kubeconfig: str, dsn: str, which: str) -> None:
    pool, changed = await open_pool(dsn, min_size=1, max_size=8, application="tarsy bench"), asyncio.Event()
    kinds = {"kopf": CountedWatch, "bare": BareWatch}
    async with await KubeClient.load(Path(kubeconfig)) as client:
        with patch("tarsy.controllers.machinery.active.Watch", kinds[which]):
            controller = ActiveController(
                KubernetesPorts(client, Events(client), Secrets(client)),
                StorePorts(Runs(pool), Reads(pool), Questions(pool), changed=changed),
                ControllerSettings("library", relist_seconds=3600.0),
                Chosen(client, "default", "bench", "bench"),
            )
        running = asyncio.create_task(controller.run())
        while await asyncio.to_thread(sys.stdin.readline):
            if running.done():
                running.result()
            print(json.dumps(_used()), flush=True)
        running.cancel()
        await asyncio.wait([running], timeout=20)
    await pool.close()


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:4]))
