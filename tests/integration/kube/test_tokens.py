"""Tests tokens of a run's ServiceAccounts: the Kubernetes API issues, accepts and revokes them."""

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

import rights
from apis import LocalApi
from e2e.waiting import until
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.tokens import TokenProblem, issue, secret_name, why_none
from tarsy.mcp.errors import OpenFailed
from tarsy.runtime.service_account_tokens import RunTokens

RUN = uuid.UUID("11111111-2222-4333-8444-555555555555")
SECRET = secret_name(str(RUN))


@pytest.fixture
async def bound(kube: KubeClient, namespace: str) -> str:
    """A namespace with a ServiceAccount `agent` and the Secret of a run."""
    for kind, name in (("ServiceAccount", "agent"), ("Secret", SECRET)):
        await kube.create({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": namespace}})
    return namespace


@pytest.fixture
async def nobody(tarsy_api: LocalApi, kube: KubeClient, bound: str, tmp_path: Path) -> AsyncIterator[KubeClient]:
    """A client without any right."""
    await kube.create(
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "nobody", "namespace": bound}}
    )
    document: dict[str, Any] = yaml.safe_load(tarsy_api.kubeconfig.read_text())
    document["users"][0]["user"] = {"token": await kube.create_token(bound, "nobody")}
    path = tmp_path / "nobody.kubeconfig"
    path.write_text(yaml.safe_dump(document))
    async with await KubeClient.load(path) as client:
        yield client


async def who(kube: KubeClient, token: str, *audiences: str) -> str | None:
    """Who the API says a token is of, for these audiences (none: its own)."""
    spec = {"token": token} | ({"audiences": list(audiences)} if audiences else {})
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "metadata": {}, "spec": spec}
    status = (await kube.create(review))["status"]
    return str(status["user"]["username"]) if status.get("authenticated") else None


async def test_tokens_of_a_run_are_those_of_the_account_and_end_with_its_secret(kube: KubeClient, bound: str) -> None:
    tokens = RunTokens(kube, RUN, bound)
    own, other = await tokens.for_cluster("agent"), await tokens.for_server("agent", "https://tools.example/mcp")
    user = f"system:serviceaccount:{bound}:agent"
    assert await who(kube, own.text) == user
    assert await who(kube, other.text, "https://tools.example/mcp") == user
    await kube.delete("Secret", bound, SECRET)

    async def revoked() -> bool:
        known = [await who(kube, own.text), await who(kube, other.text, "https://tools.example/mcp")]
        return known == [None, None]

    await until("both tokens are revoked", revoked)


async def test_the_kubernetes_api_takes_no_token_that_a_server_gets(
    tarsy_api: LocalApi, kube: KubeClient, bound: str
) -> None:
    token = await RunTokens(kube, RUN, bound).for_server("agent", "tools")
    assert await who(kube, token.text) is None
    async with kube.without_identity() as anybody:
        with pytest.raises(ApiError) as refused:
            await anybody.bearing(token.text).list("Pod", bound)
    assert refused.value.status == 401


async def test_no_server_gets_a_token_that_the_kubernetes_api_takes(kube: KubeClient, bound: str) -> None:
    own = (await issue(kube, bound, "agent", SECRET)).audiences
    assert own
    tokens = RunTokens(kube, RUN, bound)
    for audience in own:
        with pytest.raises(OpenFailed, match=r"one of the Kubernetes API's own"):
            await tokens.for_server("agent", audience)


async def test_an_account_that_is_missing_is_named_with_the_remedy(kube: KubeClient, bound: str) -> None:
    with pytest.raises(TokenProblem, match=f"ServiceAccount {bound}/nowhere does not exist; create it") as missing:
        await issue(kube, bound, "nowhere", SECRET)
    assert missing.value.reason == "ServiceAccountMissing"
    problem = await why_none(kube, bound, "nowhere")
    assert problem is not None and problem.reason == "ServiceAccountMissing"


async def test_a_run_that_has_no_secret_gets_no_token(kube: KubeClient, bound: str) -> None:
    await kube.delete("Secret", bound, SECRET)
    with pytest.raises(TokenProblem, match=r"the run has ended, or TARSy may not create it") as missing:
        await issue(kube, bound, "agent", SECRET)
    assert missing.value.reason == "RunSecretMissing"


async def test_an_account_that_can_be_acted_as_has_no_problem(kube: KubeClient, bound: str) -> None:
    assert await why_none(kube, bound, "agent") is None


async def test_who_may_ask_for_tokens_of_one_account_gets_none_of_another(
    kube: KubeClient, bound: str, nobody: KubeClient
) -> None:
    with pytest.raises(TokenProblem, match="component `tenant-agents`") as forbidden:
        await issue(nobody, bound, "agent", SECRET)
    assert forbidden.value.reason == "TokenForbidden"
    rule = {"apiGroups": [""], "resources": ["serviceaccounts/token"], "verbs": ["create"], "resourceNames": ["agent"]}
    await rights.put_rights(
        kube,
        [
            rights.role("tokens", bound, rule),
            rights.binding("tokens", bound, "Role", "tokens", rights.account("nobody", bound)),
        ],
    )
    assert (await issue(nobody, bound, "agent", SECRET)).text
    with pytest.raises(TokenProblem, match="component `tenant-agents`"):
        await issue(nobody, bound, "default", SECRET)
    problem = await why_none(nobody, bound, "default")
    assert problem is not None and problem.reason == "TokenForbidden"
