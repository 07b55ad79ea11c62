"""Tests the common parts of all HTTP transports: tokens, certificates, and unavailable values."""

from pathlib import Path

import pytest

from embedded_kubeapi.pki import Authority
from integration.mcp.servers import SECRET, http, served
from tarsy.mcp.toolbox import McpToolbox, McpToolboxes
from tarsy.plan.model import ConfigMapKey, SecretKey, Value
from tarsy.record.messages import ToolOutcome

TOKEN = Value(name="bearerTokenSecretRef", secret=SecretKey(namespace="n", name="s", key="k"))
CA = Value(name="tls.caFrom", config_map=ConfigMapKey(namespace="n", name="authorities", key="ca.crt"))


async def echo(box: McpToolbox) -> ToolOutcome:
    return await box.call("web.echo", '{"text": "a"}', timeout=60, idempotency_key="key-1")


@pytest.fixture
def authority() -> Authority:
    return Authority("tools")


@pytest.fixture
def certificate(tmp_path: Path, authority: Authority) -> tuple[Path, Path]:
    pair = authority.issue("tools", names=("localhost",), addresses=("127.0.0.1",))
    files = tmp_path / "tls.crt", tmp_path / "tls.key"
    files[0].write_bytes(pair.certificate)
    files[1].write_bytes(pair.key)
    return files


def resolving(**values: str) -> McpToolboxes:
    async def resolve(value: Value) -> str:
        return values[value.name] if value.value is None else value.value

    return McpToolboxes(resolve, mask=str)


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_bearer_token_goes_with_every_request_and_comes_back_in_no_answer(
    toolboxes: McpToolboxes, kind: str
) -> None:
    async with served(sse=kind == "sse") as web:
        web.accepted = f"Bearer {SECRET}"
        async with toolboxes.open([http(web.url, transport={"type": kind, "bearer_token": TOKEN})]) as box:
            assert await echo(box) == ToolOutcome("a")
            told = await box.call("web.echo", f'{{"text": "{SECRET}"}}', timeout=60, idempotency_key="k")
    assert told.content == "[redacted]"


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_wrong_token_is_said_without_the_token(kind: str) -> None:
    async with served(sse=kind == "sse") as web:
        web.accepted = "Bearer another"
        server = http(web.url, transport={"type": kind, "bearer_token": TOKEN})
        async with resolving(bearerTokenSecretRef=SECRET).open([server]) as box:
            told = f"HTTP 401 Unauthorized from {web.url} (check the headers and Secrets"
            assert told in box.unavailable["web"]
            assert SECRET not in box.unavailable["web"]


@pytest.mark.parametrize("token", ["two\r\nX-Evil: 1", "ein Schlüssel", "two words"])
async def test_a_token_that_no_header_can_carry_is_refused_before_anything_is_sent(token: str) -> None:
    async with served() as web:
        async with resolving(bearerTokenSecretRef=token).open(
            [http(web.url, transport={"bearer_token": TOKEN})]
        ) as box:
            assert "a header cannot contain" in box.unavailable["web"] and token not in box.unavailable["web"]
        assert web.methods == []


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_server_is_verified_by_the_declared_authority(
    kind: str, authority: Authority, certificate: tuple[Path, Path]
) -> None:
    known = resolving(**{"tls.caFrom": authority.certificate.decode()})
    async with served(sse=kind == "sse", tls=certificate) as web:
        async with known.open([http(web.url, transport={"type": kind, "ca": CA})]) as box:
            assert box.unavailable == {}
            assert await echo(box) == ToolOutcome("a")


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_a_server_with_a_certificate_of_another_authority_is_not_spoken_to(
    kind: str, certificate: tuple[Path, Path]
) -> None:
    other = resolving(**{"tls.caFrom": Authority("other").certificate.decode()})
    async with served(sse=kind == "sse", tls=certificate) as web:
        servers = [
            http(web.url, transport={"type": kind, "ca": CA}),
            http(web.url, transport={"type": kind}, name="by-the-system"),
        ]
        async with other.open(servers) as box:
            assert set(box.unavailable) == {"web", "by-the-system"}
            assert "certificate" in box.unavailable["web"].lower()
        assert web.methods == []


async def test_a_certificate_for_another_name_is_not_accepted(tmp_path: Path, authority: Authority) -> None:
    pair = authority.issue("tools", names=("elsewhere.example",))
    files = tmp_path / "tls.crt", tmp_path / "tls.key"
    files[0].write_bytes(pair.certificate)
    files[1].write_bytes(pair.key)
    async with served(tls=files) as web:
        known = resolving(**{"tls.caFrom": authority.certificate.decode()})
        async with known.open([http(web.url, transport={"ca": CA})]) as box:
            assert "certificate" in box.unavailable["web"].lower()


@pytest.mark.parametrize(
    "pem", ["", "no certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
async def test_what_holds_no_certificate_is_said(pem: str) -> None:
    server = http("https://127.0.0.1:9/mcp", transport={"ca": CA})
    async with resolving(**{"tls.caFrom": pem}).open([server]) as box:
        assert "tls.caFrom contains no usable PEM certificates" in box.unavailable["web"]
