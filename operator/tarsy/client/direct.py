"""Calls the HTTP API of TARSy directly (`--server`), with a bearer token.

Decision: a token is never sent in the clear over a network: without TLS only servers on this machine are called. This
API cannot watch alerts and questions that are not on record yet, so they are polled every second.
"""

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from ipaddress import ip_address
from types import MappingProxyType, TracebackType
from typing import Any, Protocol, Self, TypeVar
from urllib.parse import urlsplit

import aiohttp

from tarsy.client.api import AWAY_SECONDS, SILENCE_SECONDS, CreatedObject, approval_path, as_model, run_path
from tarsy.client.errors import ApiUseError, BrokenOff
from tarsy.client.refusals import (
    ASK_SCORE,
    ASK_SUITE_SCORES,
    DECIDE,
    READ_APPROVALS,
    READ_OBJECTS,
    READ_PLAN,
    READ_QUOTAS,
    READ_SCHEDULES,
    READ_SKILLS,
    READ_TIMELINE,
    WRITE,
    WRITE_REVIEWS,
    Right,
    namespace_of,
    refusals,
)
from tarsy.http.decision_entry import Verdict
from tarsy.http.models import DIRECT_PREFIX
from tarsy.http.views.approvals import ApprovalItem, ApprovalPage, ApprovalView
from tarsy.http.views.plans import PlanQuestion, PlanView
from tarsy.http.views.quotas import QuotaList, QuotaView
from tarsy.http.views.reviews import ReviewResult, ReviewResults, ReviewsBody
from tarsy.http.views.schedules import ScheduleList, ScheduleView
from tarsy.http.views.skills import SkillList, SkillView
from tarsy.kube.client import ApiError

_T = TypeVar("_T")
_Item = TypeVar("_Item", covariant=True)
_REQUEST_SECONDS = 30.0
POLL_SECONDS = 1.0
_VERBS = {"Cancelled": "cancel", "Concluded": "conclude"}


class _ItemsPage(Protocol[_Item]):
    """A page of a list."""

    @property
    def items(self) -> Sequence[_Item]: ...
    @property
    def next(self) -> str | None: ...


class DirectClient:
    """Implements `TarsyClient` on the HTTP API. Use it as an async context manager.

    Args:
        server: the URL, without `/api/v1`.
        token: the bearer token of the user.
        namespace: the default namespace.
        authorities: a file with CA certificates for the server; None: those of the system.
    """

    def __init__(self, server: str, token: str, namespace: str, authorities: str | None = None) -> None:
        url = urlsplit(server)
        if url.scheme not in ("http", "https") or not url.hostname or url.query or url.fragment:
            raise ApiUseError("--server takes a URL such as https://tarsy.example.org")
        if url.scheme == "http" and not _is_here(url.hostname):
            raise ApiUseError(f"--server {server}: a token is sent over https only, except to servers on this machine")
        if not token.isascii() or not token.isprintable():
            raise ApiUseError("the token contains characters that are not valid in a token")
        self._base = server.rstrip("/") + DIRECT_PREFIX
        self._host = url.hostname
        self._headers = {"Authorization": f"Bearer {token}", "User-Agent": "tarsy"}
        self._tls = _tls(authorities) if url.scheme == "https" else None
        self._session: aiohttp.ClientSession | None = None
        self.namespace = namespace

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(ssl=self._tls) if self._tls else aiohttp.TCPConnector()
        self._session = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), headers=self._headers
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def read(self, path: str, right: Right, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Reads a route of the HTTP API with GET.

        Args:
            path: the path of the route, without `/api/v1`.
            right: the permission that a refusal names.
            query: query parameters; None: none.
        """
        return await self._call("GET", path, right, query=query)

    @contextlib.asynccontextmanager
    async def streaming(
        self, path: str, right: Right, query: Mapping[str, str] | None = None
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        """Streams the response of a route of the HTTP API in chunks.

        Args:
            path: the path of the route, without `/api/v1`.
            right: the permission that a refusal names.
            query: query parameters; None: none.
        """
        patience = aiohttp.ClientTimeout(total=None, sock_connect=_REQUEST_SECONDS, sock_read=SILENCE_SECONDS)
        with self._refusals(right, namespace_of(path)):
            async with self._open("GET", path, timeout=patience, query=query, accept="text/event-stream") as answer:
                yield answer.content.iter_any()

    async def submit(self, namespace: str, alert: Mapping[str, Any]) -> CreatedObject:
        name = alert.get("metadata", {}).get("name")
        body = {**alert.get("spec", {}), **({"name": name} if name else {})}
        made = await self._call("POST", f"/namespaces/{namespace}/alerts", WRITE, body=body)
        return CreatedObject.of(made)

    async def ask(self, namespace: str, investigation: str, question: str) -> CreatedObject:
        """Posts a `question` about `investigation` in `namespace`; returns the name and uid of its ChatMessage."""
        path = run_path(namespace, investigation, "chatmessages")
        made = await self._call("POST", path, WRITE, body={"question": question})
        return CreatedObject.of(made)

    async def replay(self, namespace: str, investigation: str, replay: Mapping[str, Any]) -> CreatedObject:
        """Posts a replay of `investigation` in `namespace`; returns the name and uid of the new Investigation.

        Args:
            namespace: of both.
            investigation: the name of the recorded one.
            replay: the rest of `spec.replay`.
        """
        made = await self._call("POST", run_path(namespace, investigation, "replays"), WRITE, body=dict(replay))
        return CreatedObject.of(made)

    async def retry(self, namespace: str, investigation: str, chain: str | None, provider: str | None) -> CreatedObject:
        """Posts a retry of an investigation; returns the name and uid of the new one.

        Args:
            namespace: of both.
            investigation: name of the one to run again.
            chain: name of the Chain; None: the same.
            provider: name of the LLMProvider of all agents; None: as before.
        """
        body = {**({"chain": chain} if chain else {}), **({"llmProvider": provider} if provider else {})}
        return CreatedObject.of(
            await self._call("POST", run_path(namespace, investigation, "retries"), WRITE, body=body)
        )

    async def want(self, namespace: str, investigation: str, desired: str) -> list[str]:
        """Requests the cancellation or conclusion of an investigation; returns the names of the cancelled questions.

        Args:
            namespace: of the investigation.
            investigation: its name.
            desired: Cancelled or Concluded.
        """
        told = await self._call("POST", run_path(namespace, investigation, _VERBS[desired]), WRITE)
        return [str(name) for name in told.get("questions") or ()]

    async def approvals(self, namespace: str | None, *, decided: bool) -> list[ApprovalItem]:
        """Lists the calls that wait for people in a namespace, or in all if None; with `decided` the others too."""
        query = {"decided": "true"} if decided else {}
        return await self._items(partial(as_model, ApprovalPage), "/toolapprovals", READ_APPROVALS, namespace, query)

    async def skills(self, namespace: str) -> list[SkillView]:
        """Lists the Skills in `namespace` that are valid."""
        return await self._items(partial(as_model, SkillList), "/skills", READ_SKILLS, namespace)

    async def schedules(self, namespace: str | None) -> list[ScheduleView]:
        """Lists the AlertSchedules of a namespace, or of all if None, that are valid."""
        return await self._items(partial(as_model, ScheduleList), "/alertschedules", READ_SCHEDULES, namespace)

    async def quotas(self, namespace: str | None) -> list[QuotaView]:
        """Lists the InvestigationQuotas of a namespace, or of all if None, that are valid."""
        return await self._items(partial(as_model, QuotaList), "/investigationquotas", READ_QUOTAS, namespace)

    async def plan(self, namespace: str, question: PlanQuestion) -> PlanView:
        """Asks for a plan, which the server makes."""
        body = question.model_dump(by_alias=True, exclude_none=True)
        return as_model(PlanView, await self._call("POST", f"/namespaces/{namespace}/plan", READ_PLAN, body=body))

    async def _items(
        self,
        page_of: Callable[[Any], _ItemsPage[_Item]],
        path: str,
        right: Right,
        namespace: str | None,
        more: Mapping[str, str] = MappingProxyType({}),
    ) -> list[_Item]:
        """Reads all pages of a list.

        Args:
            page_of: reads a page.
            path: of the list.
            right: names what a refusal misses.
            namespace: of the objects; None: all.
            more: other parameters of the query.
        """
        query = {"limit": "200", **more, **({} if namespace is None else {"namespace": namespace})}
        found: list[_Item] = []
        while True:
            page = page_of(await self._call("GET", path, right, query=query))
            found += page.items
            if page.next is None:
                return found
            query["continue"] = page.next

    async def approval(self, namespace: str, name: str) -> ApprovalView:
        """Reads the ToolApproval `name` in `namespace`."""
        return as_model(ApprovalView, await self._call("GET", approval_path(namespace, name), READ_APPROVALS))

    async def decide(self, shown: ApprovalView, decision: Verdict, reason: str | None) -> ApprovalView:
        """Posts a decision of the user about a call as it was shown to them.

        Args:
            shown: the call.
            decision: of the user.
            reason: of the user; None: none.
        """
        body = {"decision": decision, "argumentsDigest": shown.arguments_digest}
        body |= {"reason": reason} if reason else {}
        path = approval_path(shown.namespace, shown.name, "decisions")
        return as_model(ApprovalView, await self._call("POST", path, DECIDE, body=body))

    async def review(self, namespace: str, body: ReviewsBody) -> list[ReviewResult]:
        """Posts what the user says about findings in `namespace`, the `body`; returns what became of each."""
        said = body.model_dump(mode="json", by_alias=True, exclude_none=True)
        made = await self._call("POST", f"/namespaces/{namespace}/reviews", WRITE_REVIEWS, body=said)
        return list(as_model(ReviewResults, made).items)

    async def score_again(self, namespace: str, investigation: str) -> None:
        """Posts a request for another score of an `investigation` in `namespace`."""
        await self._call("POST", run_path(namespace, investigation, "score"), ASK_SCORE)

    async def score_suite_again(self, namespace: str, suite: str, days: int) -> None:
        """Posts a request for another score of what ended in the last `days`, by a `suite` in `namespace`."""
        path = f"/namespaces/{namespace}/evalsuites/{suite}/scores"
        await self._call("POST", path, ASK_SUITE_SCORES, body={"days": days})

    async def accept(self, namespace: str, server: str, digests: Mapping[str, str], rest: Mapping[str, Any]) -> str:
        """Raises ApiUseError: an acceptance is written through the Kubernetes API only."""
        raise ApiUseError("tools are accepted with your kubeconfig, so that the API server knows you; omit --server")

    async def until(
        self,
        kind: str,
        namespace: str,
        name: str,
        settled: Callable[[Mapping[str, Any]], _T | None],
        about: str | None = None,
    ) -> _T:
        """Polls an object every second until `settled` returns a value for its state; returns that value.

        Args:
            kind: Alert, Investigation or ChatMessage.
            namespace: of the object.
            name: of the object.
            settled: receives the state of the object, as far as this API knows it; returns None to continue.
            about: the investigation that a ChatMessage is about; None for the other kinds.
        """
        clock = asyncio.get_running_loop().time
        seen = clock()
        while True:
            try:
                obj = await self._object(kind, namespace, name, about)
                seen = clock()
                if (said := settled(obj)) is not None:
                    return said
            except BrokenOff:
                if clock() > seen + AWAY_SECONDS:
                    raise
            await asyncio.sleep(POLL_SECONDS)

    async def names(self, kind: str, namespace: str) -> list[str]:
        if kind != "Investigation":
            return []
        query = {"limit": "200", "namespace": namespace}
        return [
            str(one["name"]) for one in (await self._call("GET", "/investigations", READ_OBJECTS, query=query))["items"]
        ]

    async def questions(self, namespace: str, investigation: str) -> list[str]:
        return [str(one["name"]) async for one in self._questions(namespace, investigation)]

    async def _questions(self, namespace: str, investigation: str) -> AsyncIterator[dict[str, Any]]:
        path, query = run_path(namespace, investigation, "chatmessages"), dict[str, str]()
        while True:
            page = await self._call("GET", path, READ_OBJECTS, query=query)
            for one in page["items"]:
                yield one
            if not page.get("continue"):
                return
            query = {"continue": str(page["continue"])}

    async def _object(self, kind: str, namespace: str, name: str, about: str | None) -> dict[str, Any]:
        """Returns an object as far as this API knows it."""
        if kind == "Alert":
            alert = await self._call("GET", f"/namespaces/{namespace}/alerts/{name}", READ_OBJECTS)
            status: dict[str, Any] = {"conditions": alert["conditions"]}
            if alert["investigation"] and await self._is_recorded(namespace, alert["investigation"]):
                status["investigationRef"] = {"name": alert["investigation"], "uid": alert["investigationUid"]}
            return {"status": status} if alert["phase"] else {}
        if kind == "ChatMessage":
            async for one in self._questions(namespace, about or ""):
                if one["name"] == name:
                    return _question(one)
            raise ApiUseError(f"question {namespace}/{name} was deleted", 404)
        await self._call("GET", run_path(namespace, name, "timeline"), READ_TIMELINE, query={"limit": "1"})
        return {"status": {"record": {}, "conditions": [{"type": "Accepted", "status": "True"}]}}

    async def _is_recorded(self, namespace: str, investigation: str) -> bool:
        try:
            await self._call("GET", run_path(namespace, investigation, "timeline"), READ_TIMELINE, query={"limit": "1"})
        except ApiUseError as error:
            if error.status != 404:
                raise
            return False
        return True

    async def _call(
        self,
        method: str,
        path: str,
        right: Right,
        *,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        patience = aiohttp.ClientTimeout(total=_REQUEST_SECONDS)
        with self._refusals(right, namespace_of(path)):
            async with self._open(method, path, timeout=patience, query=query, body=body) as answer:
                content = await answer.read()
        try:
            found = json.loads(content)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise ApiUseError(f"{self._host} returned a response that is not from TARSy; is --server correct?")
        return found

    @contextlib.asynccontextmanager
    async def _open(
        self,
        method: str,
        path: str,
        *,
        timeout: aiohttp.ClientTimeout,
        query: Mapping[str, str] | None = None,
        body: Mapping[str, Any] | None = None,
        accept: str = "application/json",
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        if self._session is None:
            raise RuntimeError("DirectClient is an async context manager: enter it before a request")
        try:
            async with self._session.request(
                method,
                self._base + path,
                params=query,
                json=body,
                headers={"Accept": accept},
                timeout=timeout,
                allow_redirects=False,
            ) as answer:
                if answer.status >= 300:
                    raise await _refusal(answer)
                yield answer
        except (TimeoutError, aiohttp.ClientError, OSError) as error:
            raise ApiError(
                0, "Unreachable", f"{self._host} could not be reached: {error or type(error).__name__}"
            ) from None
        except ValueError:
            raise ApiError(0, "NoAnswer", f"{self._host} returned no JSON; is --server correct?") from None

    def _refusals(self, right: Right, namespace: str | None) -> AbstractContextManager[None]:
        return refusals(right, namespace, f"the token for {self._host}", "")


async def _refusal(answer: aiohttp.ClientResponse) -> ApiError:
    """Converts an error response of the server, or of a proxy before it."""
    try:
        said = (await answer.json(content_type=None))["error"]
        return ApiError(answer.status, str(said["reason"]), str(said["message"]))
    except (ValueError, KeyError, TypeError):
        message = f"HTTP status {answer.status}, and the response is not from TARSy; is --server correct?"
        return ApiError(400 if answer.status == 404 else answer.status, "NoAnswer", message)


def _question(found: Mapping[str, Any]) -> dict[str, Any]:
    """Converts a question of the API to the status of its object."""
    if found["place"] is not None:
        return {"status": {"conditions": [{"type": "Accepted", "status": "True"}]}}
    if not found["failure"]:
        return {}
    told = {"type": "Accepted", "status": "False", **found["failure"]}
    ended = {"type": "Finished", "status": "True" if found["state"] in ("failed", "cancelled") else "False"}
    return {"status": {"conditions": [told, ended]}}


def _is_here(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _tls(authorities: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=authorities)
    except OSError as error:
        raise ApiUseError(f"--certificate-authority {authorities} cannot be used: {error}") from None
