"""Gemini on Vertex AI: where a request goes, and what lets it in. The SDKs are real, Google's servers stand in."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from extras import needs
from tarsy.llm.google_native.access import GoogleAccess
from tarsy.llm.google_native.addresses import address, makers
from tarsy.llm.probe import probe
from tarsy.llm.probe_requests import Probed
from tarsy.llm.protocol import Chunk, GenerateRequest, LLMClient, ModelError, ModelErrorCode, TextChunk
from tarsy.llm.registry import build_client
from tarsy.plan.model import ProviderPlan
from tarsy.record.messages import Message, Role, ToolDefinition
from wire import gemini
from wire import server as wire
from wire.server import StandIn, standing_in

pytestmark = [needs("google.genai"), needs("langchain_google_genai")]
Make = Callable[..., ProviderPlan]
PLACE = "/v1beta1/projects/shop/locations/europe-west1/publishers/google/models/gemini-3-pro"
QUESTION = [Message(Role.USER, "why?")]
GET = ToolDefinition("kubernetes.get", "Gets.", {"type": "object", "properties": {}})


@pytest.fixture
def vertex(plan: Make, server: StandIn) -> Make:
    def make(*, own: bool = False, location: str = "europe-west1", **fields: Any) -> ProviderPlan:
        place = {"project": "shop", "location": location, "own_identity": own}
        settings = {"type": "vertexai", "model": "gemini-3-pro", "backend": "google-native", "base_url": server.url}
        return plan(**{**settings, "vertexai": place, **fields})

    return make


@pytest.fixture(scope="module")
def account() -> str:
    """A service account's key file, whose token_uri nobody may be sent to."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
    file = {
        "type": "service_account",
        "project_id": "shop",
        "private_key_id": "k1",
        "private_key": pem,
        "client_email": "tarsy@shop.iam.gserviceaccount.com",
        "token_uri": "http://127.0.0.1:1/token",
    }
    return json.dumps(file, indent=2) + "\n"


@pytest.fixture
async def metadata() -> AsyncIterator[StandIn]:
    """The metadata server of a Google cluster's node."""
    async with standing_in() as standin:
        standin.answers = [wire.fail(200, {"access_token": "of-the-pod", "expires_in": 3599, "token_type": "Bearer"})]
        yield standin


async def collect(client: LLMClient, request: GenerateRequest | None = None) -> list[Chunk]:
    async with asyncio.timeout(60), aclosing(client.generate(request or GenerateRequest(QUESTION))) as chunks:
        return [chunk async for chunk in chunks]


def claims(token: str) -> dict[str, Any]:
    """What a token says, its signature unread."""
    from google.auth import jwt

    decode: Any = jwt.decode
    found: dict[str, Any] = decode(token, verify=False)
    return found


@pytest.mark.parametrize("backend", ["google-native", "langchain"])
async def test_a_service_accounts_key_signs_what_lets_requests_in(
    server: StandIn, vertex: Make, account: str, backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "of-the-environment")
    monkeypatch.setenv("GOOGLE_API_KEY", "of-the-environment")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", "/nowhere")
    client = build_client(vertex(backend=backend), account)
    server.answers = [gemini.stream(gemini.last(gemini.text("ok")))]
    assert TextChunk("ok") in await collect(client)
    await collect(client)
    await client.aclose()
    assert server.paths[0] == f"{PLACE}:streamGenerateContent?alt=sse"
    scheme, _, token = server.headers[0]["authorization"].partition(" ")
    told = claims(token)
    assert (scheme, told["iss"], told["sub"]) == ("Bearer", told["sub"], "tarsy@shop.iam.gserviceaccount.com")
    assert told["scope"] == "https://www.googleapis.com/auth/cloud-platform"
    assert server.headers[1]["authorization"] == server.headers[0]["authorization"]
    assert "x-goog-api-key" not in server.headers[0]


async def test_a_token_in_the_servers_words_is_not_told(server: StandIn, vertex: Make, account: str) -> None:
    client = build_client(vertex(), account)
    server.answers = [gemini.stream(gemini.last(gemini.text("ok")))]
    await collect(client)
    token = server.headers[0]["authorization"].removeprefix("Bearer ")
    server.answers = [gemini.fail(401, f"who is {token}?", {})]
    with pytest.raises(ModelError) as raised:
        await collect(client)
    await client.aclose()
    assert raised.value.code is ModelErrorCode.CREDENTIALS
    assert token not in str(raised.value)


@pytest.mark.parametrize(
    "key",
    [
        '{"type": "external_account", "credential_source": {"file": "/etc/passwd"}}',
        '{"type": "service_account", "client_email": "a@b", "private_key": "none"}',
        '{"type": "service_account"}',
        "{no json",
    ],
)
async def test_what_is_no_service_accounts_key_is_refused_without_quoting_it(vertex: Make, key: str) -> None:
    with pytest.raises(ModelError) as raised:
        await GoogleAccess(vertex(), key).headers()
    assert (raised.value.code, raised.value.retryable) == (ModelErrorCode.CREDENTIALS_MISSING, False)
    assert "passwd" not in str(raised.value) and "private" not in str(raised.value)


async def test_an_api_key_is_sent_as_one(vertex: Make) -> None:
    assert await GoogleAccess(vertex(), "AIza-key\n").headers() == {"x-goog-api-key": "AIza-key"}
    assert await GoogleAccess(vertex(), None).headers() == {}


async def test_the_pods_identity_is_asked_for_once_until_its_token_is_old(vertex: Make, metadata: StandIn) -> None:
    now = [0.0]
    access = GoogleAccess(vertex(own=True), None, lent_to=["team"], metadata=metadata.url, clock=lambda: now[0])
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(access.headers()) for _ in range(5)]
    assert {task.result()["authorization"] for task in asked} == {"Bearer of-the-pod"}
    assert metadata.paths == ["/computeMetadata/v1/instance/service-accounts/default/token"]
    assert metadata.headers[0]["metadata-flavor"] == "Google"
    now[0] = 3400.0
    await access.headers()
    assert len(metadata.paths) == 2


async def test_the_pods_identity_is_lent_to_named_namespaces_only(vertex: Make, metadata: StandIn) -> None:
    with pytest.raises(ModelError) as raised:
        await GoogleAccess(vertex(own=True), None, lent_to=["other"], metadata=metadata.url).headers()
    assert "--workload-identity-for team" in str(raised.value)
    assert metadata.paths == []


@pytest.mark.parametrize(
    ("status", "body", "again"),
    [(404, "no", False), (503, "busy", True), (200, "no JSON", False), (200, {"expires_in": 1}, False)],
)
async def test_a_pod_without_identity_is_told_apart(
    vertex: Make, metadata: StandIn, status: int, body: Any, again: bool
) -> None:
    metadata.answers = [wire.fail(status, body)]
    with pytest.raises(ModelError) as raised:
        await GoogleAccess(vertex(own=True), None, lent_to=["team"], metadata=metadata.url).headers()
    assert (raised.value.code, raised.value.retryable) == (ModelErrorCode.CREDENTIALS_MISSING, again)


async def test_where_there_is_no_metadata_server_a_secret_is_the_remedy(vertex: Make, unused_tcp_port: int) -> None:
    nowhere = f"http://127.0.0.1:{unused_tcp_port}"
    with pytest.raises(ModelError) as raised:
        await GoogleAccess(vertex(own=True), None, lent_to=["team"], metadata=nowhere).headers()
    assert raised.value.retryable and "name a Secret" in str(raised.value)


@pytest.mark.parametrize(
    ("location", "host"),
    [
        ("global", "aiplatform.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
        ("europe-west1", "europe-west1-aiplatform.googleapis.com"),
    ],
)
def test_each_location_has_its_address(vertex: Make, location: str, host: str) -> None:
    provider = vertex(location=location, base_url=None)
    assert address(provider, makers(provider)) == (f"https://{host}", "v1beta1")


async def test_native_tools_are_off_beside_function_tools_which_vertex_cannot_combine(
    server: StandIn, vertex: Make
) -> None:
    client = build_client(vertex(), "key")
    server.answers = [gemini.stream(gemini.last(gemini.text("ok")))]
    await collect(client, GenerateRequest(QUESTION, [GET], native_tools=("google_search",)))
    await client.aclose()
    (tools,) = server.requests[0]["tools"]
    assert list(tools) == ["functionDeclarations"]


async def test_a_provider_is_probed_by_counting_tokens_as_its_account(
    server: StandIn, vertex: Make, account: str
) -> None:
    server.answers = [wire.fail(200, {"totalTokens": 1})]
    assert await probe(vertex(), account) == Probed()
    assert server.paths == [f"{PLACE}:countTokens"]
    assert server.headers[0]["authorization"].startswith("Bearer ey")
    server.answers = [gemini.fail(403, "inner words", {})]
    found = await probe(vertex(), account)
    assert found.reason == "CredentialsRejected" and "inner" not in found.message
    server.answers = [wire.fail(404, "no such page")]
    assert (await probe(vertex(), account)).reason is None
    found = await probe(vertex(own=True, base_url=None), None)
    assert found.reason == "CredentialsMissing" and "--workload-identity-for team" in found.message
