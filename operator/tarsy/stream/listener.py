"""Receives wake-ups on a connection of its own, because transaction poolers do not support LISTEN.

Readers do not depend on the connection: `Subscription.wait` returns after the poll interval at the latest, so a lost
wake-up or connection delays them by at most that. After each connection all readers are woken, because wake-ups in
between are lost.
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import asyncpg

from tarsy.store.address import check_address
from tarsy.store.database import describe_address, reason

_CONNECT_SECONDS = 10.0
_FIRST_DELAY = 0.1
_log = logging.getLogger(__name__)


class Subscription:
    """Subscription of one reader to a channel, or to one payload of it."""

    def __init__(self, channel: str, payload: str | None, poll_seconds: float) -> None:
        self._channel = channel
        self._payload = payload
        self._poll = poll_seconds
        self._woken = asyncio.Event()

    def offer(self, channel: str, payload: str) -> None:
        """Wakes the reader if channel and payload match; an empty payload matches every reader of the channel."""
        if channel == self._channel and (self._payload is None or payload in ("", self._payload)):
            self.wake()

    def wake(self) -> None:
        """Wakes the reader."""
        self._woken.set()

    async def wait(self) -> bool:
        """Waits for a wake-up since the last wait, or for the poll interval; True when it was a wake-up."""
        try:
            async with asyncio.timeout(self._poll):
                await self._woken.wait()
        except TimeoutError:
            return False
        self._woken.clear()
        return True


class Listener:
    """Dispatches wake-ups to subscriptions while `run` runs."""

    def __init__(
        self,
        dsn: str,
        channels: Sequence[str],
        *,
        poll_seconds: float = 2.0,
        check_seconds: float = 15.0,
        longest_delay_seconds: float = 5.0,
    ) -> None:
        """
        Args:
            dsn: address of Postgres itself, not of a transaction pooler.
            channels: channels to listen to.
            poll_seconds: maximum delay of a reader by a lost wake-up.
            check_seconds: interval of checks of a silent connection.
            longest_delay_seconds: longest pause between two attempts to connect.

        Raises:
            StoreError: the address leaves open whether the connection is encrypted.
        """
        check_address(dsn)
        self._dsn = dsn
        self._channels = tuple(channels)
        self._poll = poll_seconds
        self._check = check_seconds
        self._longest_delay = longest_delay_seconds
        self._subscriptions: set[Subscription] = set()
        self._hearers: dict[str, list[Callable[[str], None]]] = {}

    @contextmanager
    def subscribe(self, channel: str, payload: str | None = None) -> Iterator[Subscription]:
        """Subscribes for the length of the block; subscribe first, then read, then wait.

        Args:
            channel: one of the listener's.
            payload: only wake-ups with this payload; None: all of the channel.
        """
        self._check_channel(channel)
        subscription = Subscription(channel, payload, self._poll)
        self._subscriptions.add(subscription)
        try:
            yield subscription
        finally:
            self._subscriptions.discard(subscription)

    @contextmanager
    def hear(self, channel: str, told: Callable[[str], None]) -> Iterator[None]:
        """Passes each payload of a channel to `told` for the length of the block; lost payloads are not repeated.

        Args:
            channel: one of the listener's.
            told: must neither block nor raise.
        """
        self._check_channel(channel)
        hearers = self._hearers.setdefault(channel, [])
        hearers.append(told)
        try:
            yield
        finally:
            hearers.remove(told)

    def _check_channel(self, channel: str) -> None:
        if channel not in self._channels:
            raise ValueError(f"This listener does not listen to {channel!r}, only to {', '.join(self._channels)}.")

    async def run(self) -> None:
        """Listens, and reconnects whenever the connection is lost, until it is cancelled."""
        delay = _FIRST_DELAY
        while True:
            try:
                await self._listen()
                delay = _FIRST_DELAY
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                _log.warning("not listening to %s, readers poll: %s", describe_address(self._dsn), reason(error))
                delay = min(delay * 2, self._longest_delay)
            await asyncio.sleep(delay * random.uniform(0.5, 1.0))

    async def _listen(self) -> None:
        """Listens on one connection; returns when it is lost, raises when it cannot be established."""
        connection = await asyncpg.connect(
            self._dsn, timeout=_CONNECT_SECONDS, server_settings={"application_name": "tarsy-listener"}
        )
        lost = asyncio.Event()
        try:
            connection.add_termination_listener(lambda _: lost.set())
            for channel in self._channels:
                await connection.add_listener(channel, self._received)
            for subscription in self._subscriptions:
                subscription.wake()
            await self._until_lost(connection, lost)
        finally:
            connection.terminate()

    async def _until_lost(self, connection: asyncpg.Connection, lost: asyncio.Event) -> None:
        while True:
            try:
                async with asyncio.timeout(self._check):
                    await lost.wait()
                return
            except TimeoutError:
                pass
            try:
                if await connection.fetchval("SELECT pg_is_in_recovery()", timeout=self._check):
                    return  # demoted: what is sent now is sent by another server
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                return

    def _received(self, _connection: Any, _pid: int, channel: str, payload: str) -> None:
        for told in self._hearers.get(channel, ()):
            told(payload)
        for subscription in self._subscriptions:
            subscription.offer(channel, payload)
