"""Tests Socket Mode against a server that speaks it: greetings, envelopes, retries, reconnects."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from tarsy.controllers.notifications.wire import NotificationSender
from tarsy.controllers.slack import socket_mode
from tarsy.controllers.slack.socket_mode import CannotConnect, SocketMode, connected_socket
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import SecretKey
from tarsy.store.errors import StoreUnavailable
from wire.slack import APP_TOKEN, Slack, slack_server

USER, THREAD = "U0000000ANN", "1700000000.000100"


async def no_secret(key: SecretKey) -> str:
    raise AssertionError(key)


class Taker:
    """Takes events, and fails for the first `failing` of them."""

    def __init__(self, failing: int = 0) -> None:
        self.failing = failing
        self.taken: list[Mapping[str, Any]] = []

    async def __call__(self, payload: Mapping[str, Any]) -> None:
        if self.failing:
            self.failing -= 1
            raise StoreUnavailable("Postgres is away")
        self.taken.append(payload)


@asynccontextmanager
async def client_of(slack: Slack, take: Any, token: str = APP_TOKEN) -> AsyncIterator[SocketMode]:
    """A client that is running."""
    sender = NotificationSender(no_secret, Destinations())

    @asynccontextmanager
    async def opens() -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        answer = await sender.slack_call(slack.api, "apps.connections.open", token, {}, "tarsy-system")
        if answer.problem:
            raise CannotConnect(answer.problem, passing=answer.passing)
        async with connected_socket(answer.answer["url"], Destinations(), "tarsy-system") as socket:
            yield socket

    client = SocketMode(opens, take, pause=lambda _: 0.02)
    task = asyncio.create_task(client.run())
    try:
        yield client
    finally:
        task.cancel()
        await asyncio.wait({task}, timeout=10)


async def test_an_event_is_acknowledged_once_it_is_taken() -> None:
    take = Taker()
    async with slack_server() as slack, client_of(slack, take) as client:
        payload = slack.mention("why?", USER, THREAD)
        assert await slack.deliver(payload)
        assert take.taken == [payload] and slack.acknowledged == slack.deliveries
        assert client.connected


async def test_an_event_that_could_not_be_stored_is_not_acknowledged_and_comes_again() -> None:
    take = Taker(failing=1)
    async with slack_server(ack_seconds=0.3) as slack, client_of(slack, take):
        assert await slack.deliver(slack.mention("why?", USER, THREAD))
        assert len(slack.deliveries) == 2 and len(slack.acknowledged) == 1
        assert len(take.taken) == 1


async def test_one_that_takes_too_long_is_not_acknowledged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_mode, "TAKE_SECONDS", 0.05)
    stuck = asyncio.Event()

    async def take(_: Mapping[str, Any]) -> None:
        await stuck.wait()

    async with slack_server(ack_seconds=0.2) as slack, client_of(slack, take):
        assert not await slack.deliver(slack.mention("why?", USER, THREAD))
        assert slack.acknowledged == []


@pytest.mark.parametrize("reason", ["warning", "refresh_requested"])
async def test_a_connection_that_slack_ends_is_replaced(reason: str) -> None:
    take = Taker()
    async with slack_server() as slack, client_of(slack, take):
        await slack.wait_for(lambda: slack.sockets)
        await slack.disconnect(reason)
        await slack.wait_for(lambda: slack.opened == 2 and len(slack.sockets) == 1)
        assert await slack.deliver(slack.mention("why?", USER, THREAD))
        assert len(take.taken) == 1


async def test_a_connection_that_breaks_is_replaced() -> None:
    take = Taker()
    async with slack_server() as slack, client_of(slack, take):
        await slack.wait_for(lambda: slack.sockets)
        assert slack.sockets[0]._req is not None
        transport = slack.sockets[0]._req.transport
        assert transport is not None
        transport.abort()
        await slack.wait_for(lambda: slack.opened == 2 and slack.sockets)
        assert await slack.deliver(slack.mention("why?", USER, THREAD))


async def test_buttons_and_commands_are_acknowledged_and_never_taken() -> None:
    take = Taker()
    async with slack_server() as slack, client_of(slack, take):
        for kind in ("interactive", "slash_commands"):
            assert await slack.deliver({"type": "block_actions", "actions": [{"value": "approve"}]}, kind)
    assert take.taken == []


async def test_what_is_no_envelope_is_ignored() -> None:
    take = Taker()
    async with slack_server() as slack, client_of(slack, take):
        await slack.wait_for(lambda: slack.sockets)
        for text in ("no JSON", "[]", "{}", '{"type":"events_api","envelope_id":7,"payload":{}}'):
            await slack.sockets[0].send_str(text)
        await slack.sockets[0].send_bytes(b"\x00")
        assert await slack.deliver(slack.mention("why?", USER, THREAD))
    assert len(take.taken) == 1


async def test_a_server_that_does_not_greet_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket_mode, "HELLO_SECONDS", 0.05)
    async with slack_server() as slack:
        slack.greets = False
        async with client_of(slack, Taker()) as client:
            await slack.wait_for(lambda: slack.opened >= 2)
            assert not client.connected


@pytest.mark.parametrize("word", ["invalid_auth", "not_allowed_token_type", "internal_error"])
async def test_a_refused_connection_is_told_by_slacks_word_and_tried_again(
    word: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    async with slack_server() as slack:
        slack.words["apps.connections.open"] = [word]
        async with client_of(slack, Taker()) as client:
            await slack.wait_for(lambda: slack.sockets)
            assert await slack.deliver(slack.mention("why?", USER, THREAD)) and client.connected
    assert f"Slack refused it: {word}" in caplog.text
    assert "ticket" not in caplog.text and APP_TOKEN not in caplog.text


async def test_socket_mode_that_is_switched_off_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async with slack_server() as slack, client_of(slack, Taker()):
        await slack.wait_for(lambda: slack.sockets)
        await slack.disconnect("link_disabled")
        await slack.wait_for(lambda: slack.opened == 2)
    assert "Socket Mode is switched off" in caplog.text


@pytest.mark.parametrize(
    "url", ["wss://127.0.0.1:1/x", "wss://tools.other.svc/x", "https://slack.com/x", "file:///x", ""]
)
async def test_an_address_that_may_not_be_used_is_refused(url: str) -> None:
    with pytest.raises(CannotConnect) as refused:
        async with connected_socket(url, Destinations(in_pod=True), "tarsy-system"):
            pass
    assert not refused.value.passing
