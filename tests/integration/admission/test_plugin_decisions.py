"""Tests the decisions of the plugin against the shipped policy and roles: written once, refused in a sentence."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from integration.admission.conftest import OPERATOR, SHOP, As
from integration.admission.test_approvals import NAME, approval, put_in_force
from tarsy.cli.requests.approvals import read_shown
from tarsy.client.aggregated import AggregatedClient
from tarsy.client.errors import ApiUseError
from tarsy.client.kubeconfig import ChosenContext
from tarsy.http.decision_entry import Verdict
from tarsy.kube.client import ApiError, KubeClient


def plugin(client: KubeClient) -> AggregatedClient:
    return AggregatedClient(client, ChosenContext(None, "prod", SHOP))


async def refusal(client: KubeClient, decision: Verdict = "Approve") -> str:
    """What the plugin tells a person who may not decide."""
    user = plugin(client)
    with pytest.raises(ApiUseError) as found:
        await user.decide(await user.approval(SHOP, NAME), decision, None)
    return str(found.value)


@pytest.mark.newer_api
async def test_decisions_are_appended_with_the_groups_of_the_person(admin: KubeClient, as_user: As) -> None:
    await put_in_force(admin, as_user)
    async with as_user("rita", "approvers") as rita, as_user("anna", "approvers") as anna:
        assert "so you cannot approve its calls" in await refusal(rita)
        assert [one.name for one in await plugin(anna).approvals(SHOP, decided=False)] == [NAME]
        with pytest.raises(ApiUseError, match="in all namespaces"):
            await plugin(anna).approvals(None, decided=False)
        shown = await plugin(anna).approval(SHOP, NAME)
        await plugin(rita).decide(await plugin(rita).approval(SHOP, NAME), "Reject", "not now")
        written = await plugin(anna).decide(shown, "Approve", None)
        assert [(one.username, one.decision) for one in written.decisions] == [("rita", "Reject"), ("anna", "Approve")]
        assert "you have already decided" in await refusal(anna)
    stored = (await admin.get("ToolApproval", SHOP, NAME))["spec"]["decisions"]
    assert stored[0]["reason"] == "not now" and "approvers" in stored[1]["groups"]


@pytest.mark.newer_api
async def test_each_refusal_is_a_sentence(admin: KubeClient, as_user: As) -> None:
    await put_in_force(admin, as_user)
    async with as_user("tess", "tracers") as tess:
        assert "ask for the role tarsy-approver there" in await refusal(tess)
    async with as_user("vera", "viewers") as vera:
        with pytest.raises(ApiUseError, match="you may not read calls of tools that wait for approval in namespace"):
            await read_shown(plugin(vera), SHOP, NAME)
    async with as_user("anna", "approvers") as anna:
        with pytest.raises(ApiUseError, match="there is no ToolApproval shop/none: `kubectl tarsy approvals -A`"):
            await read_shown(plugin(anna), SHOP, "none")
        shown = await plugin(anna).approval(SHOP, NAME)
        await decided(as_user, "Rejected")
        assert "is already decided: Rejected" in await refusal(anna)
        await admin.delete("ToolApproval", SHOP, NAME)
        past = (datetime.now(UTC) - timedelta(seconds=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        async with as_user(OPERATOR) as operator:
            await operator.create(approval(expiresAt=past))
        assert "expired at" in await refusal(anna)
        with pytest.raises(ApiUseError, match="was replaced since you were shown it"):
            await plugin(anna).decide(shown, "Approve", None)
    async with as_user("dora", "nobodies") as dora:
        with pytest.raises(ApiUseError, match="you may not read"):
            await plugin(dora).approval(SHOP, NAME)


async def decided(as_user: As, phase: str) -> None:
    """The operator writes that it is decided."""
    over: dict[str, Any] = {"type": "Decided", "status": "True", "reason": phase}
    over |= {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    body = {"status": {"phase": phase, "conditions": [over]}}
    async with as_user(OPERATOR) as operator:
        await operator.patch("ToolApproval", SHOP, NAME, body, subresource="status")


async def test_api_that_does_not_know_who_asks_takes_no_decision(admin: KubeClient, as_user: As) -> None:
    """On Kubernetes 1.20 nothing that needs approval is executed, and the plugin says why."""
    async with as_user(OPERATOR) as operator:
        await operator.create(approval())
    async with as_user("anna", "approvers") as anna:
        try:
            await plugin(anna).decide(await plugin(anna).approval(SHOP, NAME), "Approve", None)
        except ApiUseError as error:
            assert "SelfSubjectReview" in str(error) and error.status == 404
            assert (await admin.get("ToolApproval", SHOP, NAME))["spec"].get("decisions", []) == []
        except ApiError as error:  # pragma: no cover
            raise AssertionError("every refusal is a sentence") from error
