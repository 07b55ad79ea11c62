"""The embedded Kubernetes API beside the real one, in the same run: start, requests a second, watch latency, memory.

Both are asked by the same client from this process, in turns; they run as processes of their own, so that their memory
can be told from ours. The client's own cost is in both figures, so real differences are larger.
"""

import asyncio
import contextlib
import json
import ssl
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import aiohttp
from tests.bench.figures import Figure, Result, percentile
from tests.bench.processes import memory

from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.kinds import path
from tarsy.resources.meta import API_VERSION
from tarsy_dev.apiserver.process import Spawner, end
from tarsy_dev.apiserver.server import ApiServer
from tarsy_dev.objects import install_crds, put

SPACE = "bench"
KIND = "Investigation"
CLIENTS = 16
START_SECONDS = 120.0
DATA = "node-1: pods of Deployment checkout in namespace shop are crash looping\n" * 10


@dataclass(frozen=True, slots=True)
class Sizes:
    """How much of everything: objects of the list, lists, watched changes, objects in memory."""

    objects: int
    lists: int
    changes: int
    held: int


@dataclass(frozen=True, slots=True)
class Api:
    """A running API: its administrator's kubeconfig, and its processes."""

    kubeconfig: Path
    pids: Sequence[int]


Start = Callable[[Path], contextlib.AbstractAsyncContextManager[Api]]


Found = dict[str, tuple[float, str]]
"""Figures by name, with their units."""


async def run(quick: bool) -> Result:
    """Measures both, each figure of one right after that of the other: what else the machine does hits both alike."""
    sizes = Sizes(100, 3, 20, 300) if quick else Sizes(1000, 10, 200, 10_000)
    async with contextlib.AsyncExitStack() as stack:
        sides = [await _Side.start(stack, start) for start in (_embedded, _real)]
        for step in (_Side.rate_of_creates, _Side.rate_of_gets, _Side.rate_of_patches, _Side.lists, _Side.watch):
            for side in sides:
                await step(side, sizes)
        for side in sides:
            await side.fill(sizes)
    ours, real = (side.found for side in sides)
    how = (
        f"{CLIENTS} requests at a time from one client; {sizes.lists} lists of {sizes.objects}; {sizes.changes} status "
        f"patches one after the other, each timed from sending it to its event; resident memory of all processes of an "
        f"API holding {sizes.held} Investigations of {len(DATA)} bytes of alert and a status. Ratio: embedded / real."
    )
    figures = [Figure(name, value, unit, beside=real[name][0]) for name, (value, unit) in ours.items()]
    return Result(how, figures, columns=("embedded", "real"))


class _Side:
    """One API under measurement, and what was found."""

    def __init__(self, api: Api, client: KubeClient, found: Found) -> None:
        self._api = api
        self._client = client
        self._requests = _requests(client)
        self.found = found

    @classmethod
    async def start(cls, stack: contextlib.AsyncExitStack, start: Start) -> "_Side":
        """Starts it, until it answers, and makes it ready for the rest."""
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tarsy-bench-", ignore_cleanup_errors=True))
        began = time.monotonic()
        api = await stack.enter_async_context(start(Path(folder)))
        client = await stack.enter_async_context(await KubeClient.load(api.kubeconfig))
        await client.list("Namespace")
        found = {"start, until the first answer": (time.monotonic() - began, "s")}
        found["memory, empty"] = (_resident(api), "MiB")
        await install_crds(client)
        await put(client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}})
        return cls(api, client, found)

    async def rate_of_creates(self, sizes: Sizes) -> None:
        await self._rate("create", sizes)

    async def rate_of_gets(self, sizes: Sizes) -> None:
        await self._rate("get", sizes)

    async def rate_of_patches(self, sizes: Sizes) -> None:
        await self._rate("status patch", sizes)

    async def _rate(self, what: str, sizes: Sizes) -> None:
        self.found[what] = (await _rate(self._requests[what], _names(0, sizes.objects)), "a second")

    async def lists(self, sizes: Sizes) -> None:
        self.found[f"list of {sizes.objects:,}"] = (await _lists(self._client, sizes), "a second")

    async def watch(self, sizes: Sizes) -> None:
        delays = await _watch_delays(self._client, _names(0, sizes.changes))
        self.found["watch latency, p50"] = (median(delays), "ms")
        self.found["watch latency, p95"] = (percentile(delays, 0.95), "ms")

    async def fill(self, sizes: Sizes) -> None:
        for what in ("create", "status patch"):
            await _rate(self._requests[what], _names(sizes.objects, sizes.held))
        self.found[f"memory, {sizes.held:,} Investigations"] = (_resident(self._api), "MiB")


def _names(first: int, end: int) -> list[str]:
    return [f"run-{number}" for number in range(first, end)]


def _resident(api: Api) -> float:
    return sum(memory(pid)[0] for pid in api.pids)


def _requests(client: KubeClient) -> dict[str, Callable[[str], Awaitable[Any]]]:
    return {
        "create": lambda name: client.create(_investigation(name)),
        "get": lambda name: client.get(KIND, SPACE, name),
        "status patch": lambda name: client.patch(KIND, SPACE, name, _status(1), subresource="status"),
    }


def _investigation(name: str) -> dict[str, Any]:
    spec = {"alert": {"alertType": "PodCrashLooping", "data": DATA}, "chainRef": {"name": "chain"}}
    meta = {"name": name, "namespace": SPACE, "labels": {"bench": name}}
    return {"apiVersion": API_VERSION, "kind": KIND, "metadata": meta, "spec": spec}


def _status(number: int) -> dict[str, Any]:
    condition = {
        "type": "Accepted",
        "status": "True",
        "reason": "Planned",
        "message": "Chain chain is resolved and frozen.",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    usage = {"modelCalls": number, "totalTokens": 1000 * number}
    return {"status": {"phase": "Running", "progress": "1/2", "conditions": [condition], "usage": usage}}


async def _rate(request: Callable[[str], Awaitable[Any]], names: Sequence[str]) -> float:
    """Requests a second, one for each name, `CLIENTS` at a time."""
    left = iter(names)

    async def client() -> None:
        for name in left:
            await request(name)

    began = time.monotonic()
    async with asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            group.create_task(client())
    return len(names) / (time.monotonic() - began)


async def _lists(client: KubeClient, sizes: Sizes) -> float:
    began = time.monotonic()
    for _ in range(sizes.lists):
        found = await client.list(KIND, SPACE, limit=str(sizes.objects))
        if len(found) != sizes.objects:
            raise RuntimeError(f"a list has {len(found)} of {sizes.objects} objects")
    return sizes.lists / (time.monotonic() - began)


async def _watch_delays(client: KubeClient, names: Sequence[str]) -> list[float]:
    """Milliseconds from sending a status patch to its event on a watch, for each name, one after the other."""
    seen: asyncio.Queue[tuple[str, float]] = asyncio.Queue()
    way = await client.connection()
    tls = ssl.create_default_context(cafile=way.ca_file)
    if way.certificate_file:
        tls.load_cert_chain(way.certificate_file, way.key_file)
    first = await client.get(KIND, SPACE, names[0])
    query = {"watch": "true", "resourceVersion": first["metadata"]["resourceVersion"]}
    url, limit = f"{way.server}{path(KIND, SPACE)}", aiohttp.ClientTimeout(total=None, sock_read=60)
    async with aiohttp.ClientSession(read_bufsize=2**22) as http:
        async with http.get(url, params=query, ssl=tls, timeout=limit, raise_for_status=True) as stream:

            async def listen() -> None:
                async for line in stream.content:
                    now = time.monotonic()
                    event = json.loads(line)["object"]
                    if (event.get("status") or {}).get("usage", {}).get("modelCalls") == 2:
                        seen.put_nowait((event["metadata"]["name"], now))

            listener = asyncio.create_task(listen())
            try:
                return [await _delay(client, name, seen) for name in names]
            finally:
                listener.cancel()
                await asyncio.wait([listener])


async def _delay(client: KubeClient, name: str, seen: "asyncio.Queue[tuple[str, float]]") -> float:
    sent = time.monotonic()
    async with asyncio.timeout(30):
        await client.patch(KIND, SPACE, name, _status(2), subresource="status")
        told, at = await seen.get()
    if told != name:
        raise RuntimeError(f"the watch told of {told} when {name} was changed")
    return (at - sent) * 1000


@contextlib.asynccontextmanager
async def _embedded(folder: Path) -> AsyncIterator[Api]:
    kubeconfig, spawner = folder / "kubeconfig", Spawner()
    command = [sys.executable, "-m", "embedded_kubeapi", "--kubeconfig", str(kubeconfig)]
    child = await asyncio.to_thread(spawner.spawn, command, folder / "api.log")
    try:
        async with asyncio.timeout(START_SECONDS):
            while not await _answers(kubeconfig):
                if child.poll() is not None:
                    raise RuntimeError(f"the embedded API ended: {_text(folder / 'api.log')}")
                await asyncio.sleep(0.02)
        yield Api(kubeconfig, (child.pid,))
    finally:
        await asyncio.to_thread(end, child, 5.0)
        spawner.close()


@contextlib.asynccontextmanager
async def _real(folder: Path) -> AsyncIterator[Api]:
    server = ApiServer(folder / "kubernetes")
    await asyncio.to_thread(server.start)
    try:
        yield Api(server.kubeconfig, server.pids)
    finally:
        await asyncio.to_thread(server.stop)


async def _answers(kubeconfig: Path) -> bool:
    """Whether the kubeconfig is there, and its server answers."""
    if not _text(kubeconfig):
        return False
    try:
        async with await KubeClient.load(kubeconfig) as client:
            await client.version()
    except ApiError:
        return False
    return True


def _text(file: Path) -> str:
    return file.read_text(errors="replace")[-2000:] if file.exists() else ""
