"""When tokens of a run are asked for anew, and to whom none is given."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from tarsy.kube.client import ApiError, KubeClient
from tarsy.mcp.errors import OpenFailed
from tarsy.mcp.service_account_auth import NO_ACCOUNT
from tarsy.plan.model import WorkloadTransport
from tarsy.runtime.service_account_tokens import RunTokens

OWN = ["https://kubernetes.default.svc", "other"]
RUN = UUID("11111111-2222-4333-8444-555555555555")


class Api(KubeClient):
    """Gives numbered tokens for 600 s, or fails."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.asked: list[tuple[str, str, Mapping[str, Any]]] = []
        self.error: ApiError | None = None
        self.audiences: list[str] | None = None

    async def request_token(self, namespace: str, service_account: str, spec: Mapping[str, Any]) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        self.asked.append((namespace, service_account, spec))
        audiences = self.audiences if self.audiences is not None else spec.get("audiences", OWN)
        return {"spec": {**spec, "audiences": audiences}, "status": {"token": f"token-{len(self.asked)}"}}


@pytest.fixture
def api() -> Api:
    return Api()


@pytest.fixture
def tokens(api: Api) -> RunTokens:
    return RunTokens(api, RUN, "payments", clock=lambda: api.now)


async def test_token_is_short_lived_and_bound_to_the_secret_of_the_run(api: Api, tokens: RunTokens) -> None:
    await tokens.for_cluster("agent")
    ((namespace, account, spec),) = api.asked
    bound = {"apiVersion": "v1", "kind": "Secret", "name": f"tarsy-run-{RUN}"}
    assert (namespace, account) == ("payments", "agent")
    assert spec == {"expirationSeconds": 600, "boundObjectRef": bound}


async def test_token_is_renewed_before_it_ends_and_not_sooner(api: Api, tokens: RunTokens) -> None:
    first = await tokens.for_cluster("agent")
    assert first.renew_seconds == 450
    api.now += 449
    assert (await tokens.for_cluster("agent")).text == first.text
    api.now += 1
    second = await tokens.for_cluster("agent")
    assert second.text != first.text and second.renew_seconds == 450


async def test_token_that_cannot_be_renewed_is_used_to_its_end(api: Api, tokens: RunTokens) -> None:
    first = await tokens.for_cluster("agent")
    api.error = ApiError(0, "Unreachable", "away")
    api.now += 599
    found = await tokens.for_cluster("agent")
    assert found.text == first.text and found.renew_seconds == 0
    api.now += 1
    with pytest.raises(OpenFailed, match="gave no token of ServiceAccount payments/agent: away"):
        await tokens.for_cluster("agent")


async def test_token_that_was_forbidden_since_is_not_used_on(api: Api, tokens: RunTokens) -> None:
    await tokens.for_cluster("agent")
    api.now += 500
    api.error = ApiError(403, "Forbidden", "no")
    with pytest.raises(OpenFailed, match="component `tenant-agents` in namespace payments"):
        await tokens.for_cluster("agent")


async def test_accounts_and_audiences_have_tokens_of_their_own(tokens: RunTokens) -> None:
    given = [
        await tokens.for_cluster("one"),
        await tokens.for_cluster("two"),
        await tokens.for_server("one", "tools"),
        await tokens.for_server("one", "vault"),
        await tokens.for_server("two", "tools"),
    ]
    assert len({token.text for token in given}) == 5


@pytest.mark.parametrize("audience", OWN)
async def test_audience_of_the_kubernetes_api_is_never_asked_for_a_server(
    api: Api, tokens: RunTokens, audience: str
) -> None:
    with pytest.raises(OpenFailed, match="such a token is never sent to a server"):
        await tokens.for_server("agent", audience)
    assert all("audiences" not in spec for _, _, spec in api.asked)


@pytest.mark.parametrize("audiences", [OWN, ["tools", OWN[0]], []], ids=["its own", "both", "unsaid"])
async def test_token_for_more_than_the_server_is_withheld(api: Api, tokens: RunTokens, audiences: list[str]) -> None:
    await tokens.for_cluster("agent")
    api.audiences = audiences
    with pytest.raises(OpenFailed, match="no token for the audience tools alone"):
        await tokens.for_server("agent", "tools")


async def test_without_knowing_its_own_audiences_no_server_gets_a_token(api: Api, tokens: RunTokens) -> None:
    api.audiences = []
    with pytest.raises(OpenFailed, match="does not say which audiences are its own"):
        await tokens.for_server("agent", "tools")


async def test_token_is_in_no_representation(tokens: RunTokens) -> None:
    assert "token-1" not in repr(await tokens.for_cluster("agent"))


def workload(namespace: str) -> WorkloadTransport:
    return WorkloadTransport(namespace=namespace, server="kube", per_run=True, kubeconfig=True)


@pytest.mark.parametrize("namespace", ["payments", "tarsy-library"])
async def test_workload_of_the_run_or_the_library_acts_where_the_api_gives_a_token(
    api: Api, tokens: RunTokens, namespace: str
) -> None:
    await tokens.check_workload(workload(namespace), "agent")
    ((where, account, spec),) = api.asked
    assert (where, account) == ("payments", "agent") and "audiences" not in spec


async def test_workload_of_another_namespace_gets_nothing_and_nothing_is_asked(api: Api, tokens: RunTokens) -> None:
    with pytest.raises(OpenFailed, match="MCPServer elsewhere/kube would run in namespace elsewhere"):
        await tokens.check_workload(workload("elsewhere"), "agent")
    assert not api.asked


async def test_workload_for_an_agent_without_an_account_is_missing(api: Api, tokens: RunTokens) -> None:
    with pytest.raises(OpenFailed, match="that agent has none") as missing:
        await tokens.check_workload(workload("payments"), None)
    assert missing.value.sentence == NO_ACCOUNT and not api.asked


async def test_workload_is_missing_for_the_reason_that_the_api_gives(api: Api, tokens: RunTokens) -> None:
    api.error = ApiError(403, "Forbidden", "no")
    with pytest.raises(OpenFailed, match="component `tenant-agents` in namespace payments"):
        await tokens.check_workload(workload("payments"), "agent")
