"""Tests questions as objects: which are accepted, in which order, and their answers."""

from uuid import UUID

import pytest

from integration.controllers.desk import Desk, eventually
from tarsy.controllers.chat_message import reconcile
from tarsy.controllers.runs.restored import ACCEPTED_UID
from tarsy.record.run import DesiredState, Failure, RunOutcome, State
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1 import ChatMessage


async def test_question_is_queued_owned_by_its_investigation_and_answered_in_its_status(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        about = await desk.finished("crash")
        await desk.ask("why", "crash", "Why did it crash?")
        await desk.reason("ChatMessage", "why", "Accepted", "True", "Planned")
        asked = await desk.get("ChatMessage", "why")
        (owner,) = asked["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("Investigation", "crash", about["metadata"]["uid"])
        assert asked["status"]["phase"] == "Queued"
        claimed = await desk.claim_question()
        assert claimed is not None
        assert (str(claimed.id), str(claimed.parent)) == (asked["metadata"]["uid"], about["metadata"]["uid"])
        assert claimed.question == "Why did it crash?"
        await desk.runs.finish(claimed.id, claimed.attempt, RunOutcome(State.COMPLETED, final_analysis="No image."))
        await desk.reason("ChatMessage", "why", "Succeeded", "True", "Succeeded")
        status = (await desk.get("ChatMessage", "why"))["status"]
        assert (status["answer"], status["phase"]) == ("No image.", "Succeeded")
        await desk.told(("ChatMessage", "Answered"))
        assert (await desk.get("Investigation", "crash"))["status"] == about["status"]


async def test_controller_that_does_not_know_the_investigation_yet_makes_it_the_owner_of_its_question(
    desk: Desk,
) -> None:
    """The controller before it died after it had stored the question, and before it marked the object."""
    await desk.configure()
    async with desk.controller():
        about = await desk.finished("crash")
        await desk.ask("why", "crash")
        await desk.reason("ChatMessage", "why", "Accepted", "True", "Planned")
    unmarked = {"metadata": {"annotations": {ACCEPTED_UID: None}, "ownerReferences": None}}
    await desk.kube.patch("ChatMessage", desk.namespace, "why", unmarked)
    await reconcile(parse_as(ChatMessage, await desk.get("ChatMessage", "why")), await desk.listed())
    meta = (await desk.get("ChatMessage", "why"))["metadata"]
    assert [owner["uid"] for owner in meta["ownerReferences"]] == [about["metadata"]["uid"]]
    assert meta["annotations"][ACCEPTED_UID] == meta["uid"]


async def test_question_that_cannot_be_answered_says_why_and_names_what_was_found(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.finished("crash")
        await desk.ask("why", "crash")
        await desk.reason("ChatMessage", "why", "Accepted", "True", "Planned")
        claimed = await desk.claim_question()
        assert claimed is not None
        failure = Failure("ModelTimeout", "the model did not answer")
        await desk.runs.finish(claimed.id, claimed.attempt, RunOutcome(State.TIMED_OUT, failure=failure))
        assert await desk.reason("ChatMessage", "why", "Succeeded", "False", "ModelTimeout") == failure.message
        status = (await desk.get("ChatMessage", "why"))["status"]
        assert (status["phase"], status["lastError"]["reason"]) == ("TimedOut", "ModelTimeout")


@pytest.mark.parametrize(
    ("state", "reason"), [(State.FAILED, None), (State.TIMED_OUT, None), (State.CANCELLED, "InvestigationCancelled")]
)
async def test_questions_are_taken_about_what_ended_by_itself(desk: Desk, state: State, reason: str | None) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.put("Investigation", "crash", {"alert": {"alertType": "PodCrash", "data": "x"}})
        await desk.reason("Investigation", "crash", "Accepted", "True", "Planned")
        claimed = await desk.claim()
        await desk.runs.finish(claimed.id, claimed.attempt, RunOutcome(state))
        await desk.ask("why", "crash")
        if reason is None:
            await desk.reason("ChatMessage", "why", "Accepted", "True", "Planned")
        else:
            message = await desk.reason("ChatMessage", "why", "Accepted", "False", reason)
            assert f"spec.investigationRef.name: Investigation {desk.namespace}/crash" in message
            assert (await desk.conditions("ChatMessage", "why"))["Finished"][:2] == ("True", reason)
            assert await desk.claim_question() is None


async def test_question_about_a_run_in_progress_is_refused(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.put("Investigation", "crash", {"alert": {"alertType": "PodCrash", "data": "x"}})
        await desk.reason("Investigation", "crash", "Accepted", "True", "Planned")
        await desk.ask("why", "crash")
        message = await desk.reason("ChatMessage", "why", "Accepted", "False", "InvestigationNotFinished")
        assert "ask when it has finished" in message
        assert (await desk.conditions("ChatMessage", "why"))["Finished"][0] == "True"
        await desk.still("ChatMessage", "why")


async def test_question_waits_for_its_investigation_to_appear(desk: Desk) -> None:
    async with desk.controller():
        await desk.ask("why", "crash")
        message = await desk.reason("ChatMessage", "why", "Accepted", "False", "InvestigationMissing")
        assert "create it" in message
        assert (await desk.conditions("ChatMessage", "why"))["Finished"][0] == "False"
        await desk.configure()
        await desk.put("Investigation", "crash", {"alert": {"alertType": "PodCrash", "data": "x"}})
        await desk.reason("ChatMessage", "why", "Accepted", "False", "InvestigationNotFinished")


async def test_chain_that_takes_no_questions_is_named(desk: Desk) -> None:
    await desk.configure(skip=("Chain",))
    stages = [{"name": "look", "agents": [{"name": "one"}]}]
    spec = {"alertTypes": ["PodCrash"], "llmProvider": "one", "stages": stages, "chat": {"enabled": False}}
    await desk.put("Chain", "one", spec)
    async with desk.controller():
        await desk.finished("crash")
        await desk.ask("why", "crash")
        message = await desk.reason("ChatMessage", "why", "Accepted", "False", "ChatDisabled")
        assert f"Chain {desk.namespace}/one, whose spec.chat.enabled is false" in message


async def test_questions_that_come_together_are_answered_in_the_order_of_their_making(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.finished("crash")
    names = ["c", "a", "b"]
    for name in names:
        await desk.ask(name, "crash", f"{name}?")
    async with desk.controller():
        for name in names:
            await desk.reason("ChatMessage", name, "Accepted", "True", "Planned")
        for name in names:
            claimed = await desk.claim_question()
            assert claimed is not None and claimed.question == f"{name}?"
            assert await desk.claim_question() is None
            await desk.runs.finish(claimed.id, claimed.attempt, RunOutcome(State.COMPLETED, final_analysis="Yes."))


async def test_deleted_question_is_cancelled_and_so_are_those_of_a_deleted_investigation(
    desk: Desk, api_kind: str
) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.finished("crash")
        for name in ("one", "two"):
            await desk.ask(name, "crash")
            await desk.reason("ChatMessage", name, "Accepted", "True", "Planned")
        first, second = [UUID((await desk.get("ChatMessage", name))["metadata"]["uid"]) for name in ("one", "two")]
        await desk.kube.delete("ChatMessage", desk.namespace, "one")

        async def cancelled(run: UUID) -> bool:
            record = await desk.reads.record(run)
            return record is not None and record.state is State.CANCELLED

        await eventually(lambda: cancelled(first))
        assert not await cancelled(second)
        await desk.kube.delete("Investigation", desk.namespace, "crash")
        if api_kind == "embedded":  # the real API server runs here without its garbage collector
            await eventually(lambda: cancelled(second))


async def test_desired_state_of_a_question_reaches_its_run(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.finished("crash")
        await desk.ask("why", "crash")
        await desk.reason("ChatMessage", "why", "Accepted", "True", "Planned")
        claimed = await desk.claim_question()
        assert claimed is not None
        await desk.kube.patch("ChatMessage", desk.namespace, "why", {"spec": {"desiredState": "Concluded"}})

        async def wanted() -> bool:
            record = await desk.reads.record(claimed.id)
            return record is not None and record.desired_state is DesiredState.CONCLUDED

        await eventually(wanted)
        await desk.ask("never", "crash", desiredState="Cancelled")
        await desk.reason("ChatMessage", "never", "Finished", "True", "CancelledBeforeStart")


async def test_restored_question_is_not_answered_again_and_a_lost_answer_says_so(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.finished("crash")
        spec = {"investigationRef": {"name": "crash"}, "question": "Why?"}
        await desk.put("ChatMessage", "copy", spec, annotations={"tarsy.dev/accepted-uid": "another"})
        await desk.reason("ChatMessage", "copy", "Finished", "True", "Restored")
        await desk.ask("why", "crash")
        await desk.reason("ChatMessage", "why", "Accepted", "True", "Planned")
    await desk.pool.execute("DELETE FROM investigation WHERE parent IS NOT NULL")
    async with desk.controller():
        await desk.reason("ChatMessage", "why", "Finished", "True", "RecordLost")


async def test_secret_in_a_question_does_not_reach_the_record(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.finished("crash")
        await desk.ask("why", "crash", "Is ghp_0123456789abcdefghijABCDEFGHIJ012345 still valid?")
        await desk.reason("ChatMessage", "why", "Accepted", "True", "Planned")
        claimed = await desk.claim_question()
        assert claimed is not None and "ghp_" not in (claimed.question or "")


async def test_cancelling_a_finished_investigation_cancels_the_questions_about_it(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        about = await desk.finished("crash")
        for name in ("running", "queued"):
            await desk.ask(name, "crash")
            await desk.reason("ChatMessage", name, "Accepted", "True", "Planned")
        claimed = await desk.claim_question()
        assert claimed is not None
        await desk.kube.patch("Investigation", desk.namespace, "crash", {"spec": {"desiredState": "Cancelled"}})
        await desk.reason("ChatMessage", "queued", "Finished", "True", "CancelledBeforeStart")

        async def told() -> bool:
            record = await desk.reads.record(claimed.id)
            return record is not None and record.desired_state is DesiredState.CANCELLED

        await eventually(told)
        await desk.ask("later", "crash")
        message = await desk.reason("ChatMessage", "later", "Accepted", "False", "InvestigationCancelled")
        assert "was cancelled; ask about another" in message
        found = (await desk.get("Investigation", "crash"))["status"]
        assert (found["phase"], found["finding"]) == (about["status"]["phase"], about["status"]["finding"])


async def test_concluding_an_investigation_that_has_ended_leaves_its_questions_alone(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.finished("crash")
        await desk.kube.patch("Investigation", desk.namespace, "crash", {"spec": {"desiredState": "Concluded"}})
        await desk.ask("why", "crash")
        await desk.reason("ChatMessage", "why", "Accepted", "True", "Planned")
        claimed = await desk.claim_question()
        assert claimed is not None and claimed.desired_state is DesiredState.RUNNING
