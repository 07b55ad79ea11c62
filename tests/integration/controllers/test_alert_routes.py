"""Tests the status of routes, and that owed alerts are created and counted."""

from datetime import UTC, datetime
from typing import Any

import pytest

import rights
from integration.controllers.desk import Desk, eventually
from tarsy.kube.client import ApiError
from tarsy.store.intake import AlertDraft, Decision, Occurrence, Received

T0 = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the intake owes is made at once, and what is looked at again now and then is so soon."""
    monkeypatch.setattr("tarsy.controllers.incidents.publisher.OWED_SECONDS", 0.0)
    monkeypatch.setattr("tarsy.controllers.machinery.active.ROUND_SECONDS", 0.2)
    monkeypatch.setattr("tarsy.controllers.alert_route.RECHECK_SECONDS", 0.3)


async def ready(desk: Desk, status: str, reason: str, name: str = "all") -> str:
    return await desk.reason("AlertRoute", name, "Ready", status, reason)


async def came(desk: Desk, body: str = "one", *, minute: int = 0, firing: bool = True, **spec: Any) -> Decision:
    """A notification that the intake decided about, and no more: it was killed after that."""
    route = await desk.get("AlertRoute", "all")
    begun = T0.replace(minute=minute)
    content = {"alertType": "PodCrash", "data": "it crashed", **spec}
    meta = {"name": "crash", "namespace": desk.namespace}
    manifest = {"apiVersion": "tarsy.dev/v1alpha1", "kind": "Alert", "metadata": meta, "spec": content}
    text = ("d" * 64, "the whole text") if "dataFrom" in spec else None
    occurrence = Occurrence(
        route["metadata"]["uid"],
        "group",
        firing,
        begun,
        begun,
        1000,
        60,
        lambda *_: AlertDraft(desk.namespace, "crash", manifest, text),
    )
    return await desk.intake.decide(Received("text", "me", body, 1, f"{desk.namespace}/all"), occurrence)


async def test_route_is_usable_and_tells_what_it_took(desk: Desk) -> None:
    await desk.put("AlertRoute", "all", {})
    async with desk.controller():
        await ready(desk, "True", "Usable")
        await came(desk)
        await came(desk, "two")

        async def counted() -> bool:
            status = (await desk.get("AlertRoute", "all"))["status"]
            return status.get("matchedCount") == 2 and "lastMatched" in status

        await eventually(counted)
        await desk.still("AlertRoute", "all")


@pytest.mark.parametrize(
    ("spec", "reason", "sentence"),
    [
        (
            {"matchers": [{"name": "a", "matchType": "=~", "value": "("}]},
            "MatcherInvalid",
            "spec.matchers[0].value: RE2",
        ),
        ({"chainRef": {"name": "gone"}}, "NoChain", "spec.chainRef.name: there is no Chain gone"),
        ({"alertType": "Unknown"}, "NoChain", "spec.alertType: no Chain in namespace"),
        (
            {"auth": {"hmac": {"secretRef": {"name": "gone", "key": "k"}}}},
            "Forbidden",
            "spec.auth.hmac.secretRef: Secret ",
        ),
    ],
)
async def test_route_that_cannot_be_used_says_why(desk: Desk, spec: Any, reason: str, sentence: str) -> None:
    await desk.put("AlertRoute", "all", spec)
    async with desk.controller():
        assert sentence in await ready(desk, "False", reason)


async def test_chain_that_comes_later_makes_the_route_ready(desk: Desk) -> None:
    await desk.put("AlertRoute", "all", {"alertType": "PodCrash"})
    async with desk.controller():
        await ready(desk, "False", "NoChain")
        await desk.configure()
        await ready(desk, "True", "Usable")


async def test_service_account_that_may_not_create_alerts_is_named_with_the_remedy(desk: Desk) -> None:
    await desk.core("Secret", "pw", {"stringData": {"k": "v"}}, labels={"tarsy.dev/credentials": "true"})
    basic = {"username": "a", "passwordSecretRef": {"name": "pw", "key": "k"}}
    await desk.put("AlertRoute", "all", {"auth": {"basic": basic, "serviceAccountName": "sender"}})
    async with desk.controller():
        message = await ready(desk, "False", "Forbidden")
        assert f"ServiceAccount {desk.namespace}/sender cannot create alerts in namespace {desk.namespace}" in message
        rule = {"apiGroups": ["tarsy.dev"], "resources": ["alerts"], "verbs": ["create"]}
        space = desk.namespace
        bound = rights.binding("sender", space, "Role", "sender", rights.account("sender", space))
        await rights.put_rights(desk.kube, (rights.role("sender", space, rule), bound))
        await ready(desk, "True", "Usable")


async def test_alert_that_its_intake_did_not_live_to_make_is_made_and_investigated(desk: Desk) -> None:
    await desk.configure()
    await desk.put("AlertRoute", "all", {})
    await came(desk, severity="Critical", budget={"tokens": 5})
    assert await desk.kube.list("Alert", desk.namespace) == []
    async with desk.controller():
        investigation = await desk.queued()
        assert investigation["spec"]["budget"] == {"tokens": 5}
        assert await desk.pool.fetchval("SELECT priority FROM investigation") == 10
        assert await desk.intake.owed(older_seconds=0) == []


async def test_repeats_and_the_end_are_told_on_the_alert_and_stay_when_it_is_finished(desk: Desk) -> None:
    await desk.configure()
    await desk.put("AlertRoute", "all", {})
    async with desk.controller():
        await came(desk)
        await desk.queued()
        await came(desk, "two")
        await came(desk, "three")
        await came(desk, "end", firing=False)

        async def told() -> bool:
            status = (await desk.get("Alert", "crash")).get("status", {})
            return status.get("repeats") == 2 and "resolvedAt" in status and "lastReceived" in status

        await eventually(told)
        await desk.finish(await desk.claim())
        await desk.reason("Alert", "crash", "Finished", "True", "InvestigationFinished")
        assert await told()
        await came(desk, "again")

        async def open_again() -> bool:
            status = (await desk.get("Alert", "crash")).get("status", {})
            return status.get("repeats") == 3 and "resolvedAt" not in status and status["phase"] == "Finished"

        await eventually(open_again)


async def test_count_of_an_alert_that_is_gone_is_told_to_nobody(desk: Desk) -> None:
    await desk.put("AlertRoute", "all", {})
    async with desk.controller():
        await came(desk)

        async def made() -> Any:
            return await desk.get("Alert", "crash")

        await eventually(made)
        await desk.kube.delete("Alert", desk.namespace, "crash")
        await came(desk, "two")

        async def settled() -> bool:
            return await desk.intake.unpublished() == []

        await eventually(settled)
        with pytest.raises(ApiError):
            await desk.get("Alert", "crash")


async def test_text_beside_the_record_is_what_is_investigated(desk: Desk) -> None:
    await desk.configure()
    await desk.put("AlertRoute", "all", {})
    record = {"record": {"digest": "d" * 64, "sizeBytes": 14, "preview": "the wh"}}
    await came(desk, data=None, dataFrom=record)
    async with desk.controller():
        await desk.queued()
        assert await desk.pool.fetchval("SELECT alert_data FROM investigation_input") == "the whole text"


async def test_text_that_is_not_kept_is_missing_by_a_sentence(desk: Desk) -> None:
    await desk.configure()
    record = {"digest": "e" * 64, "sizeBytes": 14}
    await desk.put("Alert", "crash", {"alertType": "PodCrash", "dataFrom": {"record": record}})
    async with desk.controller():

        async def look() -> str:
            found = await desk.investigations()
            return found[0]["metadata"]["name"] if found else ""

        name = await eventually(look)
        message = await desk.reason("Investigation", name, "Accepted", "False", "AlertTextMissing")
        assert "spec.dataFrom.record" in message and "send the alert again" in message


async def test_alert_that_can_never_be_made_is_rejected(desk: Desk) -> None:
    await desk.put("AlertRoute", "all", {})
    await came(desk, alertType="-", data="x")
    async with desk.controller():

        async def rejected() -> bool:
            return await desk.pool.fetchval("SELECT fate || reason FROM notification") == "rejectedAlertRefused"

        await eventually(rejected)
