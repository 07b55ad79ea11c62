"""Skills: readiness, texts frozen at acceptance, replays that keep them."""

from typing import Any

import pytest

from integration.controllers.desk import Desk
from integration.controllers.test_replays import OF_RUN, a_finished_run, accepted
from tarsy.plan.skills import text_digest
from tarsy.record.run import RunOutcome, State

RULE = {"alertTypes": ["PodCrash"]}
REF = {"name": "texts", "key": "pods.md"}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsy.controllers.runs.acceptance.RECHECK_SECONDS", 0.3)
    monkeypatch.setattr("tarsy.controllers.skill.RECHECK_SECONDS", 0.3)
    monkeypatch.setattr("tarsy.controllers.skill.SETTLED_RECHECK_SECONDS", 0.3)


async def put_skill(desk: Desk, name: str = "pods", **spec: Any) -> None:
    text = {} if "configMapKeyRef" in spec else {"body": "Read the log."}
    await desk.put("Skill", name, {"description": "Explains pods.", "appliesTo": RULE, **text, **spec})


async def change(desk: Desk, text: str) -> None:
    await desk.kube.patch("ConfigMap", desk.namespace, "texts", {"data": {"pods.md": text}})


async def test_a_changed_config_map_moves_the_next_run_and_neither_a_running_one_nor_its_replay(desk: Desk) -> None:
    async with desk.controller():
        await put_skill(desk, configMapKeyRef=REF)
        message = await desk.reason("Skill", "pods", "Ready", "False", "ConfigMapMissing")
        assert f"spec.configMapKeyRef: ConfigMap {desk.namespace}/texts does not exist; create it" in message
        await desk.core("ConfigMap", "texts", {"data": {"pods.md": "Read the log."}})
        await desk.reason("Skill", "pods", "Ready", "True", "Usable")
        status = (await desk.get("Skill", "pods"))["status"]
        assert (status["digest"], status["sizeBytes"]) == (text_digest("Read the log."), 13)
        await a_finished_run(desk)

        await change(desk, "Read the events.")

        claimed = await desk.claim()
        assert [one.text for one in claimed.plan.skills] == ["Read the log."]
        assert [use.name for use in claimed.plan.stages[0].agents[0].skills] == ["pods"]
        await desk.runs.finish(claimed.id, claimed.attempt, RunOutcome(State.COMPLETED))
        await desk.put("Investigation", "next", {"alert": {"alertType": "PodCrash", "data": "it crashed"}})
        await accepted(desk, "next")
        following = await desk.claim()
        assert [(one.text, one.digest) for one in following.plan.skills] == [
            ("Read the events.", text_digest("Read the events."))
        ]
        await desk.runs.finish(following.id, following.attempt, RunOutcome(State.COMPLETED))
        await desk.kube.delete("ConfigMap", desk.namespace, "texts")
        await desk.put("Investigation", "again", OF_RUN)
        await accepted(desk, "again")
        assert [one.text for one in (await desk.claim()).plan.skills] == ["Read the log."]


async def test_a_run_waits_for_the_text_of_a_skill_and_says_which(desk: Desk) -> None:
    async with desk.controller():
        await put_skill(desk, configMapKeyRef=REF)
        await desk.configure()
        await desk.put("Investigation", "run", {"alert": {"alertType": "PodCrash", "data": "it crashed"}})
        message = await desk.reason("Investigation", "run", "Accepted", "False", "ConfigMapMissing")
        assert message.startswith(
            f"Skill {desk.namespace}/pods: spec.configMapKeyRef: ConfigMap {desk.namespace}/texts"
        )
        await desk.reason("Chain", "one", "Ready", "False", "ReferencesNotReady")
        await desk.core("ConfigMap", "texts", {"data": {"pods.md": "x" * 65_537}})
        message = await desk.reason("Investigation", "run", "Accepted", "False", "ConfigMapTooLarge")
        assert "has more than 65536 bytes; shorten it" in message
        await change(desk, "x" * 65_536)
        await accepted(desk, "run")


async def test_labels_of_the_alert_choose_skills(desk: Desk) -> None:
    async with desk.controller():
        await put_skill(desk, "web", appliesTo={"workloadLabels": {"app": "web"}})
        await put_skill(desk, "api", appliesTo={"workloadLabels": {"app": "api"}})
        await desk.configure()
        data = '{"alerts": [{"labels": {"app": "web", "pod": "web-1"}}]}'
        await desk.put("Investigation", "run", {"alert": {"alertType": "PodCrash", "data": data}})
        await accepted(desk, "run")
        claimed = await desk.claim()
        assert [one.name for one in claimed.plan.skills] == ["web"]
        assert [use.name for use in claimed.plan.stages[0].agents[0].skills] == ["web"]
