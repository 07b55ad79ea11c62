"""Tests that cases of suites are read from Git, and that what is wrong is told in the condition."""

import asyncio
import shutil
import ssl
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from integration.controllers.desk import Desk, eventually
from integration.controllers.test_evals import EXPECT, recording
from integration.git.host import GitHost
from tarsy.evals.cassette import read_cassette
from tarsy.git.source import GitFile, GitProblem
from tarsy.mcp.connection import Policy
from tarsy.plan.model import Value
from tarsy.runtime.git_files import FetcherClient, fetcher_plan

COMMIT = "1" * 40
HOSTS = ("git.example.com",)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Suites are looked at again soon."""
    monkeypatch.setattr("tarsy.controllers.eval_suite.RECHECK_SECONDS", 0.3)


def case(
    name: str, path: str = "case.jsonl", url: str = "https://git.example.com/cases", **more: str
) -> dict[str, Any]:
    git = {"url": url, "commit": COMMIT, "path": path, **more}
    return {"name": name, "source": {"git": git}, "expect": EXPECT}


@pytest.mark.once("the API server takes no part in it")
async def test_cassette_in_git_is_copied_masked_and_kept(desk: Desk, tmp_path: Path) -> None:
    async def resolve(value: Value) -> str:
        return value.value or ""

    if shutil.which("git") is None:
        pytest.skip("needs git")
    async with GitHost(tmp_path) as host:
        commit = host.repository({"cases/one.jsonl": recording("password: hunter2-hunter2")})
        policy = Policy(resolve, ssl.create_default_context(), allow_stdio=True)
        read = FetcherClient(policy, fetcher_plan("tarsy-system", child=True), host.certificate)
        await desk.put("EvalSuite", "shop", {"cases": [case("one", "cases/one.jsonl", host.url(), commit=commit)]})
        async with desk.controller(git_hosts=(host.name,), read_git=read):
            await desk.reason("EvalSuite", "shop", "Ready", "True", "CasesStored")
    uid = UUID((await desk.get("EvalSuite", "shop"))["metadata"]["uid"])
    stored = (await desk.evals.cases(uid))["one"]
    found = await desk.evals.case(uid, "one", stored.digest)
    assert found is not None and found.plan is None
    cassette = read_cassette(found.cassette)
    assert "hunter2" not in cassette.header.alert.data + cassette.calls[0].result

    async def never(file: GitFile) -> bytes:
        raise AssertionError("a case that is stored is not read again")

    async with desk.controller(read_git=never):  # the host is not allowed any more, and the case stays
        await desk.kube.patch("EvalSuite", desk.namespace, "shop", {"spec": {"samples": 2}})

        async def seen() -> bool:
            return bool((await desk.get("EvalSuite", "shop"))["status"]["observedGeneration"] == 2)

        await eventually(seen)
        assert (await desk.conditions("EvalSuite", "shop"))["Ready"][0] == "True"


@pytest.mark.once("the API server takes no part in it")
async def test_what_is_wrong_is_told_for_all_cases_at_once(desk: Desk) -> None:
    asked: list[str] = []
    answers: dict[str, bytes | GitProblem] = {
        "text": b"no cassette",
        "none": GitProblem("GitPathMissing", "path: none does not exist in this commit"),
        "good": recording().encode(),
    }

    async def read(file: GitFile) -> bytes:
        asked.append(file.path)
        answer = answers.get(file.path)
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, GitProblem):
            raise answer
        assert answer is not None
        return answer

    cases = [
        case("text", "text"),
        case("none", "none"),
        case("good", "good"),
        case("slow", "slow"),
        case("elsewhere", "good", "https://other.example.com/cases"),
    ]
    await desk.put("EvalSuite", "shop", {"cases": cases})
    async with desk.controller(git_hosts=HOSTS, read_git=read):

        async def told() -> str:
            status, reason, message = (await desk.conditions("EvalSuite", "shop")).get("Ready", ("", "", ""))
            assert (status, reason) == ("False", "CassetteInvalid")
            assert "spec.cases[0].source.git: text of commit 111111111111, line 1" in message
            assert "spec.cases[1].source.git.path: none does not exist" in message
            assert "cases[2]" not in message
            assert "spec.cases[3].source.git: slow of commit 111111111111 is being read" in message
            assert "spec.cases[4].source.git.url: host other.example.com is not allowed" in message
            assert "--git-host other.example.com" in message
            return message

        await eventually(told)
        assert (await desk.get("EvalSuite", "shop"))["status"]["cases"] == {"total": 5, "stored": 1}
        await desk.still("EvalSuite", "shop")
        assert sorted(asked) == ["good", "none", "slow", "text"]  # failures are kept for minutes


@pytest.mark.newer_api
async def test_source_must_be_one_of_three_and_name_a_full_commit(desk: Desk) -> None:
    from tarsy.kube.client import ApiError

    both = case("one")
    both["source"]["configMapKeyRef"] = {"name": "a", "key": "b"}
    for wrong, why in (
        (both, "exactly one"),
        (case("one", commit="main"), "commit"),
        (case("one", url="http://git.example.com/cases"), "url"),
        (case("one", path="/etc/passwd"), "path"),
    ):
        with pytest.raises(ApiError) as caught:
            await desk.put("EvalSuite", "shop", {"cases": [wrong]})
        assert why in str(caught.value)
    await desk.put("EvalSuite", "shop", {"cases": [case("one")]})
