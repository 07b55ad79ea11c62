"""What a provider is found to be when it is asked for its model: usable, or why not, and in whose words."""

import socket
from collections.abc import Callable
from typing import Any

import pytest

from tarsy.llm.probe import PACKAGE_MISSING, probe
from tarsy.llm.probe_requests import Probed
from tarsy.plan.model import ProviderPlan
from wire import server as wire
from wire.server import Answerer, StandIn

Plan = Callable[..., ProviderPlan]
KEY = "sk-0123456789abcdefSECRET"


def says(status: int, body: Any) -> Answerer:
    return wire.fail(status, body)


def error(words: str) -> dict[str, Any]:
    return {"error": {"message": words, "type": "stand_in"}}


MODELS = {"object": "list", "data": [{"id": "other"}, {"id": "gpt-x"}]}


@pytest.mark.parametrize(
    ("kind", "path", "header", "value"),
    [
        ("openai", "/v1/models/gpt-x", "authorization", f"Bearer {KEY}"),
        ("xai", "/v1/models/gpt-x", "authorization", f"Bearer {KEY}"),
        ("anthropic", "/v1/models/gpt-x", "x-api-key", KEY),
        ("google", "/v1beta/models/gpt-x", "x-goog-api-key", KEY),
    ],
)
async def test_each_api_is_asked_for_the_model_its_own_way(
    server: StandIn, plan: Plan, monkeypatch: pytest.MonkeyPatch, kind: str, path: str, header: str, value: str
) -> None:
    monkeypatch.setattr("tarsy.llm.extras.find_spec", lambda _: True)
    server.answers = [says(200, {"id": "gpt-x"})]
    base_url = server.base_url if kind in ("openai", "xai") else server.url
    assert await probe(plan(type=kind, base_url=base_url), KEY) == Probed()
    assert server.paths == [path]
    assert server.headers[0][header] == value


async def test_no_key_is_sent_where_there_is_none(server: StandIn, plan: Plan) -> None:
    server.answers = [says(200, {"id": "gpt-x"})]
    assert await probe(plan(base_url=server.base_url), None) == Probed()
    assert "authorization" not in server.headers[0]


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, "CredentialsRejected"),
        (403, "CredentialsRejected"),
        (404, "ModelNotFound"),
        (500, "ModelServerError"),
        (301, "InvalidRequest"),
    ],
)
async def test_the_maker_is_quoted_on_failure_without_the_key(
    server: StandIn, plan: Plan, status: int, reason: str
) -> None:
    server.answers = [says(status, error(f"no \x1b[31mgood: {KEY} " + "x" * 999))]
    found = await probe(plan(), KEY, addresses={"openai": server.base_url})
    assert found.reason == reason
    assert "no [31mgood: [key]" in found.message
    assert KEY not in found.message
    assert len(found.message) < 500


async def test_another_address_is_not_quoted(server: StandIn, plan: Plan) -> None:
    server.answers = [says(401, error("inner secrets"))]
    found = await probe(plan(base_url=server.base_url), KEY)
    assert found.reason == "CredentialsRejected"
    assert "401" in found.message
    assert "inner" not in found.message


@pytest.mark.parametrize(
    ("listing", "reason", "told"),
    [
        pytest.param(says(200, MODELS), None, "", id="it-lists-the-model"),
        pytest.param(
            says(200, {"data": [{"id": "other"}]}), "ModelNotFound", "does not contain gpt-x", id="it-lists-others"
        ),
        pytest.param(says(404, error("no such path")), None, "not checked", id="no-list"),
        pytest.param(says(200, "<html>hello</html>"), None, "not checked", id="a-web-page"),
        pytest.param(says(200, {"data": []}), None, "not checked", id="an-empty-list"),
        pytest.param(says(401, error("no")), "CredentialsRejected", "401", id="wrong-key"),
    ],
)
async def test_a_compatible_server_is_asked_for_its_list_when_it_has_no_page_for_a_model(
    server: StandIn, plan: Plan, listing: Answerer, reason: str | None, told: str
) -> None:
    server.answers = [says(404, error("no such path")), listing]
    found = await probe(plan(base_url=server.base_url), KEY)
    assert found.reason == reason
    assert told in found.message
    assert server.paths == ["/v1/models/gpt-x", "/v1/models"]


@pytest.mark.parametrize(
    ("status", "words"),
    [(429, "slow down"), (403, "You have insufficient permissions. Missing scopes: api.model.read")],
)
async def test_what_only_keeps_it_from_being_asked_is_a_note(
    server: StandIn, plan: Plan, status: int, words: str
) -> None:
    server.answers = [says(status, error(words))]
    found = await probe(plan(), KEY, addresses={"openai": server.base_url})
    assert found.reason is None
    assert "not checked" in found.message


async def test_a_wrong_key_of_gemini_is_a_400_and_still_told_as_one(server: StandIn, plan: Plan) -> None:
    body = {"error": {"code": 400, "message": "API key not valid. Please pass a valid API key."}}
    server.answers = [says(400, body)]
    found = await probe(plan(type="google"), KEY, addresses={"google": server.url})
    assert found.reason == "CredentialsRejected"


async def test_a_server_that_says_nothing_is_unreachable_in_time(server: StandIn, plan: Plan) -> None:
    server.answers = [wire.hang]
    found = await probe(plan(base_url=server.base_url), KEY, seconds=0.1)
    assert found.reason == "ModelUnreachable"
    assert found.message.startswith("no response from the server within 0.1 s (check spec.baseURL")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("refused", "the server refuses the connection (check spec.baseURL: host, port, http or https"),
        ("nowhere", "the server's name cannot be resolved: host no-such-host.invalid is not found: "),
        ("tls", "the server does not speak TLS on that port (check spec.baseURL"),
    ],
)
async def test_a_base_url_that_leads_nowhere_is_named(server: StandIn, plan: Plan, kind: str, words: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    urls = {
        "refused": f"http://127.0.0.1:{port}/v1",
        "nowhere": "http://no-such-host.invalid/v1",
        "tls": server.base_url.replace("http:", "https:"),
    }
    found = await probe(plan(base_url=urls[kind]), KEY)
    assert found.reason == "ModelUnreachable" and found.message.startswith(words), found.message


async def test_where_no_base_url_is_set_none_is_to_be_checked(server: StandIn, plan: Plan) -> None:
    nowhere = {"openai": "http://no-such-host.invalid/v1"}
    found = await probe(plan(), KEY, addresses=nowhere)
    assert found.reason == "ModelUnreachable" and "spec.baseURL" not in found.message
    server.answers = [says(404, {"error": {"message": "no such model"}})]
    found = await probe(plan(), KEY, addresses={"openai": server.base_url})
    assert found.reason == "ModelNotFound" and "spec.baseURL" not in found.message
    assert "check spec.model" in found.message


@pytest.mark.parametrize(
    ("base_url", "reason"),
    [
        ("http://127.0.0.1:9/v1", "ModelUnreachable"),
        ("http://user:pw@127.0.0.1:9/v1", "InvalidRequest"),
        ("ftp://127.0.0.1/v1", "InvalidRequest"),
    ],
)
async def test_an_address_that_leads_nowhere_is_told(plan: Plan, base_url: str, reason: str) -> None:
    found = await probe(plan(base_url=base_url), KEY)
    assert found.reason == reason
    assert "pw" not in found.message


async def test_a_missing_package_is_told_with_the_command_that_installs_it(
    plan: Plan, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarsy.llm.extras.find_spec", lambda _: None)
    found = await probe(plan(type="anthropic", backend="langchain"), KEY)
    assert found.reason == PACKAGE_MISSING
    assert "pip install 'tarsy-operator[anthropic]'" in found.message
