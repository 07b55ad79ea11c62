"""AlertSchedules over HTTP and by the plugin."""

from datetime import UTC, datetime
from typing import Any

from rich.console import Console

from integration.http.site import Site, Visitor
from integration.http.test_configuration import READY
from tarsy.cli.objects.schedules import schedule_table
from tarsy.http.views.schedules import ScheduleView

SPEC: dict[str, Any] = {
    "schedule": "0 7 * * *",
    "timeZone": "Europe/Berlin",
    "template": {"alertType": "RoutineCheck", "data": "a secret of the shop"},
    "author": {"username": "rita"},
}
FIRED = {
    "type": "Fired",
    "status": "False",
    "reason": "Forbidden",
    "message": "No Alert: rita may not.",
    "lastTransitionTime": "2026-11-24T06:00:00Z",
}


async def test_schedules_are_listed_with_their_times_and_without_the_text_of_their_alerts(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    times = {"lastScheduleTime": "2026-11-23T06:00:00Z", "nextScheduleTime": "2026-11-25T06:00:00Z"}
    active = [{"name": "morning-1", "uid": "1"}]
    await site.put("AlertSchedule", namespace, "morning", SPEC, conditions=[*READY, FIRED], active=active, **times)
    await site.put("AlertSchedule", namespace, "off", SPEC | {"suspend": True}, **times)

    body = (await administrator.get("/alertschedules", namespace=namespace)).body

    morning, off = body["items"]
    assert (morning["schedule"], morning["timeZone"], morning["ready"]) == ("0 7 * * *", "Europe/Berlin", True)
    assert (morning["last"], morning["next"]) == ("2026-11-23T06:00:00Z", "2026-11-25T06:00:00Z")
    assert (morning["active"], morning["author"], morning["suspended"]) == (["morning-1"], "rita", False)
    assert (off["suspended"], off["next"], off["active"]) == (True, None, [])
    assert "secret of the shop" not in str(body)
    page = (await administrator.get("/alertschedules", namespace=namespace, limit=1)).body
    rest = {"limit": 1, "continue": page["continue"]}
    assert [
        one["name"] for one in (await administrator.get("/alertschedules", namespace=namespace, **rest)).body["items"]
    ] == ["off"]


def test_the_plugin_prints_times_and_why_the_latest_has_no_alert() -> None:
    fields = {"namespace": "shop", "uid": "1", "ready": True, "schedule": "0 7 * * *", "time_zone": "UTC"}
    at = datetime(2026, 11, 25, 6, tzinfo=UTC)
    shown = [
        {"name": "a", "conditions": [FIRED], "suspended": False, "last": None, "next": at, "active": []},
        {"name": "b", "conditions": [], "suspended": True, "last": at, "next": None, "active": []},
        {"name": "c\x1b[2J", "conditions": [], "suspended": False, "last": at, "next": at, "active": ["c-1"]},
    ]
    views = [ScheduleView.model_validate(fields | {"alert_type": "Check", "author": None} | one) for one in shown]
    console = Console(width=200)
    with console.capture() as printed:
        console.print(schedule_table(views, with_namespace=True))
    head, first, second, third = printed.get().splitlines()
    assert head.split()[:2] == ["NAMESPACE", "NAME"] and "2026-11-25 06:00Z" in first
    assert "Forbidden: No Alert: rita may not." in first and "Suspended" in second and "active: c-1" in third
    assert "\x1b" not in third
