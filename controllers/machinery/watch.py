"""Watches the cluster with kopf and passes its events to the main loop.

kopf runs in a thread with a loop of its own, because it takes over signal handling on the main thread and, when it
ends, cancels every task of its loop. Only `on.event` handlers are registered: kopf then writes no annotation, sets no
finalizer and keeps no state, and existing objects arrive at 3,000 a second. The watch is restarted when it fails; the
next listing brings what it missed.
"""

import asyncio
import itertools
import logging
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

import kopf

from tarsy.controllers.machinery.watch_coverage import WatchCoverage
from tarsy.kube.client import PAGE_SIZE, Connection, KubeClient
from tarsy.resources.meta import GROUP, VERSION
from tarsy.resources.v1alpha1 import KINDS

_log = logging.getLogger(__name__)

END_SECONDS = 4.0
"""How long each of three groups of kopf's tasks may take to end; those that do not are left behind with their loop."""

_OF_A_SCHEDULER = ("cleaner of ", "spawner of ")

OBJECTS_AT_ONCE = 200
"""Objects of a kind that kopf has a task for at a time. Without a limit, a listing makes a task for each object."""

AT_ONCE = 50
"""Events that are taken in one turn of the main loop."""

_STOP_SECONDS = 15.0
"""kopf gets this long to end; its thread is a daemon and does not keep the process."""

OnEvent = Callable[[str | None, Mapping[str, Any]], None]
"""Called on the main loop: type (ADDED, MODIFIED, DELETED; None for a listing) and the object."""


class _Backoffs:
    """Lists the seconds between retries of a request: up to 5, without an end (an API server may stay away long)."""

    def __iter__(self) -> Iterator[float]:
        return itertools.chain((0.2, 0.5, 1.0, 2.0), itertools.repeat(5.0))


class _NoState(kopf.DiffBaseStorage):
    """Keeps no last-handled state: kopf computes a difference for each event, which no handler here reads."""

    def build(self, **_: Any) -> Any:
        return {}

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        return None


class _NoProgress(kopf.ProgressStorage):
    """Keeps no progress of handlers: those of events have none. kopf clears a copy of each object of it."""

    def fetch(self, **_: Any) -> None:
        return None

    def store(self, **_: Any) -> None:
        return None

    def purge(self, **_: Any) -> None:
        return None

    def touch(self, **_: Any) -> None:
        return None

    def clear(self, *, essence: Any) -> Any:
        return essence


class Handover:
    """Hands events over to the main loop, in order: those that come while it is busy are taken in one turn.

    Args:
        main: the loop of `take`.
        take: takes an event.
    """

    def __init__(self, main: asyncio.AbstractEventLoop, take: OnEvent) -> None:
        self._main = main
        self._take = take
        self._events: deque[tuple[str | None, Mapping[str, Any]]] = deque()
        self._asked = threading.Lock()
        """Held while a turn is due."""

    def put(self, kind: str | None, raw: Mapping[str, Any]) -> None:
        """Hands an event over; called in the thread of the watch."""
        self._events.append((kind, raw))
        if self._asked.acquire(blocking=False):
            self._main.call_soon_threadsafe(self._take_some)

    def _take_some(self) -> None:
        """Takes up to `AT_ONCE` events; an event that fails keeps no other from being taken."""
        self._asked.release()  # before the look: an event that is added after it asks again
        try:
            for _ in range(min(AT_ONCE, len(self._events))):
                self._take(*self._events.popleft())
        finally:
            if self._events and self._asked.acquire(blocking=False):
                self._main.call_soon(self._take_some)


class Watch:
    """Watches all kinds of this project, and namespaces."""

    def __init__(self, client: KubeClient, on_event: OnEvent, *, namespaces: tuple[str, ...] = ()) -> None:
        """Watches all namespaces, or only `namespaces`."""
        self._client = client
        self._on_event = on_event
        self._namespaces = namespaces
        self._coverage = WatchCoverage(client, namespaces)

    def why_not(self) -> str | None:
        """Explains why a served kind is not watched; None when every one is."""
        return self._coverage.why_not()

    async def run(self) -> None:
        """Watches until cancelled."""
        loop = asyncio.get_running_loop()
        for pause in itertools.chain((0.5, 1.0, 2.0), itertools.repeat(5.0)):
            await self._coverage.start()
            stop = threading.Event()
            ended: asyncio.Future[None] = loop.create_future()
            connection = await self._client.connection()
            arguments = (loop, connection, stop, ended)
            thread = threading.Thread(target=self._thread, args=arguments, name="kopf", daemon=True)
            thread.start()
            outdated = asyncio.create_task(self._coverage.until_outdated())
            try:
                await asyncio.wait({ended, outdated}, return_when=asyncio.FIRST_COMPLETED)
                if ended.done():
                    ended.result()
                    _log.warning("the watch of the cluster ended; restarting it in %g s", pause)
                else:
                    outdated.result()
            except Exception as error:
                _log.warning("the watch of the cluster failed; restarting it in %g s: %s", pause, error)
            finally:
                outdated.cancel()
                stop.set()
                await asyncio.wait([ended], timeout=_STOP_SECONDS)
                if ended.done():
                    ended.exception()  # why it ended was told, or is of no interest any more
            await asyncio.sleep(pause)

    def _thread(
        self,
        main: asyncio.AbstractEventLoop,
        connection: Connection,
        stop: threading.Event,
        ended: asyncio.Future[None],
    ) -> None:
        failure: BaseException | None = None
        # Not asyncio.run: it waits for every task to end, and a task of kopf that does not would keep us from going on.
        loop = type(main)()  # uvloop where the process runs on it: it saves a tenth of the CPU of this thread
        loop.set_exception_handler(_note)
        try:
            loop.run_until_complete(self._kopf(main, connection, stop))
        except Exception as error:
            failure = error
        finally:
            stop.set()  # a thread of kopf's waits for it, and would keep the process from ending
            loop.close()

        def tell() -> None:
            if ended.done():
                return
            if failure is None:
                ended.set_result(None)
            else:
                ended.set_exception(failure)

        if not main.is_closed():
            main.call_soon_threadsafe(tell)

    async def _kopf(self, main: asyncio.AbstractEventLoop, connection: Connection, stop: threading.Event) -> None:
        registry = kopf.OperatorRegistry()
        settings = kopf.OperatorSettings()
        settings.posting.enabled = False
        settings.networking.error_backoffs = _Backoffs()
        settings.networking.connect_timeout = 5.0
        settings.watching.server_timeout = 300
        settings.watching.chunk_size = PAGE_SIZE
        settings.queueing.idle_timeout = 0.1
        settings.queueing.worker_limit = OBJECTS_AT_ONCE
        settings.persistence.diffbase_storage = _NoState()
        settings.persistence.progress_storage = _NoProgress()
        settings.process.ultimate_exiting_timeout = None

        @kopf.on.login(registry=registry)
        async def login(**_: Any) -> kopf.ConnectionInfo:
            return kopf.ConnectionInfo(
                server=connection.server,
                ca_path=connection.ca_file,
                insecure=connection.insecure,
                token=await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._client.token(), main)),
                certificate_path=connection.certificate_file,
                private_key_path=connection.key_file,
            )

        handover = Handover(main, self._on_event)

        async def forward(type: str | None, body: kopf.Body, **_: Any) -> None:
            handover.put(type, dict(body))

        for kind in KINDS.values():
            kopf.on.event(GROUP, VERSION, kind.PLURAL, registry=registry, id=kind.PLURAL)(forward)
        if not self._namespaces:
            kopf.on.event("", "v1", "namespaces", registry=registry, id="namespaces")(forward)
        roots = await kopf.spawn_tasks(
            registry=registry,
            settings=settings,
            clusterwide=not self._namespaces,
            namespaces=self._namespaces,
            standalone=True,
            stop_flag=stop,
        )
        await until_one_ends(roots)


def _note(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """Logs failures of kopf's tasks at debug level: when several fail together, one is raised and reports them."""
    _log.debug("in the thread of the watch: %s", context.get("message"))


async def until_one_ends(roots: Collection[asyncio.Task[None]]) -> None:
    """Waits for the first of kopf's root tasks to end, ends all others, and raises its failure.

    kopf's own `run_tasks` waits for the others without a limit. Seen after an outage of the API server: one watch ended
    with 404 (the server answered before it served the CRDs), another waited for credentials for ever. The order
    matters: a watcher that ends needs its scheduler's tasks, and never ends when those were ended first.
    """
    done, others = await asyncio.wait(roots, return_when=asyncio.FIRST_COMPLETED)
    await _end(others)
    await _end({task for task in _left() if not task.get_name().startswith(_OF_A_SCHEDULER)})
    await _end(_left())
    if left := _left():
        _log.warning("kopf left tasks behind: %s", ", ".join(map(repr, left)))
    for task in done:
        if not task.cancelled():
            task.result()


async def _end(tasks: Collection[asyncio.Task[Any]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks, timeout=END_SECONDS)


def _left() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {asyncio.current_task()}
