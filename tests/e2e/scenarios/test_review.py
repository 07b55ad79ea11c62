"""Reviews: a person claims a finding, says that a part of it is right, and asks for another look; the log keeps all."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from e2e.scenarios.checkout import ALERT, ANSWERS, CONFIGURATION, ON_CALL
from e2e.scenarios.layers import as_yaml
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.scene import Scene
from tarsy.record.judging.review import summarize_reviews
from tarsy.store.judging.reviews import Reviews

RIGHTS = (
    {"apiGroups": ["tarsy.dev"], "resources": ["chains"], "verbs": ["use"]},
    {"apiGroups": ["tarsy.dev"], "resources": ["reviews"], "verbs": ["create"]},
)
CAUSE = {"apiVersion": "apps/v1", "kind": "StatefulSet", "namespace": "pay", "name": "ledger-db"}
SAID: tuple[tuple[str, dict[str, Any], str], ...] = (
    ("InProgress", {}, "claimed"),
    ("Completed", {"verdict": "Partly", "rootCause": CAUSE, "note": "The database, and not the network."}, "completed"),
    ("Reopened", {"reopen": True}, "reopened"),
    ("Completed", {"verdict": "Right", "rootCause": CAUSE}, "completed"),
)


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    await scene.let(*RIGHTS)
    reviews, shown = Reviews(scene.pool), []
    async with scene.product(CONFIGURATION, {"collector": ANSWERS}):
        await scene.alert("checkout-down", ALERT, author=ON_CALL)
        run = await scene.run("checkout-down")
        about = {"name": await scene.investigation("checkout-down")}
        for number, (phase, said, action) in enumerate(SAID, 1):
            spec = {"investigationRef": about, "author": ON_CALL, **said}
            await scene.put("Review", f"rita-{number}", spec)

            async def noted(number: int = number) -> bool:
                return len(await reviews.log(run.id)) == number

            await scene.until(f"the log has {number} entries", noted)
            found = await scene.reason("Review", f"rita-{number}", "Accepted", "Stored")
            log = await reviews.log(run.id)
            assert log[-1].action.value == action and found["status"]["phase"] == phase
            summary = summarize_reviews(log)
            state = {"state": summary.state.value, "verdict": summary.verdict and summary.verdict.value}
            shown.append({"status": found["status"], "summary": state, "note": log[-1].note})
        calibration = as_yaml(await _calibration(scene))
        more = {"reviews.yaml": as_yaml(shown), "calibration.yaml": calibration}
        yield {"review": Played("checkout-down", run, more=more)}


async def _calibration(scene: Scene) -> dict[str, Any]:
    """What the Chain tells of the verdict; a label is written so that the controller looks at once."""
    namespace = (await scene.get("Chain", "checkout"))["metadata"]["namespace"]
    await scene.kube.patch("Chain", namespace, "checkout", {"metadata": {"labels": {"look": "now"}}})
    found = await scene.reason("Chain", "checkout", "Calibrated", "FewVerdicts")
    (told,) = [one for one in found["status"]["conditions"] if one["type"] == "Calibrated"]
    return {"calibration": found["status"]["calibration"], "condition": told}


async def test_what_a_person_says_of_a_finding_is_the_label_and_stays_on_record(scene: Scene) -> None:
    run = (await check_goldens(played, scene))["review"].run
    log = await Reviews(scene.pool).log(run.id)
    assert [one.verdict and one.verdict.value for one in log] == [None, "Partly", None, "Right"]
    assert {one.author for one in log} == {"rita"}
