"""Skills: readiness, texts frozen at acceptance, replays that keep them."""

import shutil
import ssl
from pathlib import Path
from typing import Any

import pytest

from integration.controllers.desk import Desk
from integration.controllers.test_replays import OF_RUN, a_finished_run, accepted
from integration.git.host import GitHost
from tarsy.git.source import GitFile, GitProblem
from tarsy.mcp.connection import Policy
from tarsy.plan.model import Value
from tarsy.plan.skills import text_digest
from tarsy.record.run import RunOutcome, State
from tarsy.runtime.git_files import FetcherClient, fetcher_plan

RULE = {"alertTypes": ["PodCrash"]}
REF = {"name": "texts", "key": "pods.md"}


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tarsy.controllers.runs.acceptance.RECHECK_SECONDS", 0.3)
    monkeypatch.setattr("tarsy.controllers.skill.RECHECK_SECONDS", 0.3)
    monkeypatch.setattr("tarsy.controllers.skill.SETTLED_RECHECK_SECONDS", 0.3)


async def put_skill(desk: Desk, name: str = "pods", **spec: Any) -> None:
    text = {} if {"configMapKeyRef", "git"} & spec.keys() else {"body": "Read the log."}
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


async def never(file: GitFile) -> bytes:
    raise AssertionError("a file that was read is not read again")


@pytest.mark.once("the API server takes no part in it")
async def test_texts_in_git_are_read_once_and_a_new_commit_moves_the_next_run(desk: Desk, tmp_path: Path) -> None:
    async def resolve(value: Value) -> str:
        return value.value or ""

    if shutil.which("git") is None:
        pytest.skip("needs git")
    async with GitHost(tmp_path) as host:
        first = host.repository({"pods/SKILL.md": "Read the log.", "runbook.md": "Call the owner."})
        policy = Policy(resolve, ssl.create_default_context(), allow_stdio=True)
        read = FetcherClient(policy, fetcher_plan("tarsy-system", child=True), host.certificate)
        git = {"url": host.url(), "commit": first, "path": "pods/SKILL.md"}
        async with desk.controller(git_hosts=(host.name,), read_git=read):
            await put_skill(desk, git=git)
            await desk.reason("Skill", "pods", "Ready", "True", "Usable")
            assert (await desk.get("Skill", "pods"))["status"]["digest"] == text_digest("Read the log.")
            await desk.configure()
            runbook = {"git": {**git, "path": "runbook.md"}}
            alert = {"alertType": "PodCrash", "data": "it crashed", "runbook": runbook}
            await desk.put("Investigation", "run", {"alert": alert})
            await accepted(desk, "run")
    claimed = await desk.claim()
    (skill,) = claimed.plan.skills
    assert (skill.text, skill.git.commit if skill.git else "") == ("Read the log.", first)
    assert claimed.runbook == "Call the owner."
    await desk.runs.finish(claimed.id, claimed.attempt, RunOutcome(State.COMPLETED))
    async with desk.controller(git_hosts=(host.name,), read_git=never):  # the repository is away now
        await desk.put("Investigation", "next", {"alert": alert})
        await accepted(desk, "next")
        assert [one.text for one in (await desk.claim()).plan.skills] == ["Read the log."]
        await desk.kube.patch("Skill", desk.namespace, "pods", {"spec": {"git": {"commit": "2" * 40}}})
        await desk.reason("Skill", "pods", "Ready", "False", "GitUnavailable")


@pytest.mark.once("the API server takes no part in it")
async def test_a_text_in_git_that_cannot_be_used_is_told_with_its_field(desk: Desk) -> None:
    answers: dict[str, bytes | GitProblem] = {
        "none": GitProblem("GitPathMissing", "path: none does not exist in this commit"),
        "large": b"x" * 65_537,
        "binary": b"\xff",
        "blank": b" ",
        "right": b"x" * 65_536,
    }

    async def read(file: GitFile) -> bytes:
        answer = answers[file.path]
        if isinstance(answer, GitProblem):
            raise answer
        return answer

    git = {"url": "https://git.example.com/skills", "commit": "1" * 40}
    async with desk.controller(git_hosts=("git.example.com",), read_git=read):
        for name in answers:
            await put_skill(desk, name, git={**git, "path": name})
        await put_skill(desk, "strange", git={**git, "url": "https://elsewhere.example.com/a", "path": "a"})
        for name, reason, said in (
            ("none", "GitPathMissing", "spec.git.path: none does not exist"),
            ("large", "GitTooLarge", "spec.git.path: the file has more than 65536 bytes"),
            ("binary", "GitTextInvalid", "spec.git.path: byte 0 of the file is no UTF-8"),
            ("blank", "GitTextInvalid", "spec.git.path: the file is empty"),
            ("strange", "GitHostNotAllowed", "spec.git.url: host elsewhere.example.com is not allowed"),
        ):
            assert (await desk.reason("Skill", name, "Ready", "False", reason)).startswith(said)
        await desk.reason("Skill", "right", "Ready", "True", "Usable")
        await desk.configure()
        await desk.put("Investigation", "run", {"alert": {"alertType": "PodCrash", "data": "it crashed"}})
        message = await desk.reason("Investigation", "run", "Accepted", "False", "GitTextInvalid")
        assert message.count("; Skill ") == 4  # every skill that is wrong
