"""Tests alerts with one incidentKey: one Investigation, however many come and in any order."""

import asyncio
from typing import Any

import pytest

from integration.controllers.desk import Desk, eventually
from tarsy.controllers.alert import investigation_name
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1 import Alert


async def _phases(desk: Desk, *names: str) -> list[str]:
    async def look() -> list[str]:
        found = [((await desk.get("Alert", name)).get("status") or {}).get("phase") for name in names]
        assert all(found), found
        return found  # type: ignore[return-value]

    return await eventually(look)


async def _status(desk: Desk, name: str) -> dict[str, Any]:
    found: dict[str, Any] = (await desk.get("Alert", name))["status"]
    return found


async def test_second_alert_of_a_key_is_folded_and_tells_the_investigation_of_the_first(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.alert("first", incidentKey="disk")
        investigation = await desk.queued("first")
        await desk.alert("second", incidentKey="disk")
        message = await desk.reason("Alert", "second", "Accepted", "True", "Folded")
        assert "first" in message
        status, first = await _status(desk, "second"), await desk.get("Alert", "first")
        assert status["foldedInto"] == {"name": "first", "uid": first["metadata"]["uid"]}
        assert status["investigationRef"]["uid"] == investigation["metadata"]["uid"]
        assert status["phase"] == "Folded"
        await desk.finish(await desk.claim())
        desk.changed.set()
        for name in ("first", "second"):
            await desk.reason("Alert", name, "Finished", "True", "InvestigationFinished")

        async def counted() -> bool:
            return bool((await _status(desk, "first")).get("repeats") == 1)

        await eventually(counted)
        assert len(await desk.investigations()) == 1


async def test_other_keys_and_none_are_other_incidents(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        for name, spec in (("a", {"incidentKey": "one"}), ("b", {"incidentKey": "two"}), ("c", {}), ("d", {})):
            await desk.alert(name, **spec)
            await desk.queued(name)
        assert len(await desk.investigations()) == 4


@pytest.mark.parametrize("controllers", [1, 2])
async def test_many_at_once_have_one_investigation_under_two_controllers_too(desk: Desk, controllers: int) -> None:
    await desk.configure()
    names = [f"crash-{number}" for number in range(12)]
    async with desk.controller(), desk.controller() if controllers == 2 else _nobody():
        await asyncio.gather(*(desk.alert(name, incidentKey="disk") for name in names))
        phases = await _phases(desk, *names)
        assert sorted(phases) == ["Folded"] * 11 + ["Investigating"]
        assert len(await desk.investigations()) == 1


class _nobody:
    async def __aenter__(self) -> None: ...

    async def __aexit__(self, *_: object) -> None: ...


async def test_alert_after_a_quiet_hour_begins_anew_and_before_it_does_not(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.alert("first", incidentKey="disk")
        await desk.queued("first")
        await desk.finish(await desk.claim())
        desk.changed.set()
        await desk.reason("Alert", "first", "Finished", "True", "InvestigationFinished")
        await desk.pool.execute("UPDATE incident SET last_received = now() - interval '59 minutes'")
        await desk.alert("soon", incidentKey="disk")
        await desk.reason("Alert", "soon", "Accepted", "True", "Folded")
        await desk.pool.execute("UPDATE incident SET last_received = now() - interval '61 minutes'")
        await desk.alert("late", incidentKey="disk")
        await desk.reason("Alert", "late", "Accepted", "True", "InvestigationCreated")
        assert len(await desk.investigations()) == 2


@pytest.mark.parametrize("kind", ["Alert", "Investigation"])
async def test_incident_whose_leader_was_deleted_is_led_by_the_next(desk: Desk, kind: str) -> None:
    await desk.configure()
    async with desk.controller():
        first = await desk.alert("first", incidentKey="disk")
        investigation = await desk.queued("first")
        name = "first" if kind == "Alert" else investigation["metadata"]["name"]
        await desk.kube.delete(kind, desk.namespace, name)
        if kind == "Investigation":
            await desk.reason("Alert", "first", "Finished", "True", "InvestigationDeleted")
        second = await desk.alert("second", incidentKey="disk")
        await desk.reason("Alert", "second", "Accepted", "True", "InvestigationCreated")
        made = {found["metadata"]["name"] for found in await desk.investigations()}
        assert investigation_name(parse_as(Alert, second)) in made
        assert first["metadata"]["uid"] != second["metadata"]["uid"]


async def test_alert_that_no_chain_takes_leads_nothing(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.alert("wrong", incidentKey="disk", chainRef={"name": "missing"})
        await desk.reason("Alert", "wrong", "Accepted", "False", "NoChain")
        await desk.alert("right", incidentKey="disk")
        await desk.reason("Alert", "right", "Accepted", "True", "InvestigationCreated")


async def test_alert_of_the_intake_and_one_by_kubectl_are_of_one_incident(desk: Desk) -> None:
    """The intake's incident is on record before its Alert is made."""
    await desk.configure()
    await desk.pool.execute(
        "INSERT INTO incident (id, route, group_hash, namespace, alert, opened_at, first_start, last_start, "
        "last_received, incident_key) "
        "VALUES (gen_random_uuid(), 'a/b', 'g', $1, 'by-intake', now(), now(), now(), now(), 'g@now')",
        desk.namespace,
    )
    async with desk.controller():
        await desk.alert("by-intake", incidentKey="g@now")
        await desk.queued("by-intake")
        await desk.alert("by-hand", incidentKey="g@now")
        await desk.reason("Alert", "by-hand", "Accepted", "True", "Folded")
        assert len(await desk.investigations()) == 1


async def test_restart_of_the_controller_changes_nothing(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.alert("first", incidentKey="disk")
        await desk.queued("first")
        await desk.alert("second", incidentKey="disk")
        await desk.reason("Alert", "second", "Accepted", "True", "Folded")
    async with desk.controller():
        await desk.alert("third", incidentKey="disk")
        await desk.reason("Alert", "third", "Accepted", "True", "Folded")
        assert (await _status(desk, "third"))["foldedInto"]["name"] == "first"
        assert len(await desk.investigations()) == 1
