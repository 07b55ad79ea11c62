"""InvestigationDefaults: an alert without a type gets the default one, and the default chain takes it in five minutes.

A Chain that is applied meanwhile and claims the type of an alert wins.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import yaml

from e2e.scenarios.checkout import ALERT, ANSWERS, CONFIGURATION
from e2e.scenarios.layers import as_yaml
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.scene import Scene
from tarsy.client.default_type import default_alert_type

DEFAULTS = {"defaultChain": "checkout", "defaultAlertType": "Report"}
CLAIMS_LATER = {**list(yaml.safe_load_all(CONFIGURATION))[1]["spec"], "alertTypes": ["Later"]}


@pytest.fixture(autouse=True)
def shift(monkeypatch: pytest.MonkeyPatch) -> list[timedelta]:
    """How far the clock by which alerts grow old is ahead: the sum of these."""
    ahead: list[timedelta] = []
    monkeypatch.setattr("tarsy.controllers.alert.wall_clock", lambda: datetime.now(UTC) + sum(ahead, timedelta()))
    return ahead


async def test_the_default_chain_takes_an_alert_when_nothing_has_claimed_it(
    scene: Scene, shift: list[timedelta]
) -> None:
    @asynccontextmanager
    async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
        async with scene.product(CONFIGURATION, {"collector": ANSWERS}):
            await scene.put("InvestigationDefaults", "default", DEFAULTS)
            usual = await default_alert_type(scene.kube, scene.namespace)
            await scene.alert("report", ALERT, alertType=usual)
            await scene.alert("claimed", ALERT, alertType="Later")
            waits = {name: await _waits(scene, name) for name in ("report", "claimed")}
            await scene.put("Chain", "later", CLAIMS_LATER)
            claimed = (await scene.run("claimed")).record
            shift.append(timedelta(minutes=5))
            # The controller looks again when the object changes; by itself it does so when five real minutes are over.
            await scene.kube.patch("Alert", scene.namespace, "report", {"metadata": {"labels": {"look": "now"}}})
            run = await scene.run("report")
            chains = {"claimed": claimed.chain, "report": run.record.chain}
            shown = {"waits": waits, "alertType": run.record.alert_type, "chains": chains}
            yield {"default": Played("report", run, more={"default.yaml": as_yaml(shown)})}

    run = (await check_goldens(played, scene))["default"].run
    assert (run.record.alert_type, run.record.chain) == ("Report", "checkout")


async def _waits(scene: Scene, alert: str) -> Any:
    """Why no chain takes an alert yet."""
    found = await scene.reason("Alert", alert, "Accepted", "NoChain")
    (told,) = [one["message"] for one in found["status"]["conditions"] if one["type"] == "Accepted"]
    return told
