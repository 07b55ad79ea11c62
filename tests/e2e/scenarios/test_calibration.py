"""Calibration: 12 of 20 findings with confidence High were right, so the Chain is not Calibrated, and High says so."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from e2e.scenarios.brain import calls, finding, says
from e2e.scenarios.checkout import ALERT, CONFIGURATION, ON_CALL
from e2e.scenarios.layers import as_yaml
from e2e.scenarios.played import Played, check_goldens
from e2e.scenarios.scene import Scene

RIGHTS = (
    {"apiGroups": ["tarsy.dev"], "resources": ["chains"], "verbs": ["use"]},
    {"apiGroups": ["tarsy.dev"], "resources": ["reviews"], "verbs": ["create"]},
)
SURE = [
    says("I read the log.", calls("kubernetes.get_logs", pod="checkout-5d4f", lines=2)),
    says(
        "The database of checkout refuses connections."
        + finding(
            "checkout cannot reach its database.",
            "High",
            ("The connection is refused.", "kubernetes.get_logs", "5432: connection refused"),
        )
    ),
]
TRUSTED = f"""
kind: MCPServer
name: kubernetes
spec:
  transport: {{type: http, http: {{url: "https://tools.example/kubernetes"}}}}
  tools: {{readOnly: [list_pods, get_logs]}}
  evidence: {{classes: [{{tools: [get_logs], class: K}}]}}  # else no finding has more than Medium
---
{CONFIGURATION}"""
RIGHT, ALL = 12, 20


@asynccontextmanager
async def played(scene: Scene) -> AsyncIterator[Mapping[str, Played]]:
    await scene.let(*RIGHTS)
    async with scene.product(TRUSTED, {"collector": SURE}, at_once=ALL):
        for number in range(ALL):
            await scene.alert(f"down-{number}", ALERT, author=ON_CALL)
        runs = [await scene.run(f"down-{number}") for number in range(ALL)]
        for number in range(ALL):
            about = {"name": await scene.investigation(f"down-{number}")}
            verdict = {"verdict": "Right" if number < RIGHT else "Wrong"}
            await scene.put("Review", f"down-{number}", {"investigationRef": about, "author": ON_CALL, **verdict})
        for number in range(ALL):
            await scene.reason("Review", f"down-{number}", "Accepted", "Stored")
        # The controller counts again each minute, and when the Chain changes.
        await scene.kube.patch("Chain", scene.namespace, "checkout", {"metadata": {"labels": {"look": "now"}}})
        chain = (await scene.reason("Chain", "checkout", "Calibrated", "HighUnreliable"))["status"]
        name = await scene.investigation("down-0")

        async def told() -> bool:
            return "shownConfidence" in (await scene.get("Investigation", name))["status"]["finding"]

        await scene.until("the finding shows its count", told)
        shown = {
            "calibration": chain["calibration"],
            "condition": next(one for one in chain["conditions"] if one["type"] == "Calibrated"),
            "finding": (await scene.get("Investigation", name))["status"]["finding"],
        }
        yield {"calibration": Played("down-0", runs[0], more={"calibration.yaml": as_yaml(shown)})}


async def test_a_confidence_that_people_found_wrong_too_often_is_shown_with_its_count(scene: Scene) -> None:
    run = (await check_goldens(played, scene))["calibration"].run
    assert run.record.outcome is not None and run.record.outcome.finding is not None
    assert run.record.outcome.finding.confidence.value == "High", "the word of the agents stays"
