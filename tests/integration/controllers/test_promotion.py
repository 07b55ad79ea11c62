"""Tests which revision of a Chain serves, with the active controller, evaluations and the record in Postgres."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import rights
from apis import LocalApi
from integration.controllers.desk import Desk, eventually
from integration.controllers.grants import operator_kubeconfig
from integration.controllers.test_evals import RIGHT, WRONG, answer, suite, verdict
from tarsy.controllers.promotion.evaluations import PROMOTES
from tarsy.controllers.promotion.promoted import with_promotion
from tarsy.kube.client import ApiError
from tarsy.plan.model import Plan
from tarsy.resources.v1alpha1 import Chain
from tarsy.store.runs.revisions import RevisionState

GATE = {"policy": "WhenPassed", "suiteRef": {"name": "shop"}}
JANE = {"username": "jane", "groups": ["promoters"]}


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluations and candidates are looked at again soon."""
    monkeypatch.setattr("tarsy.controllers.eval_run.LOOK_SECONDS", 0.2)
    monkeypatch.setattr("tarsy.controllers.eval_run.RECHECK_SECONDS", 0.3)
    monkeypatch.setattr("tarsy.controllers.eval_suite.RECHECK_SECONDS", 0.3)
    monkeypatch.setattr("tarsy.controllers.promotion.promoted.CHECK_SECONDS", 0.5)


async def gated(desk: Desk, **promotion: Any) -> None:
    """A chain whose revisions must pass a suite of one case."""
    await desk.configure(skip=("Chain",))
    await suite(desk, "oom")
    stages = [{"name": "look", "agents": [{"name": "one"}]}]
    spec = {"alertTypes": ["PodCrash"], "llmProvider": "one", "stages": stages, "promotion": GATE | promotion}
    await desk.put("Chain", "one", spec)


async def push(desk: Desk, instructions: str) -> None:
    await desk.kube.patch("Agent", desk.namespace, "one", {"spec": {"instructions": instructions}})


async def promoted(desk: Desk, status: str, reason: str) -> str:
    """Waits for the condition `Promoted`; its message."""
    return await desk.reason("Chain", "one", "Promoted", status, reason)


async def revisions(desk: Desk) -> tuple[str | None, str | None]:
    """The revision that serves, and the candidate."""
    status = (await desk.get("Chain", "one")).get("status") or {}
    return status.get("servingRevision"), status.get("candidateRevision")


async def candidate(desk: Desk, other_than: str | None = None) -> str:
    """Waits for a candidate."""

    async def look() -> str | None:
        found = (await revisions(desk))[1]
        return found if found != other_than else None

    found = await eventually(look)
    assert found is not None
    return found


async def planned(desk: Desk, name: str) -> Plan:
    """The plan of a new investigation, which then ends."""
    created = await desk.put("Investigation", name, {"alert": {"alertType": "PodCrash", "data": "it crashed"}})
    await desk.reason("Investigation", name, "Accepted", "True", "Planned")
    claimed = await desk.claim()
    assert str(claimed.id) == created["metadata"]["uid"]
    await desk.finish(claimed)
    return claimed.plan


def told(plan: Plan) -> str:
    """The instructions of the one agent of a plan."""
    return plan.stages[0].agents[0].instructions


async def own_runs(desk: Desk) -> dict[str, Mapping[str, Any]]:
    """The EvalRuns that the operator created, by name."""
    found = await desk.kube.list("EvalRun", desk.namespace)
    return {one["metadata"]["name"]: one for one in found if PROMOTES in (one["metadata"].get("labels") or {})}


async def new_run(desk: Desk, *known: str) -> str:
    """Waits for an EvalRun of the operator's beside the known ones, that measures; its name."""

    async def look() -> str | None:
        runs = (await own_runs(desk)).items()
        return next((n for n, one in runs if n not in known and one.get("status", {}).get("phase") == "Running"), None)

    found = await eventually(look)
    assert found is not None
    return found


async def states(desk: Desk) -> list[RevisionState]:
    uid = (await desk.get("Chain", "one"))["metadata"]["uid"]
    return [one.state for one in await desk.revisions.known(uid)]


async def test_first_revision_serves_without_an_evaluation_and_says_so(desk: Desk) -> None:
    await gated(desk)
    async with desk.controller():
        message = await promoted(desk, "True", "FirstRevision")
        assert "without an evaluation" in message and "EvalSuite shop" in message
        serving, waiting = await revisions(desk)
        assert serving is not None and waiting is None
        assert told(await planned(desk, "now")) == "Look."
        assert await states(desk) == [RevisionState.SERVING]
        assert await own_runs(desk) == {}


async def test_new_revision_serves_only_after_it_passed(desk: Desk) -> None:
    await gated(desk)
    async with desk.controller():
        await promoted(desk, "True", "FirstRevision")
        first, _ = await revisions(desk)
        await push(desk, "Look again.")
        message = await promoted(desk, "False", "Evaluating")
        second = await candidate(desk)
        assert f"New runs use revision {first}" in message
        assert (await revisions(desk))[0] == first != second
        assert told(await planned(desk, "before")) == "Look."
        await answer(desk, RIGHT)
        message = await promoted(desk, "True", "Passed")
        (run,) = await own_runs(desk)
        assert f"EvalRun {run} passed" in message
        assert await revisions(desk) == (second, None)
        assert told(await planned(desk, "after")) == "Look again."
        await desk.told(("Chain", "RevisionServes"), ("Chain", "RevisionServes"))


async def test_push_is_not_served_even_before_the_chain_was_looked_at(desk: Desk) -> None:
    """An investigation that comes with the push is planned from the serving revision."""
    await gated(desk)
    async with desk.controller():
        await promoted(desk, "True", "FirstRevision")
    await push(desk, "Look again.")
    async with desk.controller():
        assert told(await planned(desk, "at-once")) == "Look."


async def test_regressed_revision_never_serves_and_a_revert_does(desk: Desk) -> None:
    await gated(desk)
    async with desk.controller():
        await promoted(desk, "True", "FirstRevision")
        first, _ = await revisions(desk)
        await push(desk, "Blame redis.")
        await new_run(desk)
        await answer(desk, WRONG)
        message = await promoted(desk, "False", "Regressed")
        assert "oom" in message and "spec.promotion.override.revision" in message
        assert told(await planned(desk, "before")) == "Look."
        await desk.told(("Chain", "RevisionRejected"))
        body = {"suiteRef": {"name": "shop"}, "candidate": {"chainRef": {"name": "one"}}}
        await desk.put("EvalRun", "again", body)
        await answer(desk, RIGHT)
        assert (await verdict(desk, "again"))["phase"] == "Passed"
        await desk.still("Chain", "one")
        assert (await desk.conditions("Chain", "one"))["Promoted"][:2] == ("False", "Regressed")
        assert told(await planned(desk, "after")) == "Look."
        await push(desk, "Look.")
        await promoted(desk, "True", "FirstRevision")
        assert await revisions(desk) == (first, None)


async def test_second_push_cancels_the_evaluation_of_the_first_which_may_come_back(desk: Desk) -> None:
    await gated(desk)
    async with desk.controller():
        await promoted(desk, "True", "FirstRevision")
        first, _ = await revisions(desk)
        await push(desk, "Second.")
        second = await candidate(desk)
        run = await new_run(desk)
        await push(desk, "Third.")
        third = await candidate(desk, second)
        after = await new_run(desk, run)
        assert (await verdict(desk, run))["phase"] == "Cancelled"
        assert (await own_runs(desk))[after]["status"]["candidate"]["revision"] == third
        await push(desk, "Second.")
        assert await candidate(desk, third) == second
        last = await new_run(desk, run, after)
        assert (await revisions(desk))[0] == first
        await answer(desk, RIGHT)
        message = await promoted(desk, "True", "Passed")
        assert last in message and (await revisions(desk)) == (second, None)


async def test_restart_at_any_point_loses_nothing(desk: Desk) -> None:
    await gated(desk)
    async with desk.controller():
        await promoted(desk, "True", "FirstRevision")
        first, _ = await revisions(desk)
    await push(desk, "Second.")
    async with desk.controller():
        second = await candidate(desk)
        run = await new_run(desk)
        assert (await revisions(desk))[0] == first
    async with desk.controller():
        await answer(desk, RIGHT)
        await promoted(desk, "True", "Passed")
    async with desk.controller():
        assert told(await planned(desk, "after")) == "Second."
        await desk.still("Chain", "one")
        assert await revisions(desk) == (second, None)
        assert (await desk.conditions("Chain", "one"))["Promoted"][:2] == ("True", "Passed")
        assert list(await own_runs(desk)) == [run]
        assert await states(desk) == [RevisionState.SERVING, RevisionState.RETIRED]


async def test_revision_is_compared_with_the_serving_one_as_long_as_its_results_are_stored(desk: Desk) -> None:
    await gated(desk)
    async with desk.controller():
        await promoted(desk, "True", "FirstRevision")
        await push(desk, "Second.")
        first = await new_run(desk)
        assert "baseline" not in (await own_runs(desk))[first]["spec"]
        await answer(desk, RIGHT)
        await promoted(desk, "True", "Passed")
        await push(desk, "Third.")
        second = await new_run(desk, first)
        assert (await own_runs(desk))[second]["spec"]["baseline"] == {"evalRunRef": {"name": first}}
        uid = (await own_runs(desk))[first]["metadata"]["uid"]
        await desk.pool.execute("DELETE FROM eval_run WHERE id = $1", UUID(uid))  # as of a database that was restored
        await push(desk, "Fourth.")
        third = await new_run(desk, first, second)
        assert "baseline" not in (await own_runs(desk))[third]["spec"]


async def test_evaluation_that_cannot_start_is_named_with_its_remedy(desk: Desk) -> None:
    await gated(desk)
    author = {"username": "mallory", "groups": ["system:authenticated"]}
    async with desk.controller():
        await promoted(desk, "True", "FirstRevision")
        await desk.reason("EvalSuite", "shop", "Ready", "True", "CasesStored")
        spec = (await desk.get("EvalSuite", "shop"))["spec"]
        cases = spec["cases"]
        await desk.kube.delete("EvalSuite", desk.namespace, "shop")
        # Who has seen a later suite has seen that this one is gone: both come by one watch, in their order.
        await desk.put("EvalSuite", "later", spec)
        await desk.reason("EvalSuite", "later", "Ready", "True", "CasesStored")
        await push(desk, "Second.")
        message = await promoted(desk, "False", "SuiteMissing")
        assert "EvalSuite shop does not exist; create it" in message
        reads = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
        allowed = rights.binding("reads", desk.namespace, "Role", "reads", rights.user("mallory"))
        await rights.put_rights(desk.kube, (rights.role("reads", desk.namespace, reads), allowed))
        await desk.put("EvalSuite", "shop", {"cases": cases, "author": author})
        message = await promoted(desk, "False", "EvaluationBlocked")
        assert "mallory may not use Chain" in message
        assert told(await planned(desk, "now")) == "Look."


async def test_push_that_does_not_resolve_keeps_the_serving_revision(desk: Desk) -> None:
    await gated(desk)
    async with desk.controller():
        await promoted(desk, "True", "FirstRevision")
        stages = [{"name": "look", "agents": [{"name": "nobody"}]}]
        await desk.kube.patch("Chain", desk.namespace, "one", {"spec": {"stages": stages}})
        message = await promoted(desk, "False", "PlanInvalid")
        assert "nobody" in message
        assert told(await planned(desk, "now")) == "Look."


async def test_tool_that_is_denied_now_is_in_no_plan_of_the_serving_revision(desk: Desk) -> None:
    tools = {
        "transport": {"type": "http", "http": {"url": "http://127.0.0.1:9/mcp"}},
        "tools": {"readOnly": ["*"]},
    }
    await desk.put("MCPServer", "tools", tools)
    await gated(desk)
    await desk.kube.patch("Chain", desk.namespace, "one", {"spec": {"mcpServers": [{"name": "tools"}]}})
    async with desk.controller():
        await promoted(desk, "True", "FirstRevision")
        (server,) = (await planned(desk, "before")).stages[0].agents[0].servers
        assert server.deny == ()
        await push(desk, "Second.")
        await desk.kube.patch("MCPServer", desk.namespace, "tools", {"spec": {"tools": {"deny": ["delete_pod"]}}})
        await promoted(desk, "False", "Evaluating")
        plan = await planned(desk, "after")
        (server,) = plan.stages[0].agents[0].servers
        assert told(plan) == "Look." and server.deny == ("delete_pod",)
        await desk.kube.delete("MCPServer", desk.namespace, "tools")
        await promoted(desk, "False", "PlanInvalid")
        body = {"alert": {"alertType": "PodCrash", "data": "it crashed"}}
        await desk.put("Investigation", "gone", body)
        message = await desk.reason("Investigation", "gone", "Accepted", "False", "RightsWithdrawn")
        assert "tools" in message and "restore that" in message


async def override(desk: Desk, revision: str, author: Mapping[str, Any] | None) -> None:
    """Sets the override as it is stored; the API of these tests has no admission."""
    wanted: dict[str, Any] = {"revision": revision}
    if author is not None:
        wanted["author"] = dict(author)
    await desk.kube.patch("Chain", desk.namespace, "one", {"spec": {"promotion": {"override": wanted}}})


async def test_override_counts_only_while_its_author_may_promote(desk: Desk) -> None:
    await gated(desk)
    rule = {"apiGroups": ["tarsy.dev"], "resources": ["chains"], "resourceNames": ["one"], "verbs": ["promote"]}
    allowed = rights.binding("promotes", desk.namespace, "Role", "promotes", rights.group("promoters"))
    async with desk.controller():
        await promoted(desk, "True", "FirstRevision")
        await push(desk, "Second.")
        second = await candidate(desk)

        async def ignored(part: str) -> None:
            async def look() -> bool:
                found = (await desk.conditions("Chain", "one"))["Promoted"]
                assert found[:2] == ("False", "Evaluating") and part in found[2], found
                return True

            await eventually(look)

        await override(desk, second, None)
        await ignored("its author is unknown; install the admission webhook")
        await override(desk, second, JANE)
        await ignored("jane may not promote")
        await override(desk, "0" * 16, JANE)
        await ignored("it names revision 0000000000000000")
        assert told(await planned(desk, "before")) == "Look."
        await rights.put_rights(desk.kube, (rights.role("promotes", desk.namespace, rule), allowed))
        await override(desk, second, JANE)
        message = await promoted(desk, "True", "Overridden")
        assert "jane permitted it to serve" in message
        assert told(await planned(desk, "after")) == "Second."
        uid = (await desk.get("Chain", "one"))["metadata"]["uid"]
        assert (await desk.revisions.known(uid))[0].author == JANE
        (run,) = await own_runs(desk)
        await answer(desk, WRONG)
        assert (await verdict(desk, run))["phase"] == "Regressed"
        await desk.still("Chain", "one")
        assert (await desk.conditions("Chain", "one"))["Promoted"][:2] == ("True", "Overridden")


async def test_revisions_leave_with_their_chain_and_a_new_one_begins_anew(desk: Desk) -> None:
    await gated(desk)
    async with desk.controller():
        await promoted(desk, "True", "FirstRevision")
        chain = await desk.get("Chain", "one")
        await desk.kube.delete("Chain", desk.namespace, "one")

        async def forgotten() -> bool:
            return not await desk.revisions.known(chain["metadata"]["uid"])

        await eventually(forgotten)
        await push(desk, "Second.")
        await desk.put("Chain", "one", chain["spec"])
        await promoted(desk, "True", "FirstRevision")
        assert told(await planned(desk, "now")) == "Second."
        await desk.kube.patch("Chain", desk.namespace, "one", {"spec": {"promotion": None}})

        async def not_promoted() -> bool:  # told after the revisions are deleted
            conditions = await desk.conditions("Chain", "one")
            return "Promoted" not in conditions and await revisions(desk) == (None, None)

        await eventually(not_promoted)
        assert await desk.revisions.chains([desk.namespace]) == []


async def test_first_revision_is_made_from_the_current_objects(desk: Desk) -> None:
    """The watch of Agents may be slower than that of Chains: what was pushed first would need an evaluation."""
    await gated(desk)
    context = await desk.listed()
    await push(desk, "Second.")
    chain = context.cache.get(Chain, desk.namespace, "one")
    assert chain is not None
    now, uid = datetime.now(UTC), chain.metadata.uid
    with pytest.raises(ApiError, match=f"Agent {desk.namespace}/one has changed"):
        await with_promotion(chain.status, chain, desk.revisions, context, now)
    assert await desk.revisions.known(uid) == []
    await with_promotion(chain.status, chain, desk.revisions, context, now)
    stored = await desk.revisions.serving(uid)
    assert stored is not None and "Second." in stored[1]


async def test_first_revision_is_made_with_the_current_defaults(desk: Desk) -> None:
    await gated(desk)
    context = await desk.listed()
    await desk.put("InvestigationDefaults", "default", {"maxIterations": 3})
    chain = context.cache.get(Chain, desk.namespace, "one")
    assert chain is not None
    with pytest.raises(ApiError, match=f"InvestigationDefaults {desk.namespace}/default has changed"):
        await with_promotion(chain.status, chain, desk.revisions, context, datetime.now(UTC))
    await with_promotion(chain.status, chain, desk.revisions, context, datetime.now(UTC))
    stored = await desk.revisions.serving(chain.metadata.uid)
    assert stored is not None and "maxIterations" in stored[1]


async def test_revisions_of_a_chain_that_was_deleted_while_no_controller_ran_are_deleted(desk: Desk) -> None:
    await gated(desk)
    async with desk.controller():
        await promoted(desk, "True", "FirstRevision")
        gone = (await desk.get("Chain", "one"))["metadata"]["uid"]
    spec = (await desk.get("Chain", "one"))["spec"]
    await desk.kube.delete("Chain", desk.namespace, "one")
    await desk.put("Chain", "two", spec)
    async with desk.controller(relist_seconds=0.5):

        async def left() -> bool:
            found = [(one.name, one.uid == gone) for one in await desk.revisions.chains()]
            assert found == [("two", False)], found
            return True

        await eventually(left)
        await desk.relists()
        assert await left()


async def test_rights_of_the_manifests_are_enough(desk: Desk, tarsy_api: LocalApi, tmp_path: Path) -> None:
    files = ("namespace", "serviceaccount", "clusterrole", "role", "secret-reader")
    operator = await operator_kubeconfig(desk.kube, tarsy_api, tmp_path, *files)
    await gated(desk)
    async with desk.controller(kubeconfig=operator, everywhere=True, relist_seconds=0.5):
        await promoted(desk, "True", "FirstRevision")
        await push(desk, "Second.")
        await override(desk, await candidate(desk), JANE)
        first = await new_run(desk)
        await push(desk, "Third.")
        await new_run(desk, first)
        await answer(desk, RIGHT)
        await promoted(desk, "True", "Passed")
        await desk.told(("Chain", "RevisionServes"), ("Chain", "RevisionServes"))
        await desk.kube.delete("Chain", desk.namespace, "one")

        async def forgotten() -> bool:
            return not await desk.revisions.chains()

        await eventually(forgotten)
