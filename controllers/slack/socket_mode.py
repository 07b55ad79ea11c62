"""Receives events from Slack in Socket Mode: a WebSocket that the operator opens, so nothing in the cluster is exposed.

Slack gives out a single-use address (`apps.connections.open`), greets with `hello`, sends envelopes, and expects the id
of each one back within three seconds; without it, it delivers the event again, on any connection. Before it closes a
connection it says `disconnect`.

Decision: written on aiohttp, which the operator has anyway, and not on Slack's SDK: connections go through the pinned
connector that judges addresses, and an envelope is acknowledged only once its question is stored.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import aiohttp
import orjson

from tarsy.outbound.address_check import Of, Resolve, resolve_host
from tarsy.outbound.connector import PinnedConnector
from tarsy.plan.destinations import Destinations
from tarsy.plan.place import Place
from tarsy.store.errors import StoreError

_log = logging.getLogger(__name__)

HELLO_SECONDS = 10.0
"""Seconds from the connection to the greeting."""

TAKE_SECONDS = 2.5
"""Seconds to store a question, so that the acknowledgement comes within the three that Slack waits."""

_CONNECT_SECONDS = 20.0
_PING_SECONDS = 30.0
_MOST_BYTES = 1024 * 1024
_SETTLED_SECONDS = 10.0
"""A connection that ended before this counts as a failed one."""

LONGEST_PAUSE_SECONDS = 60.0

Opens = Callable[[], AbstractAsyncContextManager[aiohttp.ClientWebSocketResponse]]
TakesEvent = Callable[[Mapping[str, Any]], Awaitable[None]]


class CannotConnect(Exception):
    """No connection is to be had; the message says why, without address or token.

    Args:
        passing: whether a try in a moment may succeed.
    """

    def __init__(self, problem: str, *, passing: bool = True) -> None:
        super().__init__(problem)
        self.passing = passing


@asynccontextmanager
async def connected_socket(
    url: str, destinations: Destinations, namespace: str, *, look_up: Resolve = resolve_host
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    """Opens the WebSocket at an address that Slack gave out.

    Args:
        url: begins with wss://; with ws:// it is for tests on loopback, whose API is plain HTTP too.
        destinations: where URLs may lead.
        namespace: for which the address is judged.
        look_up: resolves names.

    Raises:
        CannotConnect: the address may not be used or is not there.
    """
    web = "http" + url.removeprefix("ws") if url.startswith(("ws://", "wss://")) else ""
    if why := destinations.why_not(web, namespace):
        raise CannotConnect(why, passing=False)
    place = Place.of(web)
    connector = PinnedConnector(place.host, Of(destinations, namespace), look_up=look_up)
    async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                socket = await session.ws_connect(
                    place.url,
                    heartbeat=_PING_SECONDS,
                    max_msg_size=_MOST_BYTES,
                    timeout=aiohttp.ClientWSTimeout(ws_close=5.0),
                )
        except TimeoutError:
            raise CannotConnect(f"no connection within {_CONNECT_SECONDS:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise CannotConnect(f"the WebSocket could not be opened ({type(error).__name__})") from None
        async with socket:
            yield socket


class SocketMode:
    """Keeps one connection to Slack and takes the events that come over it.

    Args:
        opens: opens a connection.
        take: stores an event; returns when it is safe, raises StoreError when Slack should deliver it again.
        pause: seconds before the next connection, by the number of failed ones in a row.
    """

    def __init__(self, opens: Opens, take: TakesEvent, *, pause: Callable[[int], float] | None = None) -> None:
        self._opens = opens
        self._take = take
        self._pause = pause or _pause
        self.connected = False

    async def run(self) -> None:
        """Receives until cancelled; connects again whenever a connection ends."""
        failures, told = 0, ""
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            try:
                async with self._opens() as socket:
                    end = await self._receive(socket)
                passing = end != "link_disabled"
                problem = "" if passing else "Socket Mode is switched off for the app; switch it on"
            except CannotConnect as error:
                passing, problem = error.passing, str(error)
            except (aiohttp.ClientError, OSError) as error:
                passing, problem = True, f"the connection broke ({type(error).__name__})"
            if problem and problem != told:
                _log.warning("Slack is not connected; trying again: %s", problem)
            told = problem
            brief = clock() - began < _SETTLED_SECONDS
            failures = failures + 1 if brief or problem else 0
            await asyncio.sleep(self._pause(failures) if passing else self._pause(100))

    async def _receive(self, socket: aiohttp.ClientWebSocketResponse) -> str:
        """Takes what comes until the connection ends; returns the reason that Slack gave, or an empty one."""
        try:
            async with asyncio.timeout(HELLO_SECONDS):
                hello = _message(await socket.receive())
        except TimeoutError:
            raise CannotConnect(f"no greeting within {HELLO_SECONDS:g} s") from None
        if hello.get("type") != "hello":
            if hello.get("type") == "disconnect":
                return str(hello.get("reason"))
            raise CannotConnect("the greeting is not that of Slack's Socket Mode")
        _log.info("connected to Slack")
        self.connected = True
        try:
            async for raw in socket:
                message = _message(raw)
                if message.get("type") == "disconnect":
                    return str(message.get("reason"))
                await self._taken(socket, message)
        finally:
            self.connected = False
        return ""

    async def _taken(self, socket: aiohttp.ClientWebSocketResponse, envelope: Mapping[str, Any]) -> None:
        """Stores the event of an envelope, then acknowledges it.

        Envelopes of buttons and commands are acknowledged and dropped: nothing in Slack decides anything.
        """
        identity, payload = envelope.get("envelope_id"), envelope.get("payload")
        if not isinstance(identity, str) or not 0 < len(identity) <= 256:
            return
        if envelope.get("type") == "events_api" and isinstance(payload, Mapping):
            try:
                async with asyncio.timeout(TAKE_SECONDS):
                    await self._take(payload)
            except (StoreError, TimeoutError) as error:
                _log.warning("an event from Slack could not be stored; Slack delivers it again: %s", error)
                return
        await socket.send_str(orjson.dumps({"envelope_id": identity}).decode())


def _message(raw: aiohttp.WSMessage) -> Mapping[str, Any]:
    """Reads a message; what is no JSON object is an empty one."""
    if raw.type is not aiohttp.WSMsgType.TEXT:
        return {}
    try:
        found = orjson.loads(raw.data)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _pause(failures: int) -> float:
    return 0.0 if failures == 0 else min(LONGEST_PAUSE_SECONDS, 2.0 ** min(failures - 1, 10))
