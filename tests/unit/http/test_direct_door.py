"""Tests authentication by bearer token."""

import asyncio
import base64
import logging
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from tarsy.http.authentication.frontends import FIRST_REVIEWS_AT_ONCE, WEBSOCKET_TOKEN, BearerFrontend, bearer_token
from tarsy.http.errors import Unauthorized, Unavailable
from unit.http.api import FakeKube

ANN = {"username": "ann", "uid": "1", "groups": ["on-call"], "extra": {"scopes": ["read", "write"]}}


def asking(headers: Any) -> web.Request:
    return make_mocked_request("GET", "/", headers=headers)


def bearing(token: str) -> web.Request:
    return asking({"Authorization": f"Bearer {token}"})


def door(kube: FakeKube, *audiences: str, seconds: float = 10.0) -> BearerFrontend:
    return BearerFrontend(kube, audiences, seconds=seconds)  # type: ignore[arg-type]


async def test_a_caller_is_who_token_review_says_and_keeps_the_token_for_writes_only() -> None:
    caller = await door(FakeKube({"t": ANN})).caller(bearing("t"))
    assert (caller.username, caller.uid, caller.groups) == ("ann", "1", ("on-call",))
    assert caller.extra == {"scopes": ("read", "write")}
    assert caller.token == "t"
    assert "token" not in repr(caller)


async def test_a_token_is_reviewed_once_while_its_answer_holds() -> None:
    kube = FakeKube({"t": ANN})
    entrance = door(kube)
    await asyncio.gather(*(entrance.caller(bearing("t")) for _ in range(20)))
    await entrance.caller(bearing("t"))
    assert kube.asked["TokenReview"] == 1


async def test_a_bad_token_is_reviewed_once_too() -> None:
    kube = FakeKube({})
    entrance = door(kube)
    for _ in range(3):
        with pytest.raises(Unauthorized):
            await entrance.caller(bearing("t"))
    assert kube.asked["TokenReview"] == 1


async def test_two_tokens_are_two_callers() -> None:
    entrance = door(FakeKube({"a": ANN, "b": {"username": "bob"}}))
    assert [(await entrance.caller(bearing(token))).username for token in ("a", "b", "a")] == ["ann", "bob", "ann"]


async def test_an_answer_does_not_hold_for_ever() -> None:
    kube = FakeKube({"t": ANN})
    entrance = door(kube, seconds=0.0)
    await entrance.caller(bearing("t"))
    kube.tokens = {}
    with pytest.raises(Unauthorized):
        await entrance.caller(bearing("t"))


async def test_a_kubernetes_api_that_is_away_lets_nobody_in_and_is_asked_again() -> None:
    kube = FakeKube({"t": ANN})
    kube.away = True
    entrance = door(kube)
    with pytest.raises(Unavailable) as refused:
        await entrance.caller(bearing("t"))
    assert "10.0.0.1" not in refused.value.message
    kube.away = False
    assert (await entrance.caller(bearing("t"))).username == "ann"


@pytest.mark.parametrize(
    ("wanted", "has", "comes_in"),
    [((), (), True), ((), ("api",), True), (("tarsy",), ("tarsy", "api"), True), (("tarsy",), ("api",), False),
     (("tarsy",), (), False)],
)  # fmt: skip
async def test_a_token_must_be_for_one_of_the_audiences(
    wanted: tuple[str, ...], has: tuple[str, ...], comes_in: bool
) -> None:
    kube = FakeKube({"t": ANN})
    kube.audiences = has
    entrance = door(kube, *wanted)
    if comes_in:
        assert (await entrance.caller(bearing("t"))).username == "ann"
    else:
        with pytest.raises(Unauthorized):
            await entrance.caller(bearing("t"))
    assert kube.reviews[0]["spec"].get("audiences", []) == list(wanted)


async def test_whoever_has_no_name_does_not_come_in() -> None:
    with pytest.raises(Unauthorized):
        await door(FakeKube({"t": {"username": ""}})).caller(bearing("t"))


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ({}, ""),
        ({"Authorization": "Bearer t"}, "t"),
        ({"Authorization": "bearer   t "}, "t"),
        ({"Authorization": "Bearer"}, ""),
        ({"Authorization": "Basic t"}, ""),
        ({"Authorization": "Bearer " + "t" * 16_384}, "t" * 16_384),
        ({"Authorization": "Bearer " + "t" * 16_385}, ""),
        ({"Authorization": "Bearer t\x7f"}, ""),
        ({"Authorization": "Bearer tö"}, ""),
        ({"Sec-WebSocket-Protocol": WEBSOCKET_TOKEN + "dA"}, ""),
        ({"Upgrade": "websocket", "Sec-WebSocket-Protocol": "tarsy, " + WEBSOCKET_TOKEN + "dA"}, "t"),
        ({"Upgrade": "WebSocket", "Sec-WebSocket-Protocol": WEBSOCKET_TOKEN + "!"}, ""),
        ({"Upgrade": "websocket", "Sec-WebSocket-Protocol": "tarsy"}, ""),
        ({"Upgrade": "websocket", "Authorization": "Basic t", "Sec-WebSocket-Protocol": WEBSOCKET_TOKEN + "dA"}, "t"),
    ],
)
def test_a_token_is_read_from_the_header_or_from_a_websockets_subprotocol(headers: dict[str, str], token: str) -> None:
    assert bearer_token(asking(headers)) == token


def test_a_subprotocol_is_the_token_in_base64url_as_browsers_must_send_it() -> None:
    token = "eyJhbGciOi.?~/+"
    sent = WEBSOCKET_TOKEN + base64.urlsafe_b64encode(token.encode()).decode().rstrip("=")
    assert bearer_token(asking({"Upgrade": "websocket", "Sec-WebSocket-Protocol": sent})) == token


async def test_no_token_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    kube = FakeKube({"good-token": ANN})
    entrance = door(kube)
    with caplog.at_level(logging.DEBUG):
        await entrance.caller(bearing("good-token"))
        with pytest.raises(Unauthorized):
            await entrance.caller(bearing("bad-token"))
        kube.away = True
        with pytest.raises(Unavailable):
            await entrance.caller(bearing("new-token"))
    assert "-token" not in caplog.text


class SlowForStrangers(FakeKube):
    """Takes its time over tokens that it does not know."""

    def __init__(self) -> None:
        super().__init__({"t": ANN})
        self.gate = asyncio.Event()
        self.strangers = 0

    async def create(self, obj: dict[str, Any]) -> dict[str, Any]:
        if obj["spec"]["token"] not in self.tokens:
            self.strangers += 1
            await self.gate.wait()
        return await super().create(obj)


async def test_tokens_that_were_never_good_keep_waiting_nobody_who_was_here_before() -> None:
    kube = SlowForStrangers()
    entrance = door(kube, seconds=0.0)
    await entrance.caller(bearing("t"))
    strangers = [asyncio.create_task(entrance.caller(bearing(f"bad-{n}"))) for n in range(50)]
    await asyncio.sleep(0)
    async with asyncio.timeout(5):
        assert (await entrance.caller(bearing("t"))).username == "ann"
    assert kube.strangers == FIRST_REVIEWS_AT_ONCE
    kube.gate.set()
    assert all(isinstance(ended, Unauthorized) for ended in await asyncio.gather(*strangers, return_exceptions=True))
