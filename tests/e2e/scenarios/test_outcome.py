"""Outcomes: an alert that fires again after its end makes the first finding Recurred; the second one settles."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from e2e.scenarios.checkout import ALERT, ANSWERS, CONFIGURATION, ON_CALL
from e2e.scenarios.layers import as_yaml
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.scene import Scene
from tarsy.store.reading.reads import Reads

RIGHTS = ({"apiGroups": ["tarsy.dev"], "resources": ["chains"], "verbs": ["use"]},)
KEY = "checkout-down"
ENDED = "UPDATE incident SET resolved_at = now(), last_received = now() - interval '2 hours' WHERE resolved_at IS NULL"
"""The sender said that it is over; the next firing is two hours later."""

TWO_DAYS = (
    "UPDATE incident SET opened_at = opened_at - interval '2 days', settled_at = settled_at - interval '2 days',"
    " resolved_at = resolved_at - interval '2 days'",
    "UPDATE investigation SET finished_at = finished_at - interval '2 days'",
    "UPDATE outcome_look SET look_at = now()",
)


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    await scene.let(*RIGHTS)
    async with scene.product(CONFIGURATION, {"collector": ANSWERS}):
        await scene.alert("first", ALERT, author=ON_CALL, incidentKey=KEY)
        run = await scene.run("first")
        await scene.pool.execute(ENDED)
        await scene.alert("again", ALERT, author=ON_CALL, incidentKey=KEY)
        await scene.run("again")
        first = await _told(scene, "first", "Recurred")
        await scene.pool.execute(ENDED)
        await scene.pool.execute("; ".join(TWO_DAYS))
        shown = {"first": first, "again": await _told(scene, "again", "Settled")}
        yield {"outcome": Played("first", run, more={"outcomes.yaml": as_yaml(shown)})}


async def _told(scene: Scene, alert: str, outcome: str) -> str:
    name = await scene.investigation(alert)

    async def told() -> bool:
        return bool((await scene.get("Investigation", name))["status"].get("outcome") == outcome)

    await scene.until(f"the outcome of {alert} is {outcome}", told)
    return str((await scene.get("Investigation", name))["status"]["outcome"])


async def test_an_alert_that_fires_again_recurred_and_its_next_end_settles(scene: Scene) -> None:
    run = (await check_goldens(played, scene))["outcome"].run
    record = await Reads(scene.pool).record(run.id)
    assert record is not None and record.incident_outcome is not None
    assert record.incident_outcome.value == "Recurred"
