"""Where the clients of providers connect to, whatever API they speak and whatever names are found at."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any

import pytest

from integration.llm.apis import APIS, Api
from integration.llm.conftest import KEY
from tarsy.llm.probe import probe
from tarsy.llm.protocol import GenerateRequest, ModelError, ModelErrorCode, TextChunk
from tarsy.llm.registry import build_client
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import ProviderPlan
from tarsy.record.messages import Message, Role
from wire.server import Said, StandIn

Plans = Callable[..., ProviderPlan]
ASK = GenerateRequest([Message(Role.USER, "why?")], execution="e1")
CLOSED = Destinations(in_pod=True)
OPENED = Destinations.of(["127.0.0.1"], in_pod=True)
pytestmark = [pytest.mark.parametrize("api", APIS, ids=str), pytest.mark.sweep("other providers")]


@pytest.fixture(autouse=True)
def package(api: Api) -> None:
    """Skips a provider whose extra is not installed here."""
    if api.package:
        pytest.importorskip(api.package)


class Dns:
    """Stands in for the system's resolver: `tools.example` is found at the next of its addresses, the last for ever."""

    def __init__(self, *addresses: str) -> None:
        self.addresses = list(addresses)
        self.asked: list[str] = []

    def __call__(self, host: str, port: int, *_: Any, **__: Any) -> list[tuple[Any, ...]]:
        self.asked.append(host)
        address = self.addresses.pop(0) if len(self.addresses) > 1 else self.addresses[0]
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "tools.example", (address, port))]


async def ask(api: Api, plan: Plans, server: StandIn, destinations: Destinations, times: int = 1) -> str:
    """What the provider at tools.example says."""
    base_url = server.base_url.replace("127.0.0.1", "tools.example")
    client = build_client(
        plan(type=api.type, backend=api.backend, base_url=base_url, **api.fields), KEY, destinations=destinations
    )
    text = ""
    try:
        async with asyncio.timeout(60):
            for _ in range(times):
                async for chunk in client.generate(ASK):
                    text += chunk.text if isinstance(chunk, TextChunk) else ""
    finally:
        await client.aclose()
    return text


async def test_a_name_is_asked_at_its_judged_address_and_only_for_new_connections(
    api: Api, server: StandIn, plan: Plans, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers = [api.said(Said(("ok",)))]
    monkeypatch.setattr(socket, "getaddrinfo", dns := Dns("127.0.0.1", "169.254.169.254"))
    assert await ask(api, plan, server, OPENED, times=3) == "ok" * 3
    assert dns.asked == ["tools.example."]
    assert all(headers["host"].startswith("tools.example:") for headers in server.headers)


async def test_a_name_at_an_address_that_is_not_allowed_is_not_asked(
    api: Api, server: StandIn, plan: Plans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", Dns("127.0.0.1"))
    with pytest.raises(ModelError) as raised:
        await ask(api, plan, server, CLOSED)
    assert (raised.value.code, raised.value.retryable) == (ModelErrorCode.INVALID_REQUEST, False)
    said = "spec.baseURL is not allowed: host tools.example is the operator's own pod; ask the administrator"
    assert said in str(raised.value) and "house-model" in str(raised.value)
    assert server.bodies == []


async def test_a_name_that_rebinds_between_two_calls_is_refused(
    api: Api, server: StandIn, plan: Plans, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.answers = [api.said(Said(("ok",)))]
    monkeypatch.setattr(socket, "getaddrinfo", Dns("127.0.0.1", "10.0.0.1"))
    assert await ask(api, plan, server, OPENED) == "ok"
    with pytest.raises(ModelError, match="has an address that is not public"):
        await ask(api, plan, server, OPENED)
    assert len(server.bodies) == 1


async def test_a_name_that_is_not_found_is_said(
    api: Api, server: StandIn, plan: Plans, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    with pytest.raises(ModelError, match=r"host tools\.example is not found") as raised:
        await ask(api, plan, server, OPENED)
    assert (raised.value.code, raised.value.retryable) == (ModelErrorCode.CONNECTION, True)


async def test_the_probe_of_a_provider_is_judged_alike(
    api: Api, server: StandIn, plan: Plans, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", Dns("127.0.0.1"))
    base_url = server.base_url.replace("127.0.0.1", "tools.example")
    asked = plan(type=api.type, backend=api.backend, base_url=base_url, **api.fields)
    found = await probe(asked, KEY, destinations=CLOSED)
    assert found.reason == "InvalidRequest" and "spec.baseURL is not allowed: host tools.example" in found.message
    metadata = asked.model_copy(update={"base_url": "http://\uff11\uff16\uff19.254.169.254/"})
    assert (await probe(metadata, KEY, destinations=CLOSED)).reason == "InvalidRequest"
    assert server.bodies == [] and server.paths == []
