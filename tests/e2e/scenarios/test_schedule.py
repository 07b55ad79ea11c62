"""AlertSchedule: a time comes, its Alert is created in the author's name and investigated, and the schedule says so."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from e2e.scenarios.checkout import ANSWERS, CONFIGURATION, ON_CALL
from e2e.scenarios.layers import as_yaml
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.scene import Scene

RIGHTS = (
    {"apiGroups": ["tarsy.dev"], "resources": ["chains"], "verbs": ["use"]},
    {"apiGroups": ["tarsy.dev"], "resources": ["alerts"], "verbs": ["create"]},
)
SCHEDULE = {
    "schedule": "0 * * * *",
    "template": {"alertType": "CheckoutDown", "data": "Look for restarts of checkout since yesterday."},
    "author": ON_CALL,
}


@pytest.fixture(autouse=True)
def _just_before_the_hour(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock of schedules stands before a full hour until the schedule is made, and passes it a second later."""
    now = datetime.now(UTC)
    hour = now.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    shift = hour - timedelta(seconds=1) - now
    monkeypatch.setattr("tarsy.controllers.alert_schedule.wall_clock", lambda: datetime.now(UTC) + shift)


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    await scene.let(*RIGHTS)
    async with scene.product(CONFIGURATION, {"collector": ANSWERS}):
        await scene.put("AlertSchedule", "morning", SCHEDULE)
        await scene.reason("AlertSchedule", "morning", "Fired", "AlertCreated")
        (alert,) = [one["metadata"]["name"] for one in await scene.listed("Alert")]
        run = await scene.run(alert)

        async def idle() -> bool:
            return not (await scene.get("AlertSchedule", "morning"))["status"].get("active")

        await scene.until("the schedule knows that its Alert has ended", idle)
        schedule, created = await scene.get("AlertSchedule", "morning"), await scene.get("Alert", alert)
        shown = {"status": schedule["status"], "alert": created["spec"]}
        text = as_yaml(shown).replace(alert, "<alert of the time>")
        yield {"schedule": Played(alert, run, more={"schedule.yaml": text})}


async def test_the_alert_of_a_time_is_investigated_in_its_authors_name(scene: Scene) -> None:
    run = (await check_goldens(played, scene))["schedule"].run
    investigation, alert = run.objects
    assert investigation["spec"]["author"] == alert["spec"]["author"] == ON_CALL
