"""Messages on the wire: signed webhooks and Slack, and what their failures mean."""

import asyncio
import socket
from email.utils import formatdate
from typing import Any
from uuid import UUID

import pytest

from tarsy.controllers.notifications.wire import NotificationSender, SendResult
from tarsy.kube.client import ApiError
from tarsy.llm.registry import SecretProblem
from tarsy.outbound.address_check import Found
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import SecretKey
from tarsy.resources.v1alpha1.common import SecretKeyRef
from tarsy.resources.v1alpha1.notify import RequestTarget, SlackTarget, WebhookTarget
from wire.receiver import KEY, TOKEN, Receiver, receiving

ID = UUID("6a1c7f6e-0000-5000-8000-000000000001")
REF = SecretKeyRef(name="s", key="k")
NOW = 1_800_000_000.4


class Secrets:
    """One value for every key, or an error; `asked` are the keys."""

    def __init__(self, value: str | Exception) -> None:
        self.value = value
        self.asked: list[SecretKey] = []

    async def __call__(self, key: SecretKey) -> str:
        self.asked.append(key)
        if isinstance(self.value, Exception):
            raise self.value
        return self.value


def sender(value: str | Exception = KEY, *, in_pod: bool = False, seconds: float = 60.0) -> NotificationSender:
    return NotificationSender(Secrets(value), Destinations(in_pod), seconds=seconds, clock=lambda: NOW)


async def hook(receiver: Receiver, by: NotificationSender | None = None, path: str = "/in") -> SendResult:
    target = WebhookTarget(url=receiver.url + path, signing_secret_ref=REF)
    return await (by or sender()).webhook("team-a", target, ID, b'{"a": "\xc3\xa9"}')


async def post(receiver: Receiver, by: NotificationSender | None = None, thread: str | None = None) -> SendResult:
    target = SlackTarget(channel="#alerts", token_secret_ref=REF, api_url=receiver.url + "/api/")
    return await (by or sender(TOKEN)).slack("team-a", target, {"text": "t"}, thread)


async def test_a_webhook_is_signed_as_its_receiver_checks_it() -> None:
    async with receiving() as receiver:
        assert await hook(receiver) == SendResult()
        assert await hook(receiver, sender("another key")) == SendResult()
    right, wrong = receiver.told
    assert right.signed and not wrong.signed
    assert (right.headers["webhook-id"], right.headers["webhook-timestamp"]) == (str(ID), "1800000000")
    assert right.body == {"a": "é"}


async def test_a_secret_is_read_where_the_object_is() -> None:
    secrets = Secrets(KEY)
    async with receiving() as receiver:
        await hook(receiver, NotificationSender(secrets, Destinations()))
    assert secrets.asked == [SecretKey(namespace="team-a", name="s", key="k")]


@pytest.mark.parametrize(
    ("status", "headers", "answer"),
    [
        (429, {"Retry-After": "17"}, SendResult("it answered with status 429", True, 17.0)),
        (429, {"Retry-After": "999999"}, SendResult("it answered with status 429", True, 3600.0)),
        (503, {"Retry-After": "soon"}, SendResult("it answered with status 503")),
        (
            503,
            {"Retry-After": formatdate(NOW + 90, usegmt=True)},
            SendResult("it answered with status 503", True, 89.6),
        ),
        (500, {}, SendResult("it answered with status 500")),
        (408, {}, SendResult("it answered with status 408")),
        (401, {}, SendResult("it answered with status 401", False)),
        (410, {}, SendResult("it answered with status 410", False)),
        (302, {"Location": "http://127.0.0.1:1/"}, SendResult("it answered with status 302", False)),
    ],
)
@pytest.mark.parametrize("way", [hook, post], ids=["webhook", "slack"])
async def test_a_status_says_whether_trying_again_helps(way, status: int, headers: dict[str, str], answer) -> None:
    async with receiving() as receiver:
        receiver.answers = [(status, headers)]
        got = await way(receiver)
        assert len(receiver.told) == 1
    assert (got.problem, got.passing) == (answer.problem, answer.passing)
    assert got.after == (None if answer.after is None else pytest.approx(answer.after, abs=0.1))


async def test_slack_is_written_to_and_says_which_message_that_is() -> None:
    async with receiving() as receiver:
        first = await post(receiver)
        second = await post(receiver, thread=first.ts)
    assert first.problem is None and first.ts == "1700000001.000100" and second.ts != first.ts
    assert [told.body.get("thread_ts") for told in receiver.told] == [None, first.ts]
    assert receiver.told[0].body == {"channel": "#alerts", "text": "t"}
    assert receiver.told[0].path == "/api/chat.postMessage"


@pytest.mark.parametrize(
    ("word", "problem", "passing"),
    [
        ("not_in_channel", "Slack refused it: not_in_channel", False),
        ("ratelimited", "Slack refused it: ratelimited", True),
        ("internal_error", "Slack refused it: internal_error", True),
        ("Words <of> an attacker", "Slack refused it: no reason", False),
    ],
)
async def test_slacks_own_word_for_an_error_is_told(word: str, problem: str, passing: bool) -> None:
    async with receiving() as receiver:
        receiver.words = [word]
        assert await post(receiver) == SendResult(problem, passing)


async def test_a_wrong_token_is_not_tried_again() -> None:
    async with receiving() as receiver:
        assert await post(receiver, sender("xoxb-wrong")) == SendResult("Slack refused it: invalid_auth", False)


async def test_a_token_that_no_header_carries_is_not_sent() -> None:
    async with receiving() as receiver:
        got = await post(receiver, sender("xoxb a\nb"))
        assert not receiver.told
    assert got.problem is not None and "Secret team-a/s" in got.problem and not got.passing


async def test_an_answer_that_is_not_slacks_is_told() -> None:
    async with receiving() as receiver:
        receiver.answers = [(200, {})]
        assert await post(receiver) == SendResult("its response is not one of Slack's Web API", False)


async def test_silence_has_a_limit() -> None:
    async with receiving() as receiver:
        receiver.mute = True
        assert await asyncio.wait_for(hook(receiver, sender(seconds=0.5)), 60) == SendResult("no answer within 0.5 s")


async def test_one_that_is_away_may_come_back() -> None:
    async with receiving() as receiver:
        pass
    got = await hook(receiver)
    assert got.passing and got.problem == "it could not be reached (ClientConnectorError)"


async def test_where_a_url_may_not_lead_nothing_is_sent() -> None:
    async with receiving() as receiver:
        got = await hook(receiver, sender(in_pod=True))
        named = await sender(in_pod=True).webhook(
            "team-a",
            WebhookTarget(url=receiver.url.replace("127.0.0.1", "localhost"), signing_secret_ref=REF),
            ID,
            b"{}",
        )
        metadata = await sender().webhook(
            "team-a", WebhookTarget(url="http://169.254.169.254/latest", signing_secret_ref=REF), ID, b"{}"
        )
        assert not receiver.told
    for answer in (got, named, metadata):
        assert answer.problem is not None and "--url-host" in answer.problem and not answer.passing


async def test_a_name_is_judged_where_it_is_connected_to() -> None:
    async with receiving() as receiver:
        target = WebhookTarget(url=receiver.url.replace("127.0.0.1", "tools.example"), signing_secret_ref=REF)

        async def ask(destinations: Destinations, *addresses: str) -> SendResult:
            async def look_up(name: str, port: int) -> Found:
                if not addresses:
                    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
                return Found(addresses)

            return await NotificationSender(Secrets(KEY), destinations, seconds=60, look_up=look_up).webhook(
                "team-a", target, ID, b"{}"
            )

        closed, opened = Destinations(in_pod=True), Destinations.of(["127.0.0.1"], in_pod=True)
        refused = await ask(closed, "127.0.0.1")
        assert refused.problem is not None and "host tools.example is the operator's own pod" in refused.problem
        assert not refused.passing and not receiver.told
        gone = await ask(closed)
        assert gone.passing and gone.problem is not None and "host tools.example is not found" in gone.problem
        assert await ask(opened, "127.0.0.1") == SendResult()
        assert receiver.told[0].headers["host"].startswith("tools.example:")


@pytest.mark.parametrize(
    ("error", "problem"),
    [
        (SecretProblem("SecretMissing", "Secret team-a/s does not exist; create it"), "Secret team-a/s does not exist"),
        (ApiError(503, "ServiceUnavailable", "away"), "its Secret could not be read (ServiceUnavailable)"),
    ],
)
async def test_a_secret_that_is_not_there_may_come(error: Exception, problem: str) -> None:
    async with receiving() as receiver:
        got = await hook(receiver, sender(error))
        assert not receiver.told
    assert got.passing and got.problem is not None and got.problem.startswith(problem)


async def test_a_signing_key_that_is_no_base64_is_told() -> None:
    async with receiving() as receiver:
        got = await hook(receiver, sender("whsec_???"))
    assert got == SendResult("its signing key begins with whsec_, but the rest is not base64", False)


async def comment(receiver: Receiver, by: NotificationSender, **more: Any) -> SendResult:
    target = RequestTarget.model_validate({"url": receiver.url, "body": "{}", **more})
    return await by.request("team-a", target, f"{receiver.url}/incidents/Q0%2FABC/notes", b'{"note": "full"}')


async def test_a_request_has_its_method_and_its_headers() -> None:
    secrets = Secrets("Token token=abc")
    headers = [
        {"name": "Authorization", "valueFrom": {"secretKeyRef": {"name": "pages", "key": "auth"}}},
        {"name": "From", "value": "tarsy@example.org"},
    ]
    async with receiving() as receiver:
        by = NotificationSender(secrets, Destinations(), seconds=60.0)
        assert await comment(receiver, by, headers=headers, method="PUT") == SendResult()
    (told,) = receiver.told
    assert (told.method, told.body) == ("PUT", {"note": "full"})
    assert (told.headers["authorization"], told.headers["from"]) == ("Token token=abc", "tarsy@example.org")
    assert told.raw_path == "/incidents/Q0%2FABC/notes"
    assert secrets.asked == [SecretKey(namespace="team-a", name="pages", key="auth")]


async def test_a_header_that_cannot_be_sent_is_named_without_its_value() -> None:
    headers = [{"name": "Authorization", "valueFrom": {"secretKeyRef": {"name": "pages", "key": "auth"}}}]
    async with receiving() as receiver:
        answer = await comment(receiver, sender("sec\nret"), headers=headers)
    assert not answer.passing and answer.problem is not None
    assert "Secret team-a/pages" in answer.problem and "sec" not in answer.problem.replace("Secret", "")
    assert receiver.told == []
