"""Tests suites and their runs over HTTP: a table of case by revision, and the samples of one run."""

from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

from integration.http.site import Site, Visitor, condition, uid
from integration.store.build import worker
from tarsy.record.judging.replay import ReplayReport
from tarsy.record.run import RunOutcome, State
from tarsy.store.judging.eval_rows import EndedSample, NewEvalRun
from tarsy.store.judging.evals import Evals
from tarsy.store.judging.judge_calls import EndedJudgeCall, JudgeCalls, JudgeItem
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import Runs

EXPECT = {"rootCause": {"entities": ["Deployment/checkout"]}}
OLD, NEW = "1" * 16, "2" * 16
SOURCE = {"configMapKeyRef": {"name": "cases", "key": "oom"}}
CHECK = {"name": "rootCause", "outcome": "Failed", "sentence": "No supported claim blames Deployment/checkout."}


def _terms(*names: str, samples: int = 2, **more: Any) -> dict[str, Any]:
    cases = [{"name": name, "recording": "r", "digest": f"d-{name}", "expect": EXPECT} for name in names]
    return {"cases": cases, "samples": samples, "parallelism": 4, "gate": {}, **more}


async def _begun(site: Site, namespace: str, suite: UUID, name: str, revision: str, **terms: Any) -> UUID:
    run = await site.put(
        "EvalRun", namespace, name, {"suiteRef": {"name": "checkout"}, "candidate": {"chainRef": {"name": "triage"}}}
    )
    new = NewEvalRun(
        uid(run),
        namespace,
        "ns",
        name,
        suite,
        "checkout",
        "s1",
        _terms("oom", "dns", **terms),
        "triage",
        namespace,
        revision,
    )
    await Evals(site.services.pool).begin(new)
    return uid(run)


async def _ended(site: Site, run: UUID, case: str, sample: int, outcome: str, **more: Any) -> None:
    evals, investigation = Evals(site.services.pool), more.pop("investigation", uuid4())
    await evals.add_sample(run, case, sample, investigation)
    await evals.end_sample(run, EndedSample(case, sample, outcome, more.pop("checks", []), **more))


async def _suite(site: Site, namespace: str) -> UUID:
    cases = [{"name": name, "source": SOURCE, "expect": EXPECT} for name in ("oom", "dns")]
    suite = await site.put(
        "EvalSuite", namespace, "checkout", {"cases": cases, "samples": 2}, digest="s1", lastVerdict="Regressed"
    )
    return uid(suite)


async def _replayed(site: Site, namespace: str, name: str, rungs: dict[str, int]) -> UUID:
    """A finished replay on record."""
    pool = site.services.pool
    run = (await site.accepted(namespace, name)).id
    await Claims(pool).claim(await worker(pool), 10, 1000)
    report = ReplayReport(rungs=rungs, unused=0)
    await Runs(pool).finish(run, 1, RunOutcome(State.COMPLETED, final_analysis="All.", replay=report))
    return run


async def test_a_suite_is_a_table_of_case_by_revision(site: Site, administrator: Visitor, namespace: str) -> None:
    suite = await _suite(site, namespace)
    promotion = {"policy": "WhenPassed", "suiteRef": {"name": "checkout"}}
    chain = {"stages": [{"name": "look", "agents": [{"name": "one"}]}], "promotion": promotion}
    await site.put(
        "Chain",
        namespace,
        "triage",
        chain,
        servingRevision=OLD,
        candidateRevision=NEW,
        conditions=[condition("Promoted", "False", "Regressed", "1 case newly fails: oom.")],
    )
    replay = await _replayed(site, namespace, "sample", {"exact": 3, "miss": 1})
    first = await _begun(site, namespace, suite, "before", OLD)
    for case in ("oom", "dns"):
        await _ended(site, first, case, 0, "Passed", coverage=0.75, tokens=10, cost_usd=Decimal("0.1"))
    await _ended(site, first, "oom", 1, "Passed", coverage=0.25, investigation=replay)
    await _ended(site, first, "dns", 1, "Inconclusive")
    await Evals(site.services.pool).finish(first, "Passed", "2 of 2 cases passed.")
    baseline = [{"name": "oom", "digest": "d-oom", "passed": 2, "failed": 0, "inconclusive": 0, "asked": 2}]
    second = await _begun(site, namespace, suite, "after", NEW, baseline=baseline)
    for sample in (0, 1):
        await _ended(site, second, "oom", sample, "Failed", checks=[CHECK], confident_wrong=sample == 0)
    await _ended(site, second, "dns", 0, "Passed")
    await site.put(
        "EvalRun",
        namespace,
        "waits",
        {"suiteRef": {"name": "checkout"}, "candidate": {"chainRef": {"name": "next"}}},
        phase="Pending",
        conditions=[condition("Complete", "False", "ChainMissing", "Chain next does not exist.")],
    )

    table = (await administrator.get(f"/namespaces/{namespace}/evalsuites/checkout")).body
    assert [(run["name"], run["revision"], run["verdict"], run["sameSuite"]) for run in table["runs"]] == [
        ("after", NEW, None, True),
        ("before", OLD, "Passed", True),
    ]
    assert (table["runs"][0]["samplesEnded"], table["runs"][0]["samples"]) == (3, 4)
    assert (table["runs"][1]["costUSD"], table["runs"][1]["tokens"]) == (0.2, 20)
    dns, oom = table["cases"]
    assert (dns["name"], oom["name"], oom["inSuite"]) == ("dns", "oom", True)
    now, before = oom["cells"]
    assert (now["passed"], now["failed"], now["asked"], now["outcome"], now["regressed"]) == (0, 2, 2, "Failed", True)
    assert now["confidentWrong"] == 1 and now["coverage"] is None and now["rungs"] == {}
    assert (before["outcome"], before["regressed"], before["coverage"]) == ("Passed", False, 0.5)
    assert before["rungs"] == {"exact": 3, "miss": 1}
    assert dns["cells"][0]["outcome"] is None, "one of its samples has not ended"
    (promoted,) = table["chains"]
    assert (promoted["servingRevision"], promoted["candidateRevision"], promoted["promoted"]) == (OLD, NEW, False)
    assert (promoted["reason"], promoted["message"]) == ("Regressed", "1 case newly fails: oom.")
    assert [(one["name"], one["reason"]) for one in table["waiting"]] == [("waits", "ChainMissing")]
    narrow = (await administrator.get(f"/namespaces/{namespace}/evalsuites/checkout", runs=1)).body
    assert [run["name"] for run in narrow["runs"]] == ["after"] and len(narrow["cases"][0]["cells"]) == 1

    (item,) = (await administrator.get("/evalsuites", namespace=namespace)).body["items"]
    assert (item["name"], item["cases"], item["samples"], item["lastVerdict"]) == ("checkout", 2, 2, "Regressed")
    path = f"/namespaces/{namespace}/evalruns/before"
    page = (await administrator.get(path, limit=3)).body
    assert [(one["case"], one["sample"], one["investigation"]) for one in page["samples"]] == [
        ("dns", 0, None),
        ("dns", 1, None),
        ("oom", 0, None),
    ]
    rest = (await administrator.get(path, **{"limit": 3, "continue": page["continue"]})).body
    assert [(one["investigation"], one["outcome"]) for one in rest["samples"]] == [("sample", "Passed")]
    of_case = (await administrator.get(path, case="oom")).body["samples"]
    assert [(one["case"], one["sample"]) for one in of_case] == [("oom", 0), ("oom", 1)]
    assert rest["continue"] is None and rest["run"]["verdict"] == "Passed"
    waits = (await administrator.get(f"/namespaces/{namespace}/evalruns/waits")).body
    assert waits["run"] is None and waits["conditions"][0]["reason"] == "ChainMissing"
    assert (await administrator.get(f"/namespaces/{namespace}/evalruns/none")).status == 404


async def test_the_table_requires_the_right_to_runs_and_shows_chains_to_whom_may_list_them(
    site: Site, namespace: str
) -> None:
    await _suite(site, namespace)
    group = {"apiGroups": ["tarsy.dev"]}
    suites = {**group, "resources": ["evalsuites"], "verbs": ["get", "list"]}
    runs = {**group, "resources": ["evalruns"], "verbs": ["list"]}
    author = await site.visitor(namespace, "author", here=[suites])
    reader = await site.visitor(namespace, "reader", here=[suites, runs])
    path = f"/namespaces/{namespace}/evalsuites/checkout"
    refused = await author.get(path)
    assert refused.status == 403 and "may not list evalruns" in refused.message
    table = await reader.get(path)
    assert (table.status, table.body["chains"], table.body["runs"]) == (200, None, [])
    assert (await reader.get(f"/namespaces/{namespace}/evalsuites/none")).status == 404


async def test_the_judge_of_a_run_is_shown_with_its_agreement_and_cost(
    site: Site, administrator: Visitor, namespace: str
) -> None:
    suite, pool = await _suite(site, namespace), site.services.pool
    ref = {"kind": "LLMProvider", "namespace": namespace, "name": "judge"}
    asked = [{"name": "limit", "question": "Is the limit named?"}]
    judge = {"provider": {"ref": ref, "type": "openai", "model": "m"}, "checklist": asked}
    run = await _begun(site, namespace, suite, "judged", NEW, judge=judge)
    path = f"/namespaces/{namespace}/evalruns/judged"
    found = (await administrator.get(path)).body["run"]["judge"]
    assert (found["role"], found["kappa"], found["calls"], found["costUSD"]) == (None, None, 0, None)
    calls = JudgeCalls(pool, uuid4())
    for number in range(2):
        item = JudgeItem("oom", "label", number)
        assert await calls.begin(run, item) == 1
        answers = [{"question": "limit", "answer": "Yes"}] if number else None
        await calls.end(run, item, 1, EndedJudgeCall(answers, None, 50, Decimal("0.25")))
    await calls.agree(run, {"role": "Gates", "sentence": "It decides.", "kappa": 0.8125, "answers": 24})
    expected = {
        "role": "Gates",
        "sentence": "It decides.",
        "kappa": 0.8125,
        "answers": 24,
        "calls": 2,
        "failedCalls": 1,
        "tokens": 100,
        "costUSD": 0.5,
        "costComplete": True,
    }
    assert (await administrator.get(path)).body["run"]["judge"] == expected
    table = await administrator.get(f"/namespaces/{namespace}/evalsuites/checkout")
    assert [one["judge"] for one in table.body["runs"]] == [expected]
