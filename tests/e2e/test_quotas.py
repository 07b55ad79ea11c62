"""Quotas of whole namespaces: runs wait, are rejected or answer without a model, and the object shows what is spent."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

import rights
from e2e.person import new_person
from e2e.tenant import ANSWER, Tenant, condition
from e2e.test_changes_stage import ACCOUNT, ALERT, a_failing_pod, let_read
from e2e.waiting import until
from tarsy.kube.access import ResourceAttributes, Subject
from tarsy.kube.access import may as may_do
from tarsy.kube.client import ApiError
from tarsy.resources.meta import GROUP

pytestmark = pytest.mark.timeout(600)
WHY = '.status.conditions[?(@.type=="Finished")]'
COLUMNS = f"NAME:.metadata.name,PHASE:.status.phase,REASON:{WHY}.reason"
ABOUT = {"alert": {"alertType": "Test", "data": json.dumps(ALERT)}}


async def use_quota(tenant: Tenant, on_exceeded: str = "Queue", **hard: float) -> None:
    """Limits the namespace by the day, once the limits are in force."""
    await tenant.put("InvestigationQuota", "day", {"period": "Day", "hard": hard, "onExceeded": on_exceeded})
    await tenant.noticed("InvestigationQuota", "day")


async def use_evidence(tenant: Tenant) -> None:
    """A chain that reads the cluster and then asks a model."""
    await a_failing_pod(tenant)
    await tenant.use_model(f"agents: {{agent: {{repeat: last, entries: [{{text: {ANSWER}}}]}}}}")
    await tenant.use_tools()
    await tenant.use_agent("agent", "tools")
    stages = [
        {"name": "changes", "kind": "Changes", "changes": {"serviceAccountName": ACCOUNT}},
        {"name": "look", "agents": [{"name": "agent"}]},
    ]
    usual = {"llmProvider": "model", "executiveSummary": {"enabled": False}, "loop": {"findingRepairs": 0}}
    await tenant.put("Chain", "chain", {**usual, "stages": stages})
    await let_read(tenant, rights.account(ACCOUNT, tenant.namespace))


async def shown(tenant: Tenant, name: str, *arguments: str) -> str:
    """What kubectl prints; kept where `QUOTA_OUTPUTS` names a folder, for the documentation."""
    if tenant.machine.kubectl is None:
        return ""
    _, output = await tenant.kubectl(*arguments)
    if (folder := os.environ.get("QUOTA_OUTPUTS")) is not None:
        text = output.replace(tenant.namespace, "shop")
        told = f"$ kubectl {' '.join(arguments)} -n shop\n{text}"
        await asyncio.to_thread(Path(folder, name).write_text, told)
    return output


async def quota_where(tenant: Tenant, what: str, look: Any) -> dict[str, Any]:
    async def found() -> Any:
        quota = await tenant.get("day", "InvestigationQuota")
        return quota if look(quota.get("status", {})) else None

    found_quota: dict[str, Any] = await until(f"the quota shows {what}", found, 60)
    return found_quota


async def test_queue_holds_a_run_until_the_limit_is_raised(tenant: Tenant) -> None:
    await tenant.simple(f"agents: {{agent: {{repeat: last, entries: [{{text: {ANSWER}}}]}}}}")
    await use_quota(tenant, investigations=1)
    await tenant.investigate("first")
    await tenant.finished("first")
    await tenant.investigate("second")

    async def waits() -> bool:
        return condition(await tenant.get("second"), "Finished", "reason") == "WaitingForQuota"

    await until("the second run waits for the quota", waits, 60)
    told = condition(await tenant.get("second"), "Finished", "message")
    assert told.startswith("InvestigationQuota day allows 1 investigation a day, and 1 has started.")
    quota = await quota_where(tenant, "that it is spent", lambda s: s.get("spent", {}).get("investigations") == 1)
    assert condition(quota, "Exceeded", "reason") == "QuotaSpent"
    assert condition(quota, "Warned", "reason") == "QuotaNearlySpent"
    assert len(tenant.model.journal.requests) == 1
    output = await shown(tenant, "queue", "get", "tquota")
    assert "1 run " in output or not output
    await shown(tenant, "queue-inv", "get", "inv", "second", "-o", f"custom-columns={COLUMNS}")

    await use_quota(tenant, investigations=2)
    inv = await tenant.finished("second")
    assert condition(inv, "Succeeded") == "True"
    await quota_where(tenant, "both runs", lambda s: s.get("spent", {}).get("investigations") == 2)


async def test_reject_ends_a_run_that_has_no_room(tenant: Tenant) -> None:
    await tenant.simple(f"agents: {{agent: {{repeat: last, entries: [{{text: {ANSWER}}}]}}}}")
    await use_quota(tenant, "Reject", investigations=0)
    await tenant.investigate()
    inv = await tenant.finished()
    assert condition(inv, "Succeeded", "reason") == "QuotaExceeded"
    assert "hard.investigations of the quota can be raised" in condition(inv, "Succeeded", "message")
    assert tenant.model.journal.requests == []
    await tenant.client.delete("InvestigationQuota", tenant.namespace, "day")

    async def lifted() -> bool:
        return not await tenant.rows("SELECT FROM quota WHERE namespace = $1", tenant.namespace)

    await until("the limits are lifted", lifted, 60)
    await tenant.investigate("later")
    assert condition(await tenant.finished("later"), "Succeeded") == "True"


async def test_triage_only_answers_with_evidence_and_without_a_model(tenant: Tenant) -> None:
    await use_evidence(tenant)
    await use_quota(tenant, "TriageOnly", tokens=200_000)
    await tenant.investigate("first", **ABOUT)
    first = await tenant.finished("first")
    assert condition(first, "Succeeded") == "True"
    assert len(tenant.model.journal.requests) == 1
    spent = first["status"]["usage"]["totalTokens"]
    quota = await quota_where(tenant, "the tokens", lambda s: s.get("spent", {}).get("tokens"))
    assert (quota["status"]["spent"]["tokens"], quota["status"]["reserved"]["tokens"]) == (spent, 0)
    await use_quota(tenant, "TriageOnly", tokens=spent)
    identity = await tenant.investigate("second", **ABOUT)
    second = await tenant.finished("second")
    assert condition(second, "Succeeded") == "True"
    assert len(tenant.model.journal.requests) == 1, "no model is asked"
    record = await tenant.record(identity)
    assert record.outcome is not None and record.outcome.finding is not None
    assert "ErrImagePull" in (record.outcome.final_analysis or "") or "image" in record.outcome.finding.summary
    assert f"No model was asked. InvestigationQuota day allows {spent:,} tokens a day" in (
        record.outcome.final_analysis or ""
    )
    await quota_where(tenant, "that it is spent", lambda s: s.get("spent", {}).get("tokens") == spent)
    await shown(tenant, "triage", "get", "tquota", "-o", "wide")
    await shown(tenant, "triage-describe", "describe", "tquota", "day")


async def test_dollars_without_rates_are_refused_with_the_remedy(tenant: Tenant) -> None:
    await tenant.simple(f"agents: {{agent: {{repeat: last, entries: [{{text: {ANSWER}}}]}}}}")
    await use_quota(tenant, dollars=5)
    await tenant.investigate()
    inv = await tenant.finished()
    assert condition(inv, "BudgetExceeded", "reason") == "Quota"
    assert "Set spec.rates of the LLMProvider" in condition(inv, "BudgetExceeded", "message")
    assert tenant.model.journal.requests == []


async def test_quota_without_a_limit_is_refused_by_the_api_or_not_ready(tenant: Tenant) -> None:
    """An API without CEL accepts the object; the operator says the same then."""
    told = "set at least one of dollars, tokens and investigations"
    try:
        await tenant.put("InvestigationQuota", "none", {"period": "Day", "hard": {}})
    except ApiError as refused:
        assert told in refused.message
        return
    await tenant.noticed("InvestigationQuota", "none")
    quota = await tenant.get("none", "InvestigationQuota")
    assert condition(quota, "Ready") == "False"
    assert told in condition(quota, "Ready", "message")


async def test_viewer_sees_bars_and_may_not_raise_the_limit(tenant: Tenant) -> None:
    await tenant.simple(f"agents: {{agent: {{repeat: last, entries: [{{text: {ANSWER}}}]}}}}")
    await use_quota(tenant, tokens=4_000_000, investigations=2)
    await tenant.investigate()
    await tenant.finished()
    await quota_where(tenant, "the run", lambda s: s.get("spent", {}).get("tokens"))
    viewer = await new_person(tenant, "vera", "tarsy-viewer")
    answer = await viewer.tarsy("quota")
    assert answer.status == 0, answer
    lines = answer.out.splitlines()
    assert lines[0].split() == ["NAME", "PERIOD", "LIMIT", "SPENT", "RESERVED", "USE", "ENDS", "STATE"]
    assert "[##########..........] 50%" in answer.out
    if (folder := os.environ.get("QUOTA_OUTPUTS")) is not None:
        told = f"$ kubectl tarsy quota -n shop\n{answer.out}"
        await asyncio.to_thread(Path(folder, "plugin").write_text, told)
    for role, may in (("tarsy-viewer", False), ("tarsy-quota-administrator", True)):
        subject = Subject(role, "", (role,))
        bound = rights.binding(f"quota-{role}", tenant.namespace, "ClusterRole", role, rights.group(role))
        await rights.put_rights(tenant.client, [bound])
        what = ResourceAttributes("update", GROUP, "investigationquotas", namespace=tenant.namespace)

        async def allowed(subject: Subject = subject, what: ResourceAttributes = what, may: bool = may) -> bool:
            return await may_do(tenant.client, subject, what) is may

        await until(f"{role} is known to the API", allowed, 30)
