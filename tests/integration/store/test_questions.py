"""Tests that questions are answered one by one in their order, outside of the limits of runs, from the record."""

import asyncio
from uuid import UUID, uuid4

import asyncpg

from integration.store.build import event, execution, expire, new_run, stage, worker, writer
from tarsy.record.run import DesiredState, RunOutcome, StageKind, StageStart, State
from tarsy.record.work import Exchange
from tarsy.store.questions import QUESTIONS_WITH_WORK, NewQuestion, Questions
from tarsy.store.reading.reads import Reads
from tarsy.store.reading.trace import Trace
from tarsy.store.runs.claims import ClaimedRun, Claims
from tarsy.store.runs.lifecycle import NewRun, Runs
from tarsy.store.runs.writer import RunWriter


async def _finished(pool: asyncpg.Pool, **of_run: object) -> NewRun:
    run = new_run(**of_run)  # type: ignore[arg-type]
    plan = run.plan.model_copy(update={"chat": run.plan.stages[0].agents[0]})
    run = NewRun(**{name: getattr(run, name) for name in NewRun.__dataclass_fields__} | {"plan": plan})
    await Runs(pool).accept(run)
    holder = await worker(pool)
    (claimed,) = await Claims(pool).claim(holder, 1, 100)
    await Runs(pool).finish(run.id, claimed.attempt, RunOutcome(State.COMPLETED, final_analysis="It was full."))
    return run


def _question(about: NewRun, name: str) -> NewQuestion:
    return NewQuestion(uuid4(), name, f"{name}?", about.plan.to_answer(), {"username": "ada"})


async def _ask(pool: asyncpg.Pool, about: NewRun, *names: str) -> list[UUID]:
    return await Questions(pool).ask(about.id, [_question(about, name) for name in names])


async def _claim(pool: asyncpg.Pool, holder: UUID, questions: int = 5) -> list[ClaimedRun]:
    return await Claims(pool).claim(holder, 0, 100, questions=questions)


async def _answer(pool: asyncpg.Pool, claimed: ClaimedRun, text: str, state: State = State.COMPLETED) -> None:
    await Runs(pool).finish(claimed.id, claimed.attempt, RunOutcome(state, final_analysis=text))


async def test_questions_are_answered_one_after_the_other_in_the_order_in_which_they_were_asked(
    pool: asyncpg.Pool,
) -> None:
    about, holder = await _finished(pool), await worker(pool)
    asked = await _ask(pool, about, "first", "second", "third")
    for run in asked:
        (claimed,) = await _claim(pool, holder)
        assert claimed.id == run
        assert await _claim(pool, holder) == []
        await _answer(pool, claimed, "Yes.")
    assert await _claim(pool, holder) == []


async def test_a_question_carries_what_was_asked_and_by_whom(pool: asyncpg.Pool) -> None:
    about, holder = await _finished(pool), await worker(pool)
    await _ask(pool, about, "why")
    (claimed,) = await _claim(pool, holder)
    assert (claimed.parent, claimed.question, claimed.author["username"]) == (about.id, "why?", "ada")
    assert claimed.alert_data == ""
    assert claimed.plan == about.plan.to_answer()


async def test_a_question_that_the_release_before_wrote_is_claimed_listed_and_told_as_any_other(
    pool: asyncpg.Pool,
) -> None:
    about, holder = await _finished(pool), await worker(pool)
    first, _ = await _ask(pool, about, "first", "second")
    await pool.execute("UPDATE investigation_input SET question = NULL")  # it knows alert_data only
    (claimed,) = await _claim(pool, holder)
    assert (claimed.id, claimed.question, claimed.alert_data) == (first, "first?", "")
    await _answer(pool, claimed, "Yes.")
    assert [one.question for one in await Trace(pool).answers(about.id, 10)] == ["first?", "second?"]
    given = await Trace(pool).given(first)
    assert given is not None and (given.question, given.alert_data) == ("first?", "")
    (second,) = await _claim(pool, holder)
    assert [one.question for one in (await Questions(pool).past(about.id, second.id)).earlier] == ["first?"]


async def test_the_release_before_finds_a_question_where_it_looks_for_it(pool: asyncpg.Pool) -> None:
    about = await _finished(pool)
    (asked,) = await _ask(pool, about, "why")
    row = await pool.fetchrow("SELECT question, alert_data FROM investigation_input WHERE investigation = $1", asked)
    assert (row["question"], row["alert_data"]) == ("why?", "why?")


async def test_an_investigation_has_no_question(pool: asyncpg.Pool) -> None:
    run = new_run()
    await Runs(pool).accept(run)
    (claimed,) = await Claims(pool).claim(await worker(pool), 1, 100)
    assert (claimed.question, claimed.alert_data) == (None, run.alert_data)


async def test_the_order_stays_whoever_asks_again(pool: asyncpg.Pool) -> None:
    about, holder = await _finished(pool), await worker(pool)
    first, second = _question(about, "first"), _question(about, "second")
    assert await Questions(pool).ask(about.id, [first, second]) == [first.id, second.id]
    assert await Questions(pool).ask(about.id, [second, first]) == []
    (claimed,) = await _claim(pool, holder)
    assert claimed.id == first.id


async def test_those_who_ask_at_once_get_places_of_their_own(pool: asyncpg.Pool) -> None:
    about = await _finished(pool)
    async with asyncio.TaskGroup() as group:
        for n in range(12):
            group.create_task(_ask(pool, about, f"q{n}"))
    places = await pool.fetch("SELECT place FROM investigation WHERE parent = $1 ORDER BY place", about.id)
    assert [row["place"] for row in places] == list(range(1, 13))


async def test_questions_about_different_investigations_are_answered_side_by_side_up_to_the_workers_places(
    pool: asyncpg.Pool,
) -> None:
    holder = await worker(pool)
    for n in range(4):
        await _ask(pool, await _finished(pool, name=f"alert-{n}"), "why")
    assert len(await _claim(pool, holder, questions=3)) == 3
    assert len(await _claim(pool, holder, questions=3)) == 1


async def test_no_limit_of_runs_holds_for_questions_and_they_take_no_place_of_a_run(pool: asyncpg.Pool) -> None:
    about, holder = await _finished(pool, namespace_limit=1, chain_limit=1), await worker(pool)
    runs = [new_run(name=f"busy-{n}", namespace_limit=1, chain_limit=1) for n in range(2)]
    for run in runs:
        await Runs(pool).accept(run)
    await _ask(pool, about, "why")
    claimed = await Claims(pool).claim(holder, 5, 1, questions=5)
    assert {run.parent for run in claimed} == {about.id, None}
    assert len(claimed) == 2
    (busy,) = [run for run in claimed if run.parent is None]
    await Runs(pool).finish(busy.id, busy.attempt, RunOutcome(State.COMPLETED))
    assert [run.parent for run in await Claims(pool).claim(holder, 5, 1, questions=5)] == [None]


async def test_a_question_whose_worker_died_is_claimed_again_and_the_next_one_waits_for_it(pool: asyncpg.Pool) -> None:
    about, dead = await _finished(pool), await worker(pool)
    first, _ = await _ask(pool, about, "first", "second")
    await _claim(pool, dead)
    await expire(pool, dead)
    again = await _claim(pool, await worker(pool))
    assert [(run.id, run.attempt) for run in again] == [(first, 2)]


async def test_a_cancelled_question_lets_the_next_one_through(pool: asyncpg.Pool) -> None:
    about, holder = await _finished(pool), await worker(pool)
    first, second = await _ask(pool, about, "first", "second")
    await Runs(pool).set_desired_state(first, DesiredState.CANCELLED)
    (claimed,) = await _claim(pool, holder)
    assert claimed.id == second


async def test_the_past_of_a_question_is_the_work_and_the_answers_before_it(pool: asyncpg.Pool) -> None:
    about, holder = await _finished(pool), await worker(pool)
    await _ask(pool, about, "first", "second", "third", "fourth")
    (claimed,) = await _claim(pool, holder)
    await _answer(pool, claimed, "The disk.")
    (claimed,) = await _claim(pool, holder)
    await _answer(pool, claimed, "", State.FAILED)
    (claimed,) = await _claim(pool, holder)
    assert [answer.name for answer in await Reads(pool).answers(about.id)] == ["first", "second", "third", "fourth"]
    past = await Questions(pool).past(about.id, claimed.id)
    assert past.earlier == (
        Exchange("first?", "The disk.", "ada"),
        Exchange("second?", "", "ada", State.FAILED),
    )
    assert past.stages == ()


async def test_the_past_of_a_question_has_the_tool_results_of_those_before_it(pool: asyncpg.Pool) -> None:
    about, holder = await _finished(pool), await worker(pool)
    names = [f"q{n}" for n in range(QUESTIONS_WITH_WORK + 2)]
    await _ask(pool, about, *names)
    for name in names[:-1]:
        (claimed,) = await _claim(pool, holder)
        recorder = writer(pool, claimed.id)
        await recorder.begin_stage(stage(claimed.id))
        await recorder.begin_execution(execution(claimed.id))
        told = event(claimed.id, content=f"result of {name}", execution=execution(claimed.id).id)
        await recorder.write_events([told])
        await _answer(pool, claimed, f"answer to {name}")
    (claimed,) = await _claim(pool, holder)

    past = await Questions(pool).past(about.id, claimed.id)

    assert [one.answer for one in past.earlier] == [f"answer to {name}" for name in names[:-1]]
    assert past.earlier[0].agents == (), "of more than the last ones only question and answer are told"
    for name, one in list(zip(names, past.earlier, strict=False))[1:]:
        (agent,) = one.agents
        assert [seen.content for seen in past.timelines[agent.execution]] == [f"result of {name}"]


async def test_an_answer_leaves_its_own_record_and_the_investigations_stays_as_it_was(pool: asyncpg.Pool) -> None:
    about, holder = await _finished(pool), await worker(pool)
    before = await Reads(pool).record(about.id)
    await _ask(pool, about, about.name)
    (claimed,) = await _claim(pool, holder)
    writer = RunWriter(pool, claimed.id, claimed.attempt, remaining=lambda: 60.0)
    await writer.begin_stage(StageStart(uuid4(), 0, "chat", StageKind.CHAT, 1))
    await _answer(pool, claimed, "Yes.")
    record = await Reads(pool).record(claimed.id)
    assert record is not None and record.parent == about.id
    assert [stage.kind for stage in record.stages] == [StageKind.CHAT]
    assert await Reads(pool).record(about.id) == before
    assert await Reads(pool).find(about.namespace, about.name) == before


async def test_a_record_that_is_deleted_takes_its_answers_with_it(pool: asyncpg.Pool) -> None:
    about = await _finished(pool)
    (asked,) = await _ask(pool, about, "why")
    await pool.execute("DELETE FROM investigation WHERE id = $1", about.id)
    assert await Reads(pool).record(asked) is None
    assert await Questions(pool).plan(about.id) is None


async def test_questions_of_one_namespace_do_not_starve_another(pool: asyncpg.Pool) -> None:
    holder = await worker(pool)
    for n in range(5):
        await _ask(pool, await _finished(pool, namespace="team-a", name=f"alert-{n}"), "why")
    await _ask(pool, await _finished(pool, namespace="team-b"), "why")
    order = []
    for _ in range(2):
        (claimed,) = await _claim(pool, holder, questions=1)
        order.append(claimed.namespace)
        await _answer(pool, claimed, "Because.")
    assert order == ["team-a", "team-b"]


async def test_a_namespace_answers_no_more_questions_at_once_than_its_limit(pool: asyncpg.Pool) -> None:
    holder = await worker(pool)
    for n in range(4):
        await _ask(pool, await _finished(pool, namespace="team-a", name=f"alert-{n}"), "why")
    await _ask(pool, await _finished(pool, namespace="team-b"), "why")
    claimed = await Claims(pool).claim(holder, 0, 100, questions=9, namespace_limit=2)
    assert sorted(run.namespace for run in claimed) == ["team-a", "team-a", "team-b"]
    assert await Claims(pool).claim(holder, 0, 100, questions=9, namespace_limit=2) == []
