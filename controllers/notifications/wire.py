"""Sends notifications to Slack's Web API, and to webhooks signed as Standard Webhooks define.

Decision: what went wrong is one of two: it may pass (try again, when the other side says so), or it will not (a wrong
token, a channel that is not there, a URL that may not be used) and trying again would help nobody. Nothing of an answer
but its status, and Slack's own word for an error, is ever told.
"""

import asyncio
import base64
import binascii
import hashlib
import hmac
import re
import ssl
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any
from uuid import UUID

import aiohttp
import orjson

from tarsy.kube.client import ApiError
from tarsy.llm.registry import SecretProblem
from tarsy.outbound.address_check import NotAllowed, Of, Resolve, resolve_host
from tarsy.outbound.connector import PinnedConnector
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import SecretKey
from tarsy.plan.place import Place
from tarsy.resources.v1alpha1.common import SecretKeyRef
from tarsy.resources.v1alpha1.notify import RequestTarget, SlackTarget, WebhookTarget

SEND_SECONDS = 20.0
_LONGEST_PAUSE_SECONDS = 3600.0
_LONGEST_ANSWER = 262_144
_PASSING_STATUS = frozenset({408, 425, 429})
_PASSING_WORDS = frozenset(
    {"fatal_error", "internal_error", "rate_limited", "ratelimited", "request_timeout", "service_unavailable"}
)
_WORD = re.compile(r"[a-z_]{1,64}")
_TS = re.compile(r"[0-9]{1,20}\.[0-9]{1,10}")

_ReadSecret = Callable[[SecretKey], Awaitable[str]]


@dataclass(frozen=True, slots=True)
class SendResult:
    """Reports a try: `problem` is None when it succeeded; a retry cannot help when it is not `passing`.

    `after` is the pause in seconds that the other side asks for, `ts` the message that Slack made of it, `answer` what
    Slack's Web API answered when it agreed.
    """

    problem: str | None = None
    passing: bool = True
    after: float | None = None
    ts: str | None = None
    answer: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)


class _NotSent(Exception):
    def __init__(self, problem: str, *, passing: bool = True) -> None:
        super().__init__(problem)
        self.answer = SendResult(problem, passing)


class NotificationSender:
    """Sends one message at a time, within a time limit; raises only on cancellation.

    Args:
        read_secret: gives a token or a key.
        destinations: where URLs may lead.
        seconds: for one message, with the reading of its Secret.
        look_up: resolves names.
        clock: seconds since 1970, for signatures.
    """

    def __init__(
        self,
        read_secret: _ReadSecret,
        destinations: Destinations,
        *,
        seconds: float = SEND_SECONDS,
        look_up: Resolve = resolve_host,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._read_secret = read_secret
        self._destinations = destinations
        self._seconds = seconds
        self._look_up = look_up
        self._clock = clock

    async def webhook(self, namespace: str, target: WebhookTarget, identity: UUID, body: bytes) -> SendResult:
        """Sends JSON to a webhook, signed.

        Args:
            namespace: of the object that names the target.
            target: the webhook.
            identity: the same at every try: its receiver's means to take it once.
            body: the JSON.
        """

        async def send() -> SendResult:
            key = _key(await self._secret(namespace, target.signing_secret_ref))
            stamp = str(int(self._clock()))
            signed = hmac.digest(key, f"{identity}.{stamp}.".encode() + body, hashlib.sha256)
            headers = {
                "webhook-id": str(identity),
                "webhook-timestamp": stamp,
                "webhook-signature": "v1," + base64.b64encode(signed).decode(),
            }
            status, after, _ = await self._post(target.url, namespace, body, headers)
            return _judged(status, after)

        return await self._within_time(send)

    async def slack(
        self, namespace: str, target: SlackTarget, message: Mapping[str, Any], thread: str | None
    ) -> SendResult:
        """Sends a message to a Slack channel.

        Args:
            namespace: of the Secret with the token.
            target: channel and token.
            message: for `chat.postMessage`.
            thread: the timestamp of the message to reply to; None: a new thread.
        """

        async def send() -> SendResult:
            token = await self._secret(namespace, target.token_secret_ref)
            body = {"channel": target.channel, **message} | ({"thread_ts": thread} if thread else {})
            where = f"Secret {namespace}/{target.token_secret_ref.name}"
            return await self._call_slack(target.api_url, "chat.postMessage", token, body, namespace, where)

        return await self._within_time(send)

    async def slack_call(
        self, api_url: str, method: str, token: str, body: Mapping[str, Any], namespace: str
    ) -> SendResult:
        """Calls a method of Slack's Web API.

        Args:
            api_url: base URL of the API.
            method: such as `chat.postMessage`.
            token: of the app, or of its bot.
            body: the arguments.
            namespace: for which the URL is judged.
        """

        async def send() -> SendResult:
            return await self._call_slack(api_url, method, token, body, namespace, "Slack")

        return await self._within_time(send)

    async def _call_slack(
        self, api_url: str, method: str, token: str, body: Mapping[str, Any], namespace: str, where: str
    ) -> SendResult:
        if not token.isascii() or not token.isprintable() or " " in token:
            raise _NotSent(f"{where}: the token contains characters that a header cannot contain", passing=False)
        url, headers = f"{api_url.rstrip('/')}/{method}", {"Authorization": f"Bearer {token}"}
        status, after, answer = await self._post(url, namespace, orjson.dumps(body), headers)
        return _judged_by_slack(status, after, answer)

    async def request(self, namespace: str, target: RequestTarget, url: str, body: bytes) -> SendResult:
        """Sends a request to the API of another system.

        Args:
            namespace: of the object that names the target, and of the Secrets of its headers.
            target: method and headers.
            url: filled in.
            body: the JSON, filled in.
        """

        async def send() -> SendResult:
            headers: dict[str, str] = {}
            for header in target.headers:
                value = header.value or ""
                if header.value_from is not None:
                    reference = header.value_from.secret_key_ref
                    value = await self._secret(namespace, reference)
                    if not value.isascii() or not value.isprintable():
                        where = f"Secret {namespace}/{reference.name}"
                        raise _NotSent(
                            f"{where}: its value contains characters that a header cannot contain", passing=False
                        )
                headers[header.name] = value
            status, after, _ = await self._post(url, namespace, body, headers, method=target.method)
            return _judged(status, after)

        return await self._within_time(send)

    async def _within_time(self, send: Callable[[], Awaitable[SendResult]]) -> SendResult:
        try:
            async with asyncio.timeout(self._seconds):
                return await send()
        except _NotSent as not_sent:
            return not_sent.answer
        except NotAllowed as refused:
            return SendResult(str(refused), passing=False)
        except SecretProblem as problem:
            return SendResult(str(problem))
        except ApiError as error:
            return SendResult(f"its Secret could not be read ({error.reason})")
        except TimeoutError:
            return SendResult(f"no answer within {self._seconds:g} s")
        except aiohttp.ClientConnectorDNSError as error:
            return SendResult(error.os_error.strerror or "its host is not found")
        except ssl.SSLError:
            return SendResult("its certificate cannot be verified")
        except (aiohttp.ClientError, OSError, ValueError) as error:
            return SendResult(f"it could not be reached ({type(error).__name__})")

    async def _secret(self, namespace: str, reference: SecretKeyRef) -> str:
        return await self._read_secret(SecretKey(namespace=namespace, name=reference.name, key=reference.key))

    async def _post(
        self, url: str, namespace: str, body: bytes, headers: Mapping[str, str], *, method: str = "POST"
    ) -> tuple[int, float | None, bytes]:
        """Sends a request; returns the status, the requested pause and the beginning of the response."""
        if why := self._destinations.why_not(url, namespace):
            raise _NotSent(why, passing=False)
        place = Place.of(url)
        connector = PinnedConnector(place.host, Of(self._destinations, namespace), look_up=self._look_up)
        sent = {"Content-Type": "application/json; charset=utf-8", "User-Agent": "tarsy", **headers}
        async with (
            aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.request(method, place.url, data=body, headers=sent, allow_redirects=False) as response,
        ):
            answer = await response.content.read(_LONGEST_ANSWER) if response.status == 200 else b""
            return response.status, _pause(response.headers.get("Retry-After"), self._clock()), answer


def _judged(status: int, after: float | None) -> SendResult:
    if 200 <= status < 300:
        return SendResult()
    return SendResult(f"it answered with status {status}", status >= 500 or status in _PASSING_STATUS, after)


def _judged_by_slack(status: int, after: float | None, body: bytes) -> SendResult:
    if status != 200:
        return _judged(status, after) if status >= 300 else SendResult(f"it answered with status {status}")
    try:
        answer = orjson.loads(body)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        return SendResult("its response is not one of Slack's Web API", passing=False)
    if answer.get("ok") is True:
        ts = answer.get("ts")
        return SendResult(ts=ts if isinstance(ts, str) and _TS.fullmatch(ts) else None, answer=answer)
    word = answer.get("error")
    word = word if isinstance(word, str) and _WORD.fullmatch(word) else "no reason"
    return SendResult(f"Slack refused it: {word}", word in _PASSING_WORDS, after)


def _pause(header: str | None, now: float) -> float | None:
    """Reads the seconds of Retry-After, given as seconds or as a date; one hour at most."""
    if header is None:
        return None
    try:
        seconds = float(header) if header.strip().isdigit() else parsedate_to_datetime(header).timestamp() - now
    except (ValueError, OverflowError):
        return None
    return min(max(0.0, seconds), _LONGEST_PAUSE_SECONDS)


def _key(secret: str) -> bytes:
    """Decodes a signing key: base64 after `whsec_`."""
    if not secret.startswith("whsec_"):
        return secret.encode()
    try:
        return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
    except binascii.Error:
        raise _NotSent("its signing key begins with whsec_, but the rest is not base64", passing=False) from None
