"""Tests the ServiceAccount credentials of child processes and requests, and their renewal."""

import base64
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from e2e.waiting import until
from tarsy.mcp.errors import OpenFailed
from tarsy.mcp.service_account_auth import NO_ACCOUNT, AccountToken, BearerOf, ClusterAddress, kubeconfig

CLUSTER = ClusterAddress("https://api.example:6443", b"-----BEGIN CERTIFICATE-----")


class Numbered:
    """Gives `token-1`, `token-2` ..., or fails."""

    namespace = "payments"

    def __init__(self, renew_seconds: float = 3600.0) -> None:
        self.count = 0
        self.renew_seconds = renew_seconds
        self.failing = False
        self.failures = 0

    async def for_cluster(self, account: str) -> AccountToken:
        if self.failing:
            self.failures += 1
            raise OpenFailed("none today")
        self.count += 1
        return AccountToken(f"{account}-{self.count}", self.renew_seconds)

    async def for_server(self, account: str, audience: str) -> AccountToken:
        return await self.for_cluster(f"{account} for {audience}")


def left_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def read(path: Path) -> Any:
    return json.loads(path.read_text())


async def test_kubeconfig_names_the_file_of_the_token_and_holds_none(tmp_path: Path) -> None:
    given: list[str] = []
    async with kubeconfig(tmp_path, CLUSTER, Numbered(), "agent", given.append) as path:
        config = read(path)
        assert config["clusters"][0]["cluster"] == {
            "server": CLUSTER.server,
            "certificate-authority-data": base64.b64encode(CLUSTER.ca or b"").decode(),
        }
        (user,), (context,) = config["users"], config["contexts"]
        assert set(user["user"]) == {"tokenFile"} and context["context"]["namespace"] == "payments"
        secret = tmp_path / "token"
        assert user["user"]["tokenFile"] == str(secret)
        assert secret.read_text() == "agent-1" and given == ["agent-1"]
        assert {file.stat().st_mode & 0o777 for file in (path, secret)} == {0o600}
    assert left_in(tmp_path) == []


async def test_token_in_the_file_is_renewed_and_each_is_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarsy.mcp.service_account_auth.SHORTEST_SECONDS", 0.0)
    monkeypatch.setattr("tarsy.mcp.service_account_auth.RETRY_SECONDS", 0.0)
    given: list[str] = []
    tokens = Numbered(renew_seconds=0.001)
    async with kubeconfig(tmp_path, CLUSTER, tokens, "agent", given.append):

        async def renewed(beyond: int = 1) -> bool:
            return int((tmp_path / "token").read_text().removeprefix("agent-")) > beyond

        await until("the token is renewed", renewed)
        tokens.failing = True

        async def failed() -> bool:
            return tokens.failures > 0

        await until("it cannot be renewed", failed)
        before = tokens.count
        tokens.failing = False
        await until("it is renewed after a failure", lambda: renewed(before))
        assert (tmp_path / "token").read_text() in given
    assert left_in(tmp_path) == []


async def test_a_look_gets_a_kubeconfig_that_is_nobodys(tmp_path: Path) -> None:
    async with kubeconfig(tmp_path, CLUSTER, None, None, pytest.fail) as path:
        assert read(path)["users"][0]["user"] == {}


async def test_agent_without_an_account_gets_nothing_and_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(OpenFailed) as refused:
        async with kubeconfig(tmp_path, CLUSTER, Numbered(), None, pytest.fail):
            pass
    assert refused.value.sentence == NO_ACCOUNT and left_in(tmp_path) == []


async def test_each_request_is_signed_by_the_token_of_that_moment_or_the_one_before() -> None:
    given: list[str] = []
    tokens = Numbered()
    bearer = BearerOf(tokens, "agent", "tools", given.append)
    await bearer.ready()

    async def signed() -> str:
        request = httpx2.Request("POST", "http://tools.example/mcp")
        return (await anext(bearer.async_auth_flow(request))).headers["Authorization"]

    assert await signed() == "Bearer agent for tools-2"
    tokens.failing = True
    assert await signed() == "Bearer agent for tools-2"
    assert given == ["agent for tools-1", "agent for tools-2"]
