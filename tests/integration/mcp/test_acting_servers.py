"""Tests servers that act as the ServiceAccount of an agent: they receive tokens, and never return them."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from integration.mcp.servers import http, resolve, served, stdio
from tarsy.mcp.errors import OpenFailed
from tarsy.mcp.service_account_auth import NO_ACCOUNT, NO_TOKENS, AccountToken, ClusterAddress
from tarsy.mcp.toolbox import McpToolbox, McpToolboxes
from tarsy.plan.model import ServerPlan
from tarsy.record.messages import ToolOutcome


@dataclass
class Tokens:
    """Tokens that name whom and what they are for, and are new each time where `turning`."""

    namespace: str = "payments"
    refused: str = ""
    turning: bool = False
    asked: list[str] = field(default_factory=list)

    async def for_cluster(self, account: str) -> AccountToken:
        return self._token(f"{account}-for-the-cluster")

    async def for_server(self, account: str, audience: str) -> AccountToken:
        return self._token(f"{account}-for-{audience}")

    def _token(self, text: str) -> AccountToken:
        if self.refused:
            raise OpenFailed(self.refused)
        self.asked.append(text)
        return AccountToken(f"{len(self.asked):03}-{text}" if self.turning else text, 3600)


async def cluster() -> ClusterAddress:
    return ClusterAddress("https://api.example:6443")


def acting(tokens: Tokens) -> McpToolboxes:
    return McpToolboxes(resolve, mask=str, allow_stdio=True, cluster=cluster).of(tokens)


def with_kubeconfig(account: str | None) -> ServerPlan:
    server = stdio(account=account)
    return server.model_copy(update={"transport": server.transport.model_copy(update={"kubeconfig": True})})


async def call(box: McpToolbox, name: str, **arguments: str) -> ToolOutcome:
    return await box.call(name, json.dumps(arguments), timeout=30, idempotency_key="key-1")


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_each_agent_reaches_a_server_by_urls_with_a_token_for_it(kind: str) -> None:
    tokens = Tokens()
    async with served(sse=kind == "sse") as web:
        for account in ("viewer", "other"):
            web.accepted = f"Bearer {account}-for-tools"
            server = http(web.url, transport={"type": kind, "token_audience": "tools"}, account=account)
            async with acting(tokens).open([server]) as box:
                assert await call(box, "web.echo", text="a") == ToolOutcome("a")
                assert (await call(box, "web.echo", text=f"{account}-for-tools")).content == "[redacted]"
    assert set(tokens.asked) == {"viewer-for-tools", "other-for-tools"}


async def test_requests_are_signed_anew_and_every_token_is_taken_out_of_answers() -> None:
    async with served() as web:
        server = http(web.url, transport={"token_audience": "tools"}, account="viewer")
        async with acting(Tokens(turning=True)).open([server]) as box:
            await call(box, "web.echo", text="a")
            sent = [headers["authorization"].removeprefix("Bearer ") for headers in web.headers]
            assert len(set(sent)) > 1
            for token in sent:
                assert (await call(box, "web.echo", text=token)).content == "[redacted]"


@pytest.mark.parametrize("kind", ["http", "sse"])
async def test_nothing_is_sent_for_an_agent_without_an_account(kind: str) -> None:
    async with served(sse=kind == "sse") as web:
        server = http(web.url, transport={"type": kind, "token_audience": "tools"})
        async with acting(Tokens()).open([server]) as box:
            assert box.unavailable == {"web": NO_ACCOUNT}
        async with McpToolboxes(resolve, mask=str).open([server]) as box:
            assert box.unavailable == {"web": NO_TOKENS}
        assert web.methods == []


async def test_why_there_is_no_token_is_said_of_the_server() -> None:
    why = "TARSy may not request tokens of ServiceAccount payments/viewer"
    async with served() as web:
        servers = [http(web.url, transport={"token_audience": "tools"}, account="viewer"), with_kubeconfig("viewer")]
        async with acting(Tokens(refused=why)).open(servers) as box:
            assert box.unavailable == {"web": why, "small": why}
        assert web.methods == []


async def test_child_gets_a_kubeconfig_as_the_account_and_it_is_gone_afterwards() -> None:
    async with acting(Tokens()).open([with_kubeconfig("viewer")]) as box:
        environment = json.loads((await call(box, "small.environment")).content)
        assert set(environment) == {"PATH", "HOME", "KUBECONFIG"}
        folder = Path(environment["HOME"])
        said = (await call(box, "small.echo", text=read(folder / "token"))).content
        assert (read(folder / "token"), said) == ("viewer-for-the-cluster", "[redacted]")
        assert "viewer-for-the-cluster" not in read(Path(environment["KUBECONFIG"]))
    assert not exists(folder)


async def test_child_of_an_agent_without_an_account_is_not_started() -> None:
    async with acting(Tokens()).open([with_kubeconfig(None)]) as box:
        assert box.unavailable == {"small": NO_ACCOUNT}


async def test_server_that_asks_for_nothing_gets_nothing_of_the_account() -> None:
    tokens = Tokens()
    async with served() as web, acting(tokens).open([stdio(account="viewer"), http(web.url, account="viewer")]) as box:
        assert "KUBECONFIG" not in (await call(box, "small.environment")).content
        await call(box, "web.echo", text="a")
        assert all("authorization" not in headers for headers in web.headers)
    assert tokens.asked == []


def read(path: Path) -> str:
    return path.read_text("utf-8")


def exists(path: Path) -> bool:
    return path.exists()
