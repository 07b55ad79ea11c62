"""Tests the threads and questions of Slack in Postgres: once each, taken by one, gone with their investigation."""

import asyncio
from dataclasses import replace
from uuid import UUID

import asyncpg

from integration.store.build import claimed_run
from tarsy.record.run import RunOutcome, State
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.slack import SlackMention, SlackQuestions

CHANNEL, THREAD = "C0000000001", "1700000000.000100"
MENTION = SlackMention("Ev1", CHANNEL, THREAD, "1700000000.000200", "U0000000ANN", ("T1",), "why?")


async def told(pool: asyncpg.Pool, **of_run: str) -> UUID:
    """An investigation that was told in the thread."""
    run, _ = await claimed_run(pool, **of_run)
    await SlackQuestions(pool).begin_thread(CHANNEL, THREAD, run)
    return run


async def test_a_message_is_stored_once_whatever_delivers_it(records: asyncpg.Pool) -> None:
    await told(records)
    questions = SlackQuestions(records)
    again = (MENTION, MENTION, replace(MENTION, event="Ev2"), replace(MENTION, ts="1700000000.000999"))
    found = await asyncio.gather(*(questions.receive(one) for one in again * 3))
    assert sorted(found, key=bool).count(True) == 1
    assert await records.fetchval("SELECT count(*) FROM slack_question") == 1


async def test_a_message_in_an_unknown_thread_is_not_stored(records: asyncpg.Pool) -> None:
    await told(records)
    questions = SlackQuestions(records)
    assert await questions.receive(replace(MENTION, thread="1.000001")) is None
    assert await questions.receive(replace(MENTION, channel="C0000000002")) is None
    assert await records.fetchval("SELECT count(*) FROM slack_question") == 0


async def test_a_question_is_about_the_last_investigation_that_has_ended(records: asyncpg.Pool) -> None:
    questions = SlackQuestions(records)
    first = await told(records, name="first")
    running = await told(records, name="second")
    await questions.receive(MENTION)
    assert await records.fetchval("SELECT investigation FROM slack_question") == running
    await Runs(records).finish(first, 1, RunOutcome(State.COMPLETED, final_analysis="So."))
    await questions.receive(replace(MENTION, event="Ev2", ts="1700000000.000300"))
    found = await records.fetch("SELECT investigation FROM slack_question ORDER BY ts")
    assert [row["investigation"] for row in found] == [running, first]


async def test_one_that_is_taken_is_not_taken_again_until_its_time_is_over(records: asyncpg.Pool) -> None:
    await told(records)
    questions = SlackQuestions(records)
    await questions.receive(MENTION)
    taken = await asyncio.gather(*(questions.take(8, 60.0) for _ in range(4)))
    ((question,),) = [some for some in taken if some]
    assert (question.question, question.teams, question.tries, question.state) == ("why?", ("T1",), 1, "received")
    await records.execute("UPDATE slack_question SET due_at = now()")
    (again,) = await questions.take(8, 60.0)
    assert (again.id, again.tries) == (question.id, 2)


async def test_one_that_is_given_back_is_taken_at_once_and_one_that_was_brought_forward_stays(
    records: asyncpg.Pool,
) -> None:
    await told(records)
    questions = SlackQuestions(records)
    for number in range(3):
        await questions.receive(replace(MENTION, event=f"Ev{number}", ts=f"1700000000.00{number}200"))
    taken = await questions.take(8, 60.0)
    later, kept, back = taken
    await questions.later(later.id, 600.0)
    await questions.release([later, back])
    ((again),) = await questions.take(8, 60.0)
    assert (again.id, again.tries) == (back.id, 1), "a try that was cut off does not count"
    await questions.release([back])
    assert await questions.take(8, 60.0) == [], "what another has taken since is not given back"
    assert {kept.id, later.id, back.id} == {one.id for one in taken}


async def test_text_and_reply_leave_with_the_end_and_the_row_after_its_time(records: asyncpg.Pool) -> None:
    await told(records)
    questions = SlackQuestions(records)
    await questions.receive(MENTION)
    (question,) = await questions.take(8, 60.0)
    assert await questions.open(question.person, without=question.id) == 0
    assert await questions.open(question.person, without=UUID(int=0)) == 1
    await questions.reply(question.id, "unknown_user", {"method": "chat.postEphemeral", "body": {}})
    assert await questions.told_lately(question.person, "unknown_user", 60.0)
    assert not await questions.told_lately("U0000000BOB", "unknown_user", 60.0)
    await questions.done(question.id)
    await questions.reply(question.id, "answered", {"method": "x", "body": {}})  # a controller that comes late
    assert tuple(await records.fetchrow("SELECT state, outcome, question, reply FROM slack_question")) == (
        "done",
        "unknown_user",
        None,
        None,
    )
    await questions.forget(3600.0)
    assert await records.fetchval("SELECT count(*) FROM slack_question") == 1
    await records.execute("UPDATE slack_question SET done_at = now() - interval '3601 seconds'")
    await questions.forget(3600.0)
    assert await records.fetchval("SELECT count(*) FROM slack_question") == 0


async def test_threads_and_questions_go_with_their_investigation(records: asyncpg.Pool) -> None:
    run = await told(records)
    await SlackQuestions(records).receive(MENTION)
    await records.execute("DELETE FROM investigation WHERE id = $1", run)
    assert await records.fetchval("SELECT count(*) FROM slack_question") == 0
    assert await records.fetchval("SELECT count(*) FROM slack_thread") == 0
