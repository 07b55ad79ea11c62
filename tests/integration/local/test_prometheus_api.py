"""Tests the reader of Prometheus over real HTTP: limits of a response, refusals, credentials, what a model is told."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from urllib.parse import parse_qs

import pytest
from aiohttp import web
from mcp.client import Client

from tarsy.prometheus_tools.api import MOST_BYTES, PrometheusError, PrometheusReader, ResponseTooLarge
from tarsy.prometheus_tools.tools import REMEDY, prometheus_server

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
FRAME = len('{"status":"success","data":""}')
WORK = "query"


class FakePrometheus:
    """Answers as the test says, and keeps the requests."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[web.Request] = []
        self.answer: Handler = said({"status": "success", "data": "well"})

    async def take(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        return await self.answer(request)

    def reader(self, **variables: str) -> PrometheusReader:
        return PrometheusReader({"PROMETHEUS_URL": self.url, **variables})


def said(body: object, status: int = 200, headers: dict[str, str] | None = None) -> Handler:
    """A handler that sends JSON, or a text or bytes as they are."""
    raw = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()

    async def answer(_: web.Request) -> web.Response:
        return web.Response(body=raw, status=status, headers=headers)

    return answer


@pytest.fixture
async def prometheus() -> AsyncIterator[FakePrometheus]:
    fake = FakePrometheus()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", fake.take)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    fake.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    yield fake
    await runner.cleanup()


async def refusal(reader: PrometheusReader) -> str:
    """What is said about a request that fails."""
    async with reader:
        with pytest.raises(PrometheusError) as raised:
            await reader.get("query", [("query", "up")], doing=WORK)
    return str(raised.value)


@pytest.mark.parametrize("length", [MOST_BYTES - 1, MOST_BYTES])
async def test_a_response_of_the_greatest_size_is_read(prometheus: FakePrometheus, length: int) -> None:
    prometheus.answer = said('{"status":"success","data":"' + "x" * (length - FRAME) + '"}')
    async with prometheus.reader() as reader:
        data, warnings = await reader.get("query", [], doing=WORK)
    assert (len(data), warnings) == (length - FRAME, [])


@pytest.mark.parametrize("packed", [False, True])
async def test_a_larger_response_is_refused_also_if_it_is_small_on_the_wire(
    prometheus: FakePrometheus, packed: bool
) -> None:
    body = ('{"status":"success","data":"' + "x" * (MOST_BYTES + 1 - FRAME) + '"}').encode()
    prometheus.answer = said(gzip.compress(body), headers={"Content-Encoding": "gzip"}) if packed else said(body)
    async with prometheus.reader() as reader:
        with pytest.raises(ResponseTooLarge, match="cannot query: the result is larger than 8 MiB"):
            await reader.get("query", [], doing=WORK)


async def test_a_response_without_an_end_is_not_read_on(prometheus: FakePrometheus) -> None:
    gone = asyncio.Event()

    async def endless(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b"x" * 2**20)
        finally:
            gone.set()

    prometheus.answer = endless
    async with prometheus.reader() as reader:
        with pytest.raises(ResponseTooLarge):
            await reader.get("query", [], doing=WORK)
        await asyncio.wait_for(gone.wait(), 30)


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (400, {"status": "error", "error": "parse error: unexpected end"}, "says: parse error: unexpected end"),
        (422, {"status": "error", "error": "x" * 501}, f"says: {'x' * 500}"),
        (503, {"status": "error", "error": "query timed out in expression evaluation"}, "says: query timed out"),
        (200, {"status": "error", "error": "no"}, "says: no"),
        (200, {"status": "success"}, "status 200, and no answer in the form of Prometheus"),
        (200, "<html>", "status 200, and no answer in the form of Prometheus"),
        (200, [1], "status 200, and no answer in the form of Prometheus"),
        (502, "<html>bad gateway</html>", "status 502, and no answer in the form of Prometheus"),
        (401, {"error": "who?"}, "it does not accept this tool server's credentials (401)"),
        (403, "", "it does not accept this tool server's credentials (403)"),
    ],
)
async def test_a_refusal_is_a_sentence(prometheus: FakePrometheus, status: int, body: object, told: str) -> None:
    prometheus.answer = said(body, status)
    text = await refusal(prometheus.reader())
    assert text.startswith("cannot query: Prometheus says: ")
    assert told in text and len(text) < 600


async def test_a_redirect_is_not_followed(prometheus: FakePrometheus) -> None:
    prometheus.answer = said("", 302, {"Location": f"{prometheus.url}/elsewhere"})
    assert "status 302" in await refusal(prometheus.reader(PROMETHEUS_TENANT="shop"))
    assert len(prometheus.requests) == 1


async def test_one_that_is_not_reached_is_a_sentence(prometheus: FakePrometheus) -> None:
    async def cut(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    prometheus.answer = cut
    assert "Prometheus was not reached (" in await refusal(prometheus.reader())
    assert "Prometheus was not reached (ConnectError)" in await refusal(
        PrometheusReader({"PROMETHEUS_URL": "http://127.0.0.1:1"})
    )


async def test_one_that_says_nothing_is_told_from_one_that_is_not_there(prometheus: FakePrometheus) -> None:
    async def silent(_: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    prometheus.answer = silent
    reader = PrometheusReader({"PROMETHEUS_URL": prometheus.url}, seconds=0.2)
    assert await refusal(reader) == "cannot query: Prometheus did not answer within 0.2 s; ask for less"


@pytest.mark.parametrize("url", ["", "prometheus:9090", "file:///etc/passwd"])
async def test_without_a_url_the_variable_is_named(url: str) -> None:
    assert "PROMETHEUS_URL is not set to an http or https URL" in await refusal(
        PrometheusReader({"PROMETHEUS_URL": url})
    )


async def test_who_asks_is_said_with_the_token_of_now(prometheus: FakePrometheus, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("first\n")
    async with prometheus.reader(PROMETHEUS_TOKEN_FILE=str(token), PROMETHEUS_TENANT="shop") as reader:
        await reader.get("query", [("query", "up")], doing=WORK)
        token.write_text("second")
        await reader.get("query", [("query", "up")], doing=WORK)
        token.unlink()
        with pytest.raises(PrometheusError, match=r"the token file .*/token cannot be read: No such file"):
            await reader.get("query", [("query", "up")], doing=WORK)
    assert [one.headers["Authorization"] for one in prometheus.requests] == ["Bearer first", "Bearer second"]
    assert {one.headers["X-Scope-OrgID"] for one in prometheus.requests} == {"shop"}
    assert parse_qs(prometheus.requests[0].query_string) == {"query": ["up"]}


async def test_a_ca_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("no certificate")
    variables = {"PROMETHEUS_URL": "https://127.0.0.1:1", "PROMETHEUS_CA_FILE": str(tmp_path / "ca")}
    assert f"PROMETHEUS_CA_FILE {tmp_path / 'ca'} cannot be used" in await refusal(PrometheusReader(variables))


async def test_warnings_come_with_the_data_and_are_short(prometheus: FakePrometheus) -> None:
    prometheus.answer = said({"status": "success", "data": [], "warnings": ["partial", "x" * 501]})
    async with prometheus.reader() as reader:
        assert await reader.get("query", [], doing=WORK) == ([], ["partial", "x" * 500])


async def told(prometheus: FakePrometheus, tool: str, **arguments: str) -> str:
    """The text of a call that fails."""
    async with Client(prometheus_server(prometheus.reader())) as client:
        result = await client.call_tool(tool, arguments)
    assert result.is_error, result
    return str(result.content[0].text)  # type: ignore[union-attr]


@pytest.mark.parametrize("counted", [True, False])
async def test_a_model_is_told_how_many_series_were_too_many_and_what_to_do(
    prometheus: FakePrometheus, counted: bool
) -> None:
    many = said(b"x" * (MOST_BYTES + 1))
    vector = {"resultType": "vector", "result": [{"metric": {}, "value": [1, "100000"]}]}
    count = said({"status": "success", "data": vector}) if counted else said("", 503)

    async def answer(request: web.Request) -> web.StreamResponse:
        return await (count if request.query["query"].startswith("count(") else many)(request)

    prometheus.answer = answer
    for tool, more in (("query", {}), ("query_range", {"start": "-5m"})):
        text = await told(prometheus, tool, query="up", **more)
        assert f"larger than 8 MiB{' (100000 series)' if counted else ''}: {REMEDY}" in text
    assert "larger than 8 MiB: narrow by match" in await told_of_lists(prometheus, many)


async def told_of_lists(prometheus: FakePrometheus, answer: Handler) -> str:
    prometheus.answer = answer
    assert "larger than 8 MiB: give more matchers" in await told(prometheus, "list_series", match="up")
    return await told(prometheus, "list_labels", label="pod")


@pytest.mark.parametrize("data", [{"resultType": "streams", "result": []}, {}, 7, {"resultType": "vector"}])
async def test_an_answer_of_another_form_is_a_sentence(prometheus: FakePrometheus, data: object) -> None:
    prometheus.answer = said({"status": "success", "data": data})
    assert "the answer of Prometheus is not understood: " in await told(prometheus, "query", query="up")
