"""Tests reading the trace: calls by stage and agent, each only through its investigation."""

from dataclasses import replace
from uuid import UUID, uuid4

import asyncpg

from integration.store.build import (
    PROMPT,
    TOOLS,
    claimed_run,
    event,
    execution,
    model_call,
    model_result,
    new_run,
    stage,
    tool_call,
    tool_result,
    worker,
    writer,
)
from tarsy.record import ids
from tarsy.record.messages import Access, Message, Role
from tarsy.record.reading.trace import ModelCallTrace, ToolCallTrace
from tarsy.record.run import Failure, InteractionState, ModelCallKind, RunOutcome, StageKind, StageStart, State
from tarsy.record.timeline import EventType
from tarsy.store.questions import NewQuestion, Questions
from tarsy.store.reading.trace import Trace
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import NewRun, Runs


async def _told(pool: asyncpg.Pool, run: UUID, agents: int = 1) -> list[UUID]:
    """A stage whose agents each made a model call and a tool call; their executions."""
    recorder = writer(pool, run)
    await recorder.begin_stage(stage(run, agents=agents))
    made = []
    for index in range(agents):
        begun = execution(run, index)
        await recorder.begin_execution(begun)
        await recorder.model_call_started(model_call(begun.id, new=PROMPT))
        await recorder.model_call_finished(model_result(begun.id))
        await recorder.tool_call_started(tool_call(begun.id))
        await recorder.tool_call_finished(tool_result(begun.id))
        made.append(begun.id)
    return made


async def _asked(pool: asyncpg.Pool, *names: str) -> tuple[NewRun, list[UUID]]:
    """A finished investigation, and questions about it."""
    run = new_run()
    run = replace(run, plan=run.plan.model_copy(update={"chat": run.plan.stages[0].agents[0]}))
    await Runs(pool).accept(run)
    (claimed,) = await Claims(pool).claim(await worker(pool), 1, 100)
    await Runs(pool).finish(run.id, claimed.attempt, RunOutcome(State.COMPLETED, final_analysis="It was full."))
    questions = [NewQuestion(uuid4(), name, f"{name}?", run.plan.to_answer(), {"username": "bob"}) for name in names]
    return run, await Questions(pool).ask(run.id, questions)


async def test_a_run_is_located_by_name_and_the_very_namespace(pool: asyncpg.Pool) -> None:
    older, newer = new_run(name="alert-1"), new_run(name="alert-1")
    for run in (older, newer):
        await Runs(pool).accept(run)
    await pool.execute("UPDATE investigation SET accepted_at = now() - interval '1 hour' WHERE id = $1", older.id)
    trace, uid = Trace(pool), "uid-of-team-a"
    assert await trace.locate("team-a", "alert-1", uid) == newer.id
    assert await trace.locate("team-a", "alert-1", uid, older.id) == older.id
    assert await trace.locate("team-a", "alert-1", "uid-of-its-successor") is None
    assert await trace.locate("team-a", "alert-1", "uid-of-its-successor", older.id) is None
    assert await trace.locate("team-a", "alert-2", uid, older.id) is None


async def test_stages_have_their_agents_and_what_each_used(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    await _told(pool, run, agents=2)
    await writer(pool, run).begin_stage(stage(run, 1))
    told, empty = await Trace(pool).stages(run)
    assert [agent.display_name for agent in told.agents] == ["triage-1", "triage-2"]
    assert empty.agents == [] and empty.index == 1
    agent = told.agents[0]
    assert (agent.model_calls, agent.tool_calls, agent.usage.total_tokens, agent.usage.complete) == (1, 1, 120, True)
    assert (agent.cost_usd, agent.cost_complete) == (None, False)


async def test_a_model_that_was_never_reached_leaves_no_doubt_about_the_cost(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    recorder, begun = writer(pool, run), execution(run)
    await recorder.begin_stage(stage(run))
    await recorder.begin_execution(begun)
    await recorder.model_call_started(model_call(begun.id, new=PROMPT))
    failure = Failure("Unauthorized", "The key is wrong.")
    refused = replace(model_result(begun.id), failure=failure, usage=None, message=None, message_seq=None)
    await recorder.model_call_finished(refused)
    ((agent,),) = [one.agents for one in await Trace(pool).stages(run)]
    assert agent.cost_complete and agent.usage.complete
    (call,) = await Trace(pool).calls(run, 10)
    assert isinstance(call, ModelCallTrace) and call.usage is None and call.state is InteractionState.FAILED
    assert call.failure == Failure("Unauthorized", "The key is wrong.")


async def test_calls_come_in_the_order_of_their_beginning_page_by_page(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    await _told(pool, run, agents=3)
    everything = await Trace(pool).calls(run, 100)
    assert [type(call) for call in everything] == [ModelCallTrace, ToolCallTrace] * 3
    paged = []
    after = None
    while page := await Trace(pool).calls(run, 4, after):
        paged += page
        after = (page[-1].started_at, page[-1].id)
    assert paged == everything


async def test_a_model_call_tells_all_of_its_answer(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    (begun,) = await _told(pool, run)
    found = await Trace(pool).model_call(run, ids.model_call_id(begun, 0))
    assert found is not None
    assert (found.of.stage, found.of.agent, found.of.answer) == ("stage-0", "triage-1", None)
    assert found.answer == "let me look" and found.tool_calls[0].name == "kubernetes.get"
    assert tuple(found.tools) == TOOLS
    assert (found.call.kind, found.call.duration_ms) == (ModelCallKind.ITERATION, 12)


async def test_the_answer_of_a_summary_is_what_was_told_of_it(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    (begun,) = await _told(pool, run)
    recorder, call = writer(pool, run), ids.model_call_id(begun, 1)
    asked = replace(model_call(begun, 1), kind=ModelCallKind.SUMMARIZATION, request=(Message(Role.USER, "sum it up"),))
    await recorder.model_call_started(asked)
    told = event(call, "summary", type=EventType.MCP_TOOL_SUMMARY, content="One pod.", model_call=call)
    await recorder.model_call_finished(replace(model_result(begun, 1), message=None, message_seq=None), [told])
    found = await Trace(pool).model_call(run, call)
    assert found is not None and found.answer == "One pod."


async def test_a_tool_call_tells_arguments_result_and_all_its_tries(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    recorder, begun = writer(pool, run), execution(run)
    await recorder.begin_stage(stage(run))
    await recorder.begin_execution(begun)
    for attempt in (0, 1):
        await recorder.tool_call_started(tool_call(begun.id, attempt=attempt))
    await recorder.tool_call_finished(tool_result(begun.id, attempt=1))
    first, second = (ids.tool_call_id(begun.id, 2, 0, attempt) for attempt in (0, 1))
    lost, made = await Trace(pool).tool_call(run, first), await Trace(pool).tool_call(run, second)
    assert lost is not None and made is not None
    assert (lost.call.state, lost.result) == (InteractionState.INTERRUPTED, None)
    assert (made.call.state, made.result, made.arguments) == (InteractionState.COMPLETED, "a pod", '{"kind": "Pod"}')
    assert list(made.tries) == list(lost.tries) == [first, second]
    assert made.idempotency_key == lost.idempotency_key
    assert made.call.ref == lost.call.ref == ids.call_ref(made.idempotency_key)
    assert (made.call.access, made.call.made, made.repeatable) == (Access.UNKNOWN, True, False)


async def test_a_call_of_another_investigation_is_not_found(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    (begun,) = await _told(pool, run)
    other, _ = await claimed_run(pool, name="alert-2")
    trace = Trace(pool)
    for id_ in (ids.model_call_id(begun, 0), ids.tool_call_id(begun, 2, 0, 0), uuid4()):
        assert await trace.model_call(other, id_) is None
        assert await trace.tool_call(other, id_) is None
    assert await trace.model_call(run, ids.tool_call_id(begun, 2, 0, 0)) is None


async def test_the_calls_of_an_answer_are_found_through_the_investigation_and_name_the_question(
    pool: asyncpg.Pool,
) -> None:
    about, (answer,) = await _asked(pool, "why")
    await Claims(pool).claim(await worker(pool), 0, 100, questions=1)
    recorder, begun = writer(pool, answer), execution(answer)
    await recorder.begin_stage(StageStart(ids.stage_id(answer, 0), 0, "chat", StageKind.CHAT, 1))
    await recorder.begin_execution(begun)
    await recorder.model_call_started(model_call(begun.id, new=PROMPT))
    found = await Trace(pool).model_call(about.id, ids.model_call_id(begun.id, 0))
    assert found is not None and found.of.answer == "why" and found.answer is None
    assert await Trace(pool).calls(about.id, 10) == []


async def test_questions_come_in_their_order_with_what_was_asked_and_what_became_of_it(pool: asyncpg.Pool) -> None:
    about, (first, _, third) = await _asked(pool, "first", "second", "third")
    trace = Trace(pool)
    assert await trace.unanswered(about.id)
    (claimed,) = await Claims(pool).claim(await worker(pool), 0, 100, questions=1)
    await Runs(pool).finish(claimed.id, claimed.attempt, RunOutcome(State.COMPLETED, final_analysis="Because."))
    answers = await trace.answers(about.id, 10)
    assert [(one.name, one.place, one.question, one.author) for one in answers] == [
        ("first", 1, "first?", "bob"),
        ("second", 2, "second?", "bob"),
        ("third", 3, "third?", "bob"),
    ]
    assert (answers[0].id, answers[0].answer, answers[0].state) == (first, "Because.", State.COMPLETED)
    assert [one.name for one in await trace.answers(about.id, 1, after=1)] == ["second"]
    assert await trace.answer_named(about.id, "third") == third
    assert await trace.answer_named(about.id, "fourth") is None


async def test_nothing_is_unanswered_once_all_have_ended(pool: asyncpg.Pool) -> None:
    about, (answer,) = await _asked(pool, "why")
    (claimed,) = await Claims(pool).claim(await worker(pool), 0, 100, questions=1)
    await Runs(pool).finish(answer, claimed.attempt, RunOutcome(State.FAILED, failure=Failure("Broken", "It broke.")))
    assert not await Trace(pool).unanswered(about.id)


async def test_what_was_given_is_told_with_its_author(pool: asyncpg.Pool) -> None:
    run, _ = await claimed_run(pool)
    given = await Trace(pool).given(run)
    assert given is not None
    assert given.question is None
    assert (given.alert_data, given.runbook, given.author) == ('{"pod": "checkout-7d"}', "# Look at the logs", "ada")
    assert await Trace(pool).given(uuid4()) is None
