"""Tests AlertSchedules against an API server and a controller, with a clock that the tests set."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import rights
from integration.controllers.desk import Desk, eventually
from tarsy.controllers.alert_schedule import reconcile
from tarsy.observe.metric_table import SCHEDULE_TIMES
from tarsy.observe.metrics import Metrics
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1 import AlertSchedule

TEMPLATE = {"alertType": "PodCrash", "data": "Look for restarts since yesterday."}
RITA = {"username": "rita", "groups": ["on-call"]}


async def permit(desk: Desk, *verbs_of: tuple[str, Sequence[str]]) -> None:
    """Gives the group on-call these verbs on these resources of the namespace."""
    rules = [{"apiGroups": ["tarsy.dev"], "resources": [what], "verbs": list(verbs)} for what, verbs in verbs_of]
    bound = rights.binding("on-call", desk.namespace, "Role", "on-call", rights.group("on-call"))
    await rights.put_rights(desk.kube, (rights.role("on-call", desk.namespace, *rules), bound))


async def scheduled(desk: Desk, **spec: Any) -> dict[str, Any]:
    await desk.configure()
    body = {"schedule": "0 * * * *", "template": TEMPLATE, "author": RITA} | spec
    return await desk.put("AlertSchedule", "morning", body)


def next_hour(obj: dict[str, Any]) -> datetime:
    made = datetime.strptime(obj["metadata"]["creationTimestamp"], "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
    return made.replace(minute=0, second=0) + timedelta(hours=1)


async def alerts(desk: Desk) -> list[dict[str, Any]]:
    return await desk.kube.list("Alert", desk.namespace)


async def test_a_schedule_fires_by_its_timer_and_its_alert_is_investigated_in_its_authors_name(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    await permit(desk, ("alerts", ["create"]), ("chains", ["use"]))
    obj, metrics = await scheduled(desk), Metrics()
    hour = next_hour(obj)
    shift = hour - timedelta(seconds=1) - datetime.now(UTC)
    monkeypatch.setattr("tarsy.controllers.alert_schedule.wall_clock", lambda: datetime.now(UTC) + shift)
    async with desk.controller(metrics=metrics):
        await desk.reason("AlertSchedule", "morning", "Fired", "True", "AlertCreated")
        (alert,) = await alerts(desk)
        assert alert["spec"]["author"] == RITA and alert["metadata"]["name"].startswith(f"morning-{hour:%Y%m%d-%H%M}-")
        investigation = await desk.queued(alert["metadata"]["name"])
        assert investigation["spec"]["author"] == RITA
        shown = (await desk.get("AlertSchedule", "morning"))["status"]
        assert shown["lastScheduleTime"] == f"{hour:%Y-%m-%dT%H:%M:%SZ}"
        assert shown["nextScheduleTime"] == f"{hour + timedelta(hours=1):%Y-%m-%dT%H:%M:%SZ}"
        assert [one["name"] for one in shown["active"]] == [alert["metadata"]["name"]]
        assert metrics.value(SCHEDULE_TIMES, result="created") == 1
        await desk.finish(await desk.claim())

        async def idle() -> bool:
            return not (await desk.get("AlertSchedule", "morning"))["status"].get("active")

        assert await eventually(idle), "the end of its Alert is told to the schedule"
        await desk.told(("AlertSchedule", "AlertCreated"))


async def test_two_operators_and_a_restart_make_one_alert_of_a_time(desk: Desk) -> None:
    await permit(desk, ("alerts", ["create"]), ("chains", ["use"]))
    obj = await scheduled(desk)
    hour = next_hour(obj)
    contexts = [await desk.listed() for _ in range(3)]

    async def look(at: datetime, *operators: int) -> None:
        schedule = parse_as(AlertSchedule, await desk.get("AlertSchedule", "morning"))
        looks = (reconcile(schedule, contexts[number], lambda: at) for number in operators)
        await asyncio.gather(*looks, return_exceptions=True)  # the slower one conflicts, and would look again

    await look(hour, 0, 1)
    await look(hour + timedelta(seconds=20), 2)
    (first,) = await alerts(desk)
    assert (await desk.conditions("AlertSchedule", "morning"))["Fired"][:2] == ("True", "AlertCreated")
    await look(hour + timedelta(hours=1), 0, 1)
    assert [one["metadata"]["uid"] for one in await alerts(desk)] == [first["metadata"]["uid"]]
    assert (await desk.conditions("AlertSchedule", "morning"))["Fired"][:2] == ("False", "PreviousActive")


async def test_the_rights_of_the_author_are_asked_at_each_time(desk: Desk) -> None:
    await permit(desk, ("chains", ["use"]))
    hour = next_hour(await scheduled(desk))
    context = await desk.listed()

    async def look(at: datetime) -> tuple[str, str, str]:
        schedule = parse_as(AlertSchedule, await desk.get("AlertSchedule", "morning"))
        await reconcile(schedule, context, lambda: at)
        return (await desk.conditions("AlertSchedule", "morning"))["Fired"]

    refused = await look(hour)
    assert refused[:2] == ("False", "Forbidden") and "rita may not create alerts" in refused[2]
    assert await alerts(desk) == []
    await permit(desk, ("alerts", ["create"]))
    refused = await look(hour + timedelta(hours=1))
    assert refused[:2] == ("False", "Forbidden") and "rita may not use Chain" in refused[2]
    await permit(desk, ("alerts", ["create"]), ("chains", ["use"]))
    assert (await look(hour + timedelta(hours=2)))[:2] == ("True", "AlertCreated")
    assert len(await alerts(desk)) == 1
