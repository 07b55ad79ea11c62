"""Tests that suites keep their cases, and that runs of samples reach a verdict, also after a crash."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import pytest

from integration.controllers.desk import Desk, eventually
from tarsy.controllers import eval_run
from tarsy.evals.cassette import AlertRecord, Header, RecordedCall, read_cassette
from tarsy.record.finding import Citation, Claim, Confidence, Finding
from tarsy.record.run import RunOutcome, State
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1 import EvalRun

NOW = "2026-01-01T12:00:00Z"
EXPECT = {"rootCause": {"entities": ["Deployment/checkout"]}, "distractors": ["redis-0"]}
WRONG = "redis-0 refuses connections."
RIGHT = "Deployment/checkout was killed: its limit is 64Mi."


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs are looked at again soon."""
    monkeypatch.setattr("tarsy.controllers.eval_run.LOOK_SECONDS", 0.2)
    monkeypatch.setattr("tarsy.controllers.eval_run.RECHECK_SECONDS", 0.3)
    monkeypatch.setattr("tarsy.controllers.eval_suite.RECHECK_SECONDS", 0.3)


def recording(secret: str = "") -> str:
    header = Header(alert=AlertRecord(type="PodCrash", data=f"it crashed {secret}"), now=NOW)  # type: ignore[arg-type]
    call = RecordedCall(server="kube", tool="get_pods", arguments={"name": "a"}, result=f"OOMKilled {secret}")
    lines = [part.model_dump_json(by_alias=True, exclude_none=True) for part in (header, call)]
    return "\n".join(lines)


async def suite(desk: Desk, *names: str, name: str = "shop", **spec: Any) -> None:
    """A suite of cases in one ConfigMap."""
    await desk.core("ConfigMap", f"cases-{name}", {"data": {one: recording() for one in names}})
    cases = [_case(one, f"cases-{name}") for one in names]
    await desk.put("EvalSuite", name, {"cases": cases, "gate": {"passRateMin": 1}, **spec})


def _case(name: str, config_map: str = "cases-shop") -> dict[str, Any]:
    return {"name": name, "source": {"configMapKeyRef": {"name": config_map, "key": name}}, "expect": EXPECT}


async def measure(desk: Desk, name: str, baseline: str | None = None, **spec: Any) -> dict[str, Any]:
    body: dict[str, Any] = {"suiteRef": {"name": "shop"}, "candidate": {"chainRef": {"name": "one"}}, **spec}
    if baseline is not None:
        body["baseline"] = {"evalRunRef": {"name": baseline}}
    return await desk.put("EvalRun", name, body)


async def answer(desk: Desk, text: str, state: State = State.COMPLETED) -> None:
    """Plays the worker of one sample."""

    async def claimed() -> Any:
        try:
            return await desk.claim()
        except ValueError:  # nothing to claim yet
            return None

    run = await eventually(claimed)
    citation = Citation(call_id="call_0123456789ab", quote="OOMKilled", supported=True)
    claim = Claim(text=text, citations=(citation,), supported=True)
    finding = Finding(summary=text, confidence=Confidence.HIGH, claims=(claim,))
    await desk.runs.finish(run.id, run.attempt, RunOutcome(state, finding=finding))


async def verdict(desk: Desk, name: str) -> Mapping[str, Any]:
    async def complete() -> Mapping[str, Any] | None:
        found = (await desk.get("EvalRun", name)).get("status") or {}
        complete = [c for c in found.get("conditions", ()) if c["type"] == "Complete" and c["status"] == "True"]
        return found if complete else None

    found = await eventually(complete)
    assert found is not None
    return found


async def test_suite_copies_its_cases_and_keeps_them(desk: Desk) -> None:
    await suite(desk, "oom", "dns")
    async with desk.controller():
        await desk.reason("EvalSuite", "shop", "Ready", "True", "CasesStored")
        uid = UUID((await desk.get("EvalSuite", "shop"))["metadata"]["uid"])
        before = await desk.evals.cases(uid)
        assert sorted(before) == ["dns", "oom"]
        await desk.kube.delete("ConfigMap", desk.namespace, "cases-shop")
        patch = {"spec": {"samples": 2}}
        await desk.kube.patch("EvalSuite", desk.namespace, "shop", patch)

        async def seen() -> bool:
            return bool((await desk.get("EvalSuite", "shop"))["status"]["observedGeneration"] == 2)

        await eventually(seen)
        assert (await desk.conditions("EvalSuite", "shop"))["Ready"][0] == "True"
        assert await desk.evals.cases(uid) == before


async def test_recording_is_masked_again(desk: Desk) -> None:
    secret = "password: hunter2-hunter2"
    await desk.core("ConfigMap", "cases", {"data": {"one": recording(secret)}})
    source = {"configMapKeyRef": {"name": "cases", "key": "one"}}
    await desk.put("EvalSuite", "shop", {"cases": [{"name": "one", "source": source, "expect": EXPECT}]})
    async with desk.controller():
        await desk.reason("EvalSuite", "shop", "Ready", "True", "CasesStored")
        uid = UUID((await desk.get("EvalSuite", "shop"))["metadata"]["uid"])
        case = (await desk.evals.cases(uid))["one"]
        stored = await desk.evals.case(uid, "one", case.digest)
        assert stored is not None
        found = read_cassette(stored.cassette)
        assert "hunter2" not in found.header.alert.data + found.calls[0].result
        assert "OOMKilled" in found.calls[0].result


async def test_suite_reports_every_error_at_once(desk: Desk) -> None:
    await desk.core("ConfigMap", "cases", {"data": {"bad": "no cassette"}})
    ref = {"name": "cases"}
    cases = [
        {"name": "bad", "source": {"configMapKeyRef": {**ref, "key": "bad"}}, "expect": EXPECT},
        {"name": "gone", "source": {"configMapKeyRef": {**ref, "key": "gone"}}, "expect": EXPECT},
        {
            "name": "run",
            "source": {"investigationRef": {"name": "never"}},
            "expect": {"facts": [{"expression": "1 +"}]},
        },
    ]
    await desk.put("EvalSuite", "shop", {"cases": cases})
    await desk.put("EvalSuite", "empty", {})
    async with desk.controller():

        async def reported() -> str:
            found = (await desk.conditions("EvalSuite", "shop")).get("Ready", ("", "", ""))
            assert found[0] == "False"
            return found[2]

        message = await eventually(reported)
        for part in ("spec.cases[0].source", "gone", "spec.cases[2].source", "facts[0].expression"):
            assert part in message
        await desk.reason("EvalSuite", "empty", "Ready", "False", "NoCases")


async def test_candidate_that_regresses_is_told_from_one_that_passes(desk: Desk) -> None:
    await desk.configure()
    await suite(desk, "oom", "dns")
    async with desk.controller():
        await measure(desk, "before")
        for _ in range(2):
            await answer(desk, RIGHT)
        found = await verdict(desk, "before")
        assert (found["phase"], found["progress"]) == ("Passed", "2/2")
        assert found["candidate"]["chain"] == "one"
        assert len(found["candidate"]["revision"]) == 16
        await measure(desk, "worse", baseline="before")
        await answer(desk, RIGHT)
        await answer(desk, WRONG)
        found = await verdict(desk, "worse")
        assert found["phase"] == "Regressed"
        assert len(found["failedCases"]) == 1
        assert found["regressedCases"] == found["failedCases"]
        assert (await desk.conditions("EvalRun", "worse"))["Passed"][:2] == ("False", "Regressed")
        await desk.told(("EvalRun", "Passed"), ("EvalRun", "Regressed"))

        async def last() -> bool:
            status = (await desk.get("EvalSuite", "shop"))["status"]
            return (status.get("lastRun"), status.get("lastVerdict")) == ("worse", "Regressed")

        await eventually(last)


async def test_run_goes_on_after_its_controller_was_killed(desk: Desk) -> None:
    await desk.configure()
    await suite(desk, "oom", "dns", samples=2, parallelism=2)
    async with desk.controller():
        created = await measure(desk, "one")
        await answer(desk, RIGHT)
    async with desk.controller():
        for _ in range(3):
            await answer(desk, RIGHT)
        assert (await verdict(desk, "one"))["progress"] == "4/4"
    samples = await desk.evals.samples(UUID(created["metadata"]["uid"]))
    assert len({sample.investigation for sample in samples}) == 4
    assert len(await desk.investigations()) == 4


async def test_samples_are_bounded_in_parallel_and_belong_to_the_run(desk: Desk) -> None:
    await desk.configure()
    await suite(desk, "a", "b", "c", parallelism=2)
    async with desk.controller():
        run = await measure(desk, "one")

        async def two() -> bool:
            return len(await desk.investigations()) == 2

        await eventually(two)
        for found in await desk.investigations():
            assert found["metadata"]["ownerReferences"][0]["uid"] == run["metadata"]["uid"]
            assert found["spec"]["replay"]["onMiss"] == "Refuse"
        await answer(desk, RIGHT)

        async def three() -> bool:
            return len(await desk.investigations()) == 3

        await eventually(three)


async def test_runs_that_do_not_end_well_are_insufficient(desk: Desk) -> None:
    await desk.configure()
    await suite(desk, "oom")
    async with desk.controller():
        await measure(desk, "one")
        await answer(desk, RIGHT, State.TIMED_OUT)
        found = await verdict(desk, "one")
        assert (found["phase"], found["samples"]["inconclusive"]) == ("Insufficient", 1)


async def test_candidate_that_changes_during_the_run_is_insufficient(desk: Desk) -> None:
    await desk.configure()
    await suite(desk, "oom")
    async with desk.controller():
        await measure(desk, "one")
        await desk.reason("EvalRun", "one", "Complete", "False", "Running")
        await desk.kube.patch("Agent", desk.namespace, "one", {"spec": {"instructions": "Look again."}})
        found = await verdict(desk, "one")
        assert found["phase"] == "Insufficient"
        assert "changed during the run" in found["summary"]


async def test_cancelled_run_cancels_its_samples(desk: Desk) -> None:
    await desk.configure()
    await suite(desk, "oom")
    async with desk.controller():
        await measure(desk, "one")
        await desk.reason("EvalRun", "one", "Complete", "False", "Running")

        async def created() -> bool:
            return len(await desk.investigations()) == 1

        await eventually(created)
        await desk.kube.patch("EvalRun", desk.namespace, "one", {"spec": {"desiredState": "Cancelled"}})
        assert (await verdict(desk, "one"))["phase"] == "Cancelled"
        (sample,) = await desk.investigations()
        assert sample["spec"]["desiredState"] == "Cancelled"


async def test_run_waits_for_what_it_names(desk: Desk) -> None:
    async with desk.controller():
        await measure(desk, "one")
        await desk.reason("EvalRun", "one", "Complete", "False", "SuiteMissing")
        await suite(desk, "oom")
        await desk.reason("EvalRun", "one", "Complete", "False", "ChainMissing")
        await desk.configure()
        await desk.reason("EvalRun", "one", "Complete", "False", "Running")


async def test_author_who_may_not_read_the_recordings_measures_nothing(desk: Desk) -> None:
    await desk.configure()
    await suite(desk, "oom")
    async with desk.controller():
        await desk.reason("EvalSuite", "shop", "Ready", "True", "CasesStored")
        author = {"username": "mallory", "groups": ["system:authenticated"]}
        await measure(desk, "one", author=author)
        message = await desk.reason("EvalRun", "one", "Complete", "False", "Forbidden")
        assert "may not use Chain" in message
        assert "may not read ConfigMap" in message and "cases-shop" in message
        assert await desk.investigations() == []
        await desk.put("EvalSuite", "theirs", {"cases": [_case("oom")], "author": author})
        await desk.reason("EvalSuite", "theirs", "Ready", "False", "Forbidden")


async def test_deletion_that_is_told_after_the_end_of_the_samples_cancels_the_run(desk: Desk) -> None:
    """The samples go with their run, and the watch of one kind may be slower than that of another."""
    await desk.configure()
    await suite(desk, "oom")
    async with desk.controller():
        await measure(desk, "one")
        await desk.reason("EvalRun", "one", "Complete", "False", "Running")
    context, known = await desk.listed(), await desk.get("EvalRun", "one")
    await desk.kube.delete("EvalRun", desk.namespace, "one")
    for sample in await desk.investigations():  # a real API server has no garbage collector beside it here
        await desk.kube.delete("Investigation", desk.namespace, sample["metadata"]["name"])
    for begun in await desk.evals.begun(UUID(known["metadata"]["uid"])):
        await desk.runs.object_deleted(begun.investigation)
    await eval_run.reconcile(parse_as(EvalRun, known), desk.evals, context)
    run = await desk.evals.run(UUID(known["metadata"]["uid"]))
    assert run is not None and run.verdict == "Cancelled"


async def test_run_that_a_newer_version_began_waits_after_the_rollback_and_can_be_cancelled(desk: Desk) -> None:
    await desk.configure()
    await suite(desk, "oom")
    async with desk.controller():
        created = await measure(desk, "one")
        await desk.reason("EvalRun", "one", "Complete", "False", "Running")
    uid = UUID(created["metadata"]["uid"])
    await desk.pool.execute(
        """UPDATE eval_run SET terms = jsonb_set(terms, '{gate,newer}', '{"x": 1}') WHERE id = $1""", uid
    )
    async with desk.controller():
        message = await desk.reason("EvalRun", "one", "Complete", "False", "TermsUnreadable")
        assert "gate.newer" in message
        await desk.kube.patch("EvalRun", desk.namespace, "one", {"spec": {"desiredState": "Cancelled"}})
        assert (await verdict(desk, "one"))["phase"] == "Cancelled"
        (sample,) = await desk.investigations()
        assert sample["spec"]["desiredState"] == "Cancelled"


async def test_finished_run_and_its_suite_leave_with_their_objects(desk: Desk) -> None:
    await desk.configure()
    await suite(desk, "oom")
    async with desk.controller():
        created = await measure(desk, "one")
        await desk.reason("EvalRun", "one", "Complete", "False", "Running")
        uid = UUID((await desk.get("EvalSuite", "shop"))["metadata"]["uid"])
        await desk.kube.delete("EvalRun", desk.namespace, "one")
        await desk.kube.delete("EvalSuite", desk.namespace, "shop")

        async def ended() -> bool:
            run = await desk.evals.run(UUID(created["metadata"]["uid"]))
            return run is not None and run.verdict == "Cancelled" and not await desk.evals.cases(uid)

        await eventually(ended)
