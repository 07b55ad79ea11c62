"""The loop guard alone: what may be answered again, and until when."""

import asyncio
from uuid import UUID

import pytest

from tarsy.engine.tool_calls.loop_guard import LoopGuard, canonical, original
from tarsy.record.history import PastCall

A, B = UUID(int=1), UUID(int=2)
CALL = UUID(int=9)


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def made(guard: LoopGuard, *, by: UUID = A, tool: str = "get", arguments: str = "{}", reads: bool = True) -> None:
    """A call that began and ended well."""
    ticket = guard.started(by, "k", tool, arguments, reads=reads, message_seq=2)
    guard.finished(ticket, original(CALL, by, 2, 0) if reads else None)


async def again(guard: LoopGuard, *, by: UUID = A, tool: str = "get", arguments: str = "{}") -> bool:
    return await guard.repeated(by, "k", tool, arguments, message_seq=4) is not None


async def test_the_same_call_has_its_answer_whatever_the_order_of_its_keys() -> None:
    guard = LoopGuard()
    made(guard, arguments='{"name": "x", "ns": "team-a"}')

    assert await again(guard, arguments='{ "ns":"team-a","name":"x"}')
    assert not await again(guard, arguments='{"name": "y", "ns": "team-a"}')
    assert not await again(guard, tool="logs", arguments='{"name": "x", "ns": "team-a"}')


async def test_another_execution_makes_its_own_calls() -> None:
    guard = LoopGuard()
    made(guard)

    assert not await again(guard, by=B)


@pytest.mark.parametrize(("seconds", "holds"), [(119.9, True), (120.0, True), (120.1, False)])
async def test_an_answer_holds_for_so_many_seconds(seconds: float, holds: bool) -> None:
    clock = Clock()
    guard = LoopGuard(seconds=120.0, clock=clock)
    made(guard)

    clock.now += seconds

    assert await again(guard) is holds


async def test_with_no_seconds_every_call_is_made() -> None:
    guard = LoopGuard(seconds=0.0, clock=Clock())
    made(guard)

    assert not await again(guard)


async def test_a_call_that_may_change_something_voids_all_answers_of_all_agents() -> None:
    guard = LoopGuard()
    made(guard)
    made(guard, by=B, tool="act", reads=False)

    assert not await again(guard)
    made(guard)
    assert await again(guard)


async def test_nothing_holds_while_something_may_be_changing() -> None:
    guard = LoopGuard()
    made(guard)
    act = guard.started(B, "k", "act", "{}", reads=False, message_seq=2)
    assert not await again(guard)
    made(guard)  # it may have seen the state before, or after
    guard.finished(act, None)

    assert not await again(guard)


async def test_a_call_that_a_change_overlapped_does_not_hold() -> None:
    guard = LoopGuard()
    ticket = guard.started(A, "k", "get", "{}", reads=True, message_seq=2)
    made(guard, by=B, tool="act", reads=False)
    guard.finished(ticket, original(CALL, A, 2, 0))

    assert not await again(guard)


async def test_a_call_that_failed_is_made_again() -> None:
    guard = LoopGuard()
    guard.finished(guard.started(A, "k", "get", "{}", reads=True, message_seq=2), None)

    assert not await again(guard)


async def test_the_same_call_beside_itself_waits_for_the_first() -> None:
    guard = LoopGuard()
    ticket = guard.started(A, "k", "get", "{}", reads=True, message_seq=2)
    second = asyncio.ensure_future(guard.repeated(A, "k", "get", "{}", message_seq=2))
    await asyncio.sleep(0)
    assert not second.done()

    first = original(CALL, A, 2, 0)
    guard.finished(ticket, first)

    found = await second
    assert found is not None and found.original == first


def past(
    index: int, *, usable: bool = True, age: float = 0.0, repeated: bool = False, arguments: str = "{}"
) -> PastCall:
    return PastCall(UUID(int=100 + index), A, 2, index, "k", "get", arguments, age, usable, CALL if repeated else None)


@pytest.mark.parametrize(
    ("call", "holds"),
    [(past(0), True), (past(0, usable=False), False), (past(0, age=120.0), True), (past(0, age=121.0), False)],
)
async def test_a_resumed_run_knows_what_was_called(call: PastCall, holds: bool) -> None:
    assert await again(LoopGuard([call], clock=Clock())) is holds


async def test_the_streak_of_repetitions_is_counted_by_place_and_survives() -> None:
    guard = LoopGuard([past(0), past(1, repeated=True, usable=False), past(2, repeated=True, usable=False)])
    assert guard.in_a_row(A) == 2

    guard.answered(A, 4, 1, repeated=True)
    guard.answered(A, 4, 0, repeated=False)  # came later, stands before
    assert guard.in_a_row(A) == 1
    assert guard.in_a_row(B) == 0


@pytest.mark.parametrize(("one", "other"), [("", "{}"), (" {} ", "{}"), ('{"a":[1, 2]}', '{ "a" : [1,2] }')])
def test_canonical_arguments_are_equal(one: str, other: str) -> None:
    assert canonical(one) == canonical(other)


def test_arguments_that_are_no_json_are_compared_as_text() -> None:
    assert canonical(" name=x ") == "name=x" != canonical("name=y")


# A fresh look.


async def look(guard: LoopGuard, seq: int) -> str:
    """The same call in the message `seq`: `made`, or answered from the record, and whether the next one is made."""
    found = await guard.repeated(A, "k", "get", "{}", message_seq=seq)
    if found is not None:
        guard.told(A, "k", "get", "{}", message_seq=seq)
        guard.answered(A, seq, 0, repeated=True)
        return "again, then fresh" if found.fresh_next else "again"
    ticket = guard.started(A, "k", "get", "{}", reads=True, message_seq=seq)
    guard.finished(ticket, original(CALL, A, seq, 0))
    guard.answered(A, seq, 0, repeated=None if ticket.fresh else False)
    return "fresh" if ticket.fresh else "made"


async def test_a_model_that_asks_once_more_gets_one_fresh_look() -> None:
    guard = LoopGuard(clock=Clock())

    assert [await look(guard, seq) for seq in (2, 4, 6, 8, 10)] == [
        "made",
        "again, then fresh",
        "fresh",
        "again",
        "again",
    ]
    assert guard.in_a_row(A) == 3  # the fresh look neither counts nor breaks the row


async def test_the_same_call_twice_in_one_message_is_no_request_for_a_fresh_look() -> None:
    guard = LoopGuard(clock=Clock())

    assert [await look(guard, seq) for seq in (2, 4, 4, 4)] == ["made", *["again, then fresh"] * 3]


@pytest.mark.parametrize(("seconds", "then"), [(119.0, "again"), (120.0, "again"), (121.0, "made")])
async def test_a_fresh_look_holds_as_long_as_any_answer(seconds: float, then: str) -> None:
    clock = Clock()
    guard = LoopGuard(seconds=120.0, clock=clock)
    for seq in (2, 4, 6):
        await look(guard, seq)

    clock.now += seconds

    assert await look(guard, 8) == then
    assert await look(guard, 10) == ("again" if then == "again" else "again, then fresh")


@pytest.mark.parametrize("age", [0.0, 59.4, 120.0])
async def test_the_age_of_an_answer_is_known(age: float) -> None:
    clock = Clock()
    guard = LoopGuard(seconds=120.0, clock=clock)
    made(guard)
    clock.now += age

    found = await guard.repeated(A, "k", "get", "{}", message_seq=4)

    assert found is not None and found.age_seconds == pytest.approx(age)


@pytest.mark.parametrize(
    ("before", "then"),
    [
        (["made"], "again, then fresh"),
        (["made", "again"], "fresh"),
        (["made", "again", "made"], "again"),
        (["made", "again", "made", "again"], "again"),
    ],
)
async def test_a_resumed_run_knows_who_had_a_fresh_look(before: list[str], then: str) -> None:
    calls = [
        PastCall(
            UUID(int=100 + n), A, 2 + 2 * n, 0, "k", "get", "{}", 1.0, how == "made", CALL if how == "again" else None
        )
        for n, how in enumerate(before)
    ]
    row = sum(how == "again" for how in before)

    guard = LoopGuard(reversed(calls), clock=Clock())

    assert guard.in_a_row(A) == row
    assert await look(guard, 20) == then
