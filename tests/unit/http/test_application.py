"""Tests the path from a request to a `CheckedRequest`, and from results and errors to responses."""

import asyncio
import gzip
import json
import logging
from typing import Any

import pytest
from aiohttp import web
from pydantic import Field

from tarsy.http.application import HEADERS
from tarsy.http.authentication.identity import Permission
from tarsy.http.bodies import JSON_DEPTH
from tarsy.http.errors import Conflict, NotFound
from tarsy.http.failures import as_caller_said
from tarsy.http.models import Body, Query, View
from tarsy.http.route import DEFAULT_BODY_BYTES, PUBLIC_BODY_BYTES, CheckedRequest, Route
from tarsy.kube.client import ApiError
from tarsy.observe.metric_table import HTTP_REFUSALS
from tarsy.observe.metrics import Metrics
from tarsy.store.errors import StoreError, StoreUnavailable
from unit.http.api import AWAY, FakeKube, client

ANN = {"username": "ann", "uid": "1", "groups": ["on-call"]}
BEARER = {"Authorization": "Bearer ann"}
READ = Permission("get", "investigations", "timeline")
ONE = "/namespaces/{namespace}/investigations/{name}/timeline"
SEEN = "/api/v1/namespaces/shop/investigations/i1/timeline"


class Page(Query):
    limit: int = Field(5, ge=1, le=10)
    state: tuple[str, ...] = ()
    namespace: str | None = None
    alert_type: str | None = None


class Submitted(Body):
    alert_type: str


class Told(View):
    what_was_asked: str


async def tell(ask: CheckedRequest) -> Told:
    return Told(what_was_asked=f"{dict(ask.path)} {ask.checked_query} {ask.caller.username} {ask.namespace_uid}")


async def take(ask: CheckedRequest) -> Told:
    return Told(what_was_asked=ask.body(Submitted).alert_type)


def route(handler: Any = tell, path: str = ONE, **more: Any) -> Route:
    given = {"method": "GET", "operation": "ask", "summary": "Asks.", "permission": READ, **more}
    return Route(path=path, handler=handler, **given)


def kube() -> FakeKube:
    return FakeKube({"ann": ANN})


async def refusal(answer: Any, status: int) -> str:
    """The sentence of an answer that must have this status."""
    body = await answer.json()
    assert answer.status == status, body
    assert set(body) == {"error"} and set(body["error"]) == {"reason", "message"}
    return str(body["error"]["message"])


async def test_a_handler_sees_what_was_checked_and_answers_camel_case_json() -> None:
    async with client(kube(), route(query=Page)) as http:
        answer = await http.get(f"{SEEN}?limit=7&state=a&state=b", headers=BEARER)
        body = await answer.json()
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "application/json"
    assert "limit=7 state=('a', 'b')" in body["whatWasAsked"]
    assert "ann uid-of-shop" in body["whatWasAsked"]


async def test_every_answer_has_the_headers_of_safety() -> None:
    async with client(kube(), route()) as http:
        for answer in (await http.get(SEEN, headers=BEARER), await http.get("/nowhere"), await http.get(SEEN)):
            assert {name: answer.headers[name] for name in HEADERS} == HEADERS


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("limit=0", "query parameter limit: Input should be greater than or equal to 1"),
        ("limit=11", "query parameter limit: Input should be less than or equal to 10"),
        ("limit=a", "query parameter limit: Input should be a valid integer"),
        ("limit=1&limit=2", "query parameter limit is given 2 times; give it once"),
        ("alert_type=x", "query parameter alert_type is unknown; known parameters: alertType, limit, namespace, state"),
        ("other=x", "query parameter other is unknown"),
        ("%1b[31m=x", "query parameter ?[31m is unknown"),
        ("alertType=a%00b", "query parameter alertType contains a NUL character"),
    ],
)
async def test_a_wrong_parameter_is_named_with_what_is_allowed(query: str, sentence: str) -> None:
    async with client(kube(), route(query=Page)) as http:
        said = await refusal(await http.get(f"{SEEN}?{query}", headers=BEARER), 400)
    assert said.startswith(sentence)


async def test_a_route_without_parameters_refuses_any() -> None:
    async with client(kube(), route()) as http:
        said = await refusal(await http.get(f"{SEEN}?limit=1", headers=BEARER), 400)
    assert said == "query parameter limit is unknown; this path takes none"


@pytest.mark.parametrize(
    ("path", "parameter"),
    [
        ("/api/v1/namespaces/Shop/investigations/i1/timeline", "namespace"),
        (f"/api/v1/namespaces/{'s' * 64}/investigations/i1/timeline", "namespace"),
        ("/api/v1/namespaces/shop/investigations/i%2F1/timeline", "name"),
        ("/api/v1/namespaces/shop/investigations/i%00/timeline", "name"),
        (f"/api/v1/namespaces/shop/investigations/{'i' * 254}/timeline", "name"),
    ],
)
async def test_a_path_that_can_name_nothing_is_refused_before_anything_is_asked(path: str, parameter: str) -> None:
    api = kube()
    async with client(api, route()) as http:
        said = await refusal(await http.get(path, headers=BEARER), 400)
    assert said.startswith(f"{parameter} in the path: ")
    assert not api.asked["SubjectAccessReview"]


async def test_an_id_in_a_path_is_a_uuid() -> None:
    async def handler(ask: CheckedRequest) -> Told:
        return Told(what_was_asked=str(ask.id))

    number = "0198a0f0-0000-7000-8000-000000000000"
    async with client(kube(), route(handler, "/things/{id}")) as http:
        assert (await (await http.get(f"/api/v1/things/{number}", headers=BEARER)).json())["whatWasAsked"] == number
        await refusal(await http.get("/api/v1/things/one", headers=BEARER), 400)


def test_a_route_may_only_have_parameters_that_are_known() -> None:
    with pytest.raises(ValueError, match="unknown path parameter other"):
        route(path="/{other}")
    with pytest.raises(ValueError, match="a public route has no permission"):
        route(public=True)


@pytest.mark.parametrize(
    ("body", "status", "sentence"),
    [
        (b"{", 400, "body: Invalid JSON"),
        (b"", 400, "body: Invalid JSON"),
        (b"[]", 400, "body: "),
        (b"\xff{}", 400, "the body is not valid UTF-8 (byte 0)"),
        (b"{}", 400, "body: alertType: Field required"),
        (b'{"alertType": 1}', 400, "body: alertType: Input should be a valid string"),
        (b'{"alertType": "a", "other": 1}', 400, "body: other: Extra inputs are not permitted"),
        (
            b'{"alertType": "' + b"a" * DEFAULT_BODY_BYTES + b'"}',
            413,
            f"the body is larger than {DEFAULT_BODY_BYTES} bytes",
        ),
    ],
)
async def test_a_wrong_body_is_refused_by_a_sentence(body: bytes, status: int, sentence: str) -> None:
    async with client(kube(), route(take, method="POST", body=Submitted)) as http:
        headers = {**BEARER, "Content-Type": "application/json"}
        assert (await refusal(await http.post(SEEN, data=body, headers=headers), status)).startswith(sentence)


async def test_a_body_of_the_limit_is_read_and_one_byte_more_is_not_whether_or_not_its_length_is_said() -> None:
    async def pieces(size: int) -> Any:
        whole = b'{"alertType": "' + b"a" * (size - 17) + b'"}'
        for at in range(0, len(whole), 65_536):
            yield whole[at : at + 65_536]

    headers = {**BEARER, "Content-Type": "application/json"}
    async with client(kube(), route(take, method="POST", body=Submitted, status=202)) as http:
        assert (await http.post(SEEN, data=pieces(DEFAULT_BODY_BYTES), headers=headers)).status == 202
        await refusal(await http.post(SEEN, data=pieces(DEFAULT_BODY_BYTES + 1), headers=headers), 413)


async def test_a_body_of_nobody_known_is_a_short_one() -> None:
    def sized(size: int) -> bytes:
        return b'{"alertType": "' + b"a" * (size - 17) + b'"}'

    public = route(take, "/codes", method="POST", body=Submitted, status=202, permission=None, public=True)
    headers = {"Content-Type": "application/json"}
    async with client(kube(), public) as http:
        for size, status in ((PUBLIC_BODY_BYTES - 1, 202), (PUBLIC_BODY_BYTES, 202), (PUBLIC_BODY_BYTES + 1, 413)):
            assert (await http.post("/api/v1/codes", data=sized(size), headers=headers)).status == status


@pytest.mark.parametrize(("levels", "status"), [(JSON_DEPTH - 1, 202), (JSON_DEPTH, 202), (JSON_DEPTH + 1, 400)])
async def test_a_body_nests_to_a_limit(levels: int, status: int) -> None:
    class Deep(Body):
        data: Any

    async def deep(ask: CheckedRequest) -> Told:
        return Told(what_was_asked=type(ask.body(Deep).data).__name__)

    content = b'{"data": ' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"
    headers = {**BEARER, "Content-Type": "application/json"}
    async with client(kube(), route(deep, method="POST", body=Deep, status=202)) as http:
        answer = await http.post(SEEN, data=content, headers=headers)
        assert answer.status == status
        if status == 400:
            assert f"at most {JSON_DEPTH} levels" in await refusal(answer, 400)


async def test_a_body_that_nests_without_end_is_a_sentence_and_no_fault() -> None:
    headers = {**BEARER, "Content-Type": "application/json"}
    async with client(kube(), route(take, method="POST", body=Submitted)) as http:
        said = await refusal(await http.post(SEEN, data=b"[" * 1_000_000, headers=headers), 400)
    assert "levels deep" in said


@pytest.mark.parametrize("coding", ["gzip", "deflate", "identity, gzip"])
async def test_a_packed_body_is_refused_before_anybody_is_asked_who_it_is(coding: str) -> None:
    api = kube()
    headers = {**BEARER, "Content-Type": "application/json", "Content-Encoding": coding}
    async with client(api, route(take, method="POST", body=Submitted)) as http:
        said = await refusal(await http.post(SEEN, data=gzip.compress(b"{}"), headers=headers), 415)
    assert "without Content-Encoding" in said
    assert not api.asked


async def test_nobody_known_is_not_asked_for_the_rest_and_the_connection_ends() -> None:
    async with client(kube(), route(take, method="POST", body=Submitted)) as http:
        answer = await http.post(SEEN, data=b"{}")
        await refusal(answer, 401)
        assert answer.headers["Connection"] == "close"


async def test_a_body_of_another_type_is_refused() -> None:
    async with client(kube(), route(take, method="POST", body=Submitted)) as http:
        said = await refusal(await http.post(SEEN, data={"alertType": "a"}, headers=BEARER), 415)
    assert "Content-Type: application/json" in said


async def test_errors_of_a_body_do_not_repeat_what_was_sent() -> None:
    async with client(kube(), route(take, method="POST", body=Submitted)) as http:
        said = await refusal(await http.post(SEEN, json={"alertType": ["hunter2"]}, headers=BEARER), 400)
    assert "hunter2" not in said


async def test_an_unknown_path_is_404_and_another_method_405_with_those_allowed() -> None:
    async with client(kube(), route()) as http:
        await refusal(await http.get("/api/v1/nothing"), 404)
        answer = await http.delete(SEEN)
        assert answer.headers["Allow"] == "GET"
        await refusal(answer, 405)


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer other"}, {"Authorization": "Basic YW5uOmFubg=="}])
async def test_nobody_learns_nothing_but_that_a_token_is_needed(headers: dict[str, str]) -> None:
    api, metrics = kube(), Metrics()
    async with client(api, route(), metrics=metrics) as http:
        answer = await http.get("/api/v1/namespaces/Wrong/investigations/i1/timeline?x=1", headers=headers)
        assert await refusal(answer, 401) == "a valid bearer token is required"
        assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert not api.asked["SubjectAccessReview"] and not api.asked["Namespace"]
    assert metrics.value(HTTP_REFUSALS, reason="unauthenticated") == 1


async def test_who_may_not_is_refused_before_anything_is_looked_up_and_read() -> None:
    api, metrics = FakeKube({"ann": ANN}, lambda _: False), Metrics()
    async with client(api, route(take, method="POST", body=Submitted), metrics=metrics) as http:
        for namespace in ("shop", "gone"):
            path = f"/api/v1/namespaces/{namespace}/investigations/i1/timeline"
            said = await refusal(await http.post(path, data=b"no json", headers=BEARER), 403)
            assert said == f"ann may not get investigations/timeline of record.tarsy.dev in the namespace {namespace}"
    assert not api.asked["Namespace"]
    assert metrics.value(HTTP_REFUSALS, reason="forbidden") == 2


async def test_a_namespace_that_is_gone_is_404_to_who_may_read_there() -> None:
    async with client(kube(), route()) as http:
        path = "/api/v1/namespaces/gone/investigations/i1/timeline"
        assert await refusal(await http.get(path, headers=BEARER), 404) == "there is no namespace gone"


@pytest.mark.parametrize(
    ("path", "url", "permission", "asked"),
    [
        (ONE, SEEN, READ, {"verb": "get", "group": "record.tarsy.dev", "resource": "investigations",
                           "subresource": "timeline", "namespace": "shop", "name": "i1"}),
        ("/investigations", "/api/v1/investigations", Permission("list", "investigations", group="tarsy.dev"),
         {"verb": "list", "group": "tarsy.dev", "resource": "investigations"}),
        ("/investigations", "/api/v1/investigations?namespace=shop",
         Permission("list", "investigations", group="tarsy.dev"),
         {"verb": "list", "group": "tarsy.dev", "resource": "investigations", "namespace": "shop"}),
        ("/namespaces/{namespace}/investigations/{name}/messages",
         "/api/v1/namespaces/shop/investigations/i1/messages", Permission("list", "chatmessages", group="tarsy.dev"),
         {"verb": "list", "group": "tarsy.dev", "resource": "chatmessages", "namespace": "shop"}),
    ],
)  # fmt: skip
async def test_the_permission_is_asked_where_the_request_says(
    path: str, url: str, permission: Permission, asked: dict[str, str]
) -> None:
    api = kube()
    async with client(api, route(path=path, permission=permission, query=Page)) as http:
        assert (await http.get(url, headers=BEARER)).status == 200
    (review,) = (obj["spec"] for obj in api.reviews if obj["kind"] == "SubjectAccessReview")
    assert review == {"user": "ann", "uid": "1", "groups": ["on-call"], "resourceAttributes": asked}


async def test_a_public_route_asks_nobody() -> None:
    api = kube()
    async with client(api, route(path="/open", permission=None, public=True)) as http:
        assert "system:anonymous" in await (await http.get("/api/v1/open")).text()
    assert not api.asked


async def test_without_a_permission_a_route_still_needs_to_know_who_asks() -> None:
    async with client(kube(), route(path="/mine", permission=None)) as http:
        await refusal(await http.get("/api/v1/mine"), 401)
        assert (await http.get("/api/v1/mine", headers=BEARER)).status == 200


@pytest.mark.parametrize(
    ("error", "status", "sentence"),
    [
        (NotFound("there is no investigation i1"), 404, "there is no investigation i1"),
        (Conflict("a question is open"), 409, "a question is open"),
        (StoreUnavailable("at 10.0.0.1"), 503, "the database is unavailable; try again"),
        (StoreError("relation x"), 500, "internal error; see the log of the server"),
        (AWAY, 503, "the Kubernetes API is unavailable; try again"),
        (ApiError(403, "Forbidden", "operator may not"), 500, "internal error; see the log of the server"),
        (RuntimeError("password=hunter2"), 500, "internal error; see the log of the server"),
        (as_caller_said(ApiError(403, "Forbidden", "ann may not")), 403, "ann may not"),
        (as_caller_said(ApiError(422, "Invalid", "spec.data: too long")), 422, "spec.data: too long"),
        (as_caller_said(AWAY), 503, "the Kubernetes API is unavailable; try again"),
    ],
)
async def test_what_goes_wrong_is_told_without_what_is_not_the_callers(
    error: Exception, status: int, sentence: str
) -> None:
    async def handler(_: CheckedRequest) -> Told:
        raise error

    metrics = Metrics()
    async with client(kube(), route(handler), metrics=metrics) as http:
        answer = await http.get(SEEN, headers=BEARER)
        assert await refusal(answer, status) == sentence
    assert ("Retry-After" in answer.headers) == (status == 503)
    counted = {500: "failed", 503: "unavailable", 403: "forbidden"}.get(status)
    assert counted is None or metrics.value(HTTP_REFUSALS, reason=counted) == 1


async def test_an_answer_that_takes_too_long_is_504_and_its_handler_is_stopped() -> None:
    stopped = asyncio.Event()

    async def handler(_: CheckedRequest) -> Told:
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        raise AssertionError

    async with client(kube(), route(handler), seconds=0.5) as http:
        assert "the request took longer than 0.5 s" in await refusal(await http.get(SEEN, headers=BEARER), 504)
    assert stopped.is_set()


async def test_a_stream_goes_on_past_the_limit_once_it_said_so() -> None:
    async def handler(ask: CheckedRequest) -> web.StreamResponse:
        ask.untimed()
        response = web.StreamResponse()
        await response.prepare(ask.request)
        for _ in range(4):
            await asyncio.sleep(0.6)
            await response.write(b"x")
        return response

    async with client(kube(), route(handler), seconds=2.0) as http:
        assert await (await http.get(SEEN, headers=BEARER)).read() == b"xxxx"


async def test_the_log_says_who_asked_what_and_nothing_that_stands_after_the_question_mark(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.INFO, "tarsy.http.authentication.access"):
        async with client(kube(), route(query=Page)) as http:
            await http.get(f"{SEEN}?alertType=hunter2", headers=BEARER)
    (line,) = (record for record in caplog.records if record.name == "tarsy.http.authentication.access")
    assert line.getMessage() == f"GET {SEEN} 200"
    assert line.user == "ann"  # type: ignore[attr-defined]
    assert not any("hunter2" in json.dumps(vars(record), default=str) for record in caplog.records)


async def test_a_path_cannot_write_lines_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tarsy.http.authentication.access"):
        async with client(kube(), route()) as http:
            await http.get("/api/v1/a%0AGET%20/api/v1/b%20200" + "c" * 2_000)
    (line,) = (record.getMessage() for record in caplog.records if record.name == "tarsy.http.authentication.access")
    assert "\n" not in line
    assert len(line) < 600


async def test_writes_are_made_with_the_callers_own_token() -> None:
    async def handler(ask: CheckedRequest) -> Told:
        ask.as_caller()
        return Told(what_was_asked="")

    api = kube()
    async with client(api, route(handler)) as http:
        assert (await http.get(SEEN, headers=BEARER)).status == 200
    assert api.lent == ["ann"]
