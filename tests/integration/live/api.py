"""Provides the HTTP API on a real record, a Kubernetes API with scripted reviews, and clients that follow."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import aiohttp
import asyncpg
from aiohttp.test_utils import TestServer

from integration.store.build import claimed_run, event, stage, worker
from tarsy.http.application import build_application
from tarsy.http.authentication.access import AccessReviews
from tarsy.http.authentication.frontends import BearerFrontend
from tarsy.http.live.hub import CHANNELS, FollowLimits, Hub
from tarsy.http.namespaces import NamespaceReader
from tarsy.http.services import Services
from tarsy.http.table import all_routes
from tarsy.record.timeline import EventStatus
from tarsy.store.questions import NewQuestion, Questions
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.writer import RunWriter
from tarsy.stream.listener import Listener
from tarsy.stream.notifier import Notifier
from unit.http.api import FakeKube

PATIENCE = 60.0
"""Seconds for a machine whose processor is others' most of the time."""
USERS = {name: {"username": name, "uid": name} for name in ("ann", "bob")}
CHANNEL = "investigation:team-a/alert-1"
ONE = "/api/v1/namespaces/team-a/investigations/alert-1"


def kube(allowed: Callable[[dict[str, Any]], bool] = lambda _: True) -> FakeKube:
    return FakeKube(dict(USERS), allowed)


@dataclass
class Api:
    """The API, open."""

    url: str
    services: Services
    hub: Hub
    session: aiohttp.ClientSession

    @asynccontextmanager
    async def socket(self, user: str = "ann", **more: Any) -> AsyncIterator["Socket"]:
        headers = {"Authorization": f"Bearer {user}", **more.pop("headers", {})}
        async with self.session.ws_connect(f"{self.url}/api/v1/ws", headers=headers, **more) as ws:
            yield Socket(ws)

    def get(self, path: str, user: str = "ann", **more: Any) -> Any:
        headers = {"Authorization": f"Bearer {user}", **more.pop("headers", {})}
        return self.session.get(self.url + path, headers=headers, **more)


@dataclass
class Socket:
    """A client of the WebSocket, with all that it was told."""

    ws: aiohttp.ClientWebSocketResponse
    told: list[dict[str, Any]] = field(default_factory=list)

    async def ask(self, action: str, channel: str | None = None, **more: Any) -> None:
        of = {} if channel is None else {"channel": channel}
        await self.ws.send_str(json.dumps({"action": action, **of, **more}))

    async def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The next message that is wanted."""
        async with asyncio.timeout(PATIENCE):
            while True:
                message = json.loads(await self.ws.receive_str())
                self.told.append(message)
                if wanted(message):
                    return dict(message)

    async def until_type(self, kind: str) -> dict[str, Any]:
        return await self.until(lambda message: message["type"] == kind)

    async def closed(self) -> tuple[int, str]:
        """The code and the reason with which the server closes."""
        async with asyncio.timeout(PATIENCE):
            while (message := await self.ws.receive()).type is aiohttp.WSMsgType.TEXT:
                self.told.append(json.loads(message.data))
        return self.ws.close_code or 0, str(message.extra or "")

    def events(self) -> list[tuple[str, int]]:
        """Each change that was told: which event, at which revision."""
        return [(m["event"]["id"], m["event"]["revision"]) for m in self.told if m["type"].startswith("timelineEvent.")]


@asynccontextmanager
async def serving(dsn: str, pool: asyncpg.Pool, of: FakeKube | None = None, **of_hub: Any) -> AsyncIterator[Api]:
    """The API; what a right was is remembered for no time."""
    people = of or kube()
    hub = Hub(pool, Listener(dsn, CHANNELS), Notifier(pool), limits=FollowLimits(**of_hub))
    services = Services(
        pool=pool,
        reads=Reads(pool),
        kube=people,  # type: ignore[arg-type]
        callers=people,  # type: ignore[arg-type]
        access=AccessReviews(people, seconds=0.0),  # type: ignore[arg-type]
        namespaces=NamespaceReader(people, seconds=0.0),  # type: ignore[arg-type]
        live=hub,
    )
    door = BearerFrontend(people, seconds=0.0)  # type: ignore[arg-type]
    server = TestServer(build_application(all_routes(), door, services), handler_cancellation=True)
    running = asyncio.create_task(hub.run())
    try:
        async with server, aiohttp.ClientSession() as session:
            yield Api(f"http://{server.host}:{server.port}", services, hub, session)
    finally:
        running.cancel()
        await asyncio.wait([running])


@dataclass
class Run:
    """A run that a test writes, as its worker would."""

    id: UUID
    pool: asyncpg.Pool
    write: RunWriter
    notifier: Notifier

    async def event(self, part: str, status: EventStatus = EventStatus.COMPLETED, **more: Any) -> None:
        await self.write.write_events([event(self.id, part, status, **more)])

    async def stage(self, index: int = 0) -> None:
        await self.write.begin_stage(stage(self.id, index))

    def without_wakeups(self) -> "Run":
        """The same run by a worker whose wake-ups are lost."""
        write = RunWriter(self.pool, self.id, 1, remaining=lambda: PATIENCE, notify=lambda *_: None)
        return Run(self.id, self.pool, write, self.notifier)


@asynccontextmanager
async def running_run(pool: asyncpg.Pool, **of_run: Any) -> AsyncIterator[Run]:
    """A claimed run with the notifier of its worker."""
    run, _ = await claimed_run(pool, **of_run)
    notifier = Notifier(pool)
    sending = asyncio.create_task(notifier.run())
    try:
        yield Run(run, pool, RunWriter(pool, run, 1, remaining=lambda: PATIENCE, notify=notifier.notify), notifier)
    finally:
        sending.cancel()
        await asyncio.wait([sending])


async def frames(answer: aiohttp.ClientResponse, until: str) -> list[dict[str, Any]]:
    """Each server-sent event up to the first of a kind."""
    found: list[dict[str, Any]] = []
    async with asyncio.timeout(PATIENCE):
        while not found or found[-1]["event"] != until:
            found += read_frames((await answer.content.readuntil(b"\n\n")).decode())
    return found


def read_frames(text: str) -> list[dict[str, Any]]:
    """Each server-sent event of a text; comments are left out."""
    found: list[dict[str, Any]] = []
    for block in text.split("\n\n"):
        frame = dict(line.split(": ", 1) for line in block.split("\n") if ": " in line and not line.startswith(":"))
        if "data" in frame:
            found.append({**frame, "data": json.loads(frame["data"])})
    return found


async def eventually(holds: Callable[[], bool]) -> None:
    """Waits for a state that nothing tells of."""
    async with asyncio.timeout(PATIENCE):
        while True:
            if holds():
                return
            await asyncio.sleep(0.05)


async def changes(pool: asyncpg.Pool, run: UUID) -> list[tuple[str, int]]:
    """Each event of a run with its revision, in the order of their changes."""
    found = await Reads(pool).timeline(run, 0, 100_000)
    return [(str(e.id), e.revision) for e in sorted(found, key=lambda e: (e.revision, e.seq))]


@asynccontextmanager
async def asked(pool: asyncpg.Pool, about: UUID, notifier: Notifier, name: str = "why") -> AsyncIterator[Run]:
    """The answer to a question about a finished run, claimed."""
    plan = await Questions(pool).plan(about)
    assert plan is not None
    answering = plan.model_copy(update={"chat": plan.stages[0].agents[0]}).to_answer()
    question = NewQuestion(uuid4(), name, f"{name}?", answering, {"username": "ada"})
    await Questions(pool, notifier.notify).ask(about, [question])
    (claimed,) = await Claims(pool).claim(await worker(pool), 0, 100, questions=5)
    write = RunWriter(pool, claimed.id, claimed.attempt, remaining=lambda: PATIENCE, notify=notifier.notify)
    yield Run(claimed.id, pool, write, notifier)
