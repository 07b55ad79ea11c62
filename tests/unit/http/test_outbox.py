"""Tests that the queue of a client is bounded, and that a slow client delays no other."""

import asyncio

import pytest

from tarsy.http.live.send_queue import QueuedMessage, SendQueue


def note(data: str = "x") -> QueuedMessage:
    return QueuedMessage("event", data)


@pytest.mark.parametrize(("offered", "overrun"), [(3, False), (4, False), (5, True)])
async def test_so_many_notes_and_no_more(offered: int, overrun: bool) -> None:
    outbox = SendQueue(messages=4)
    for _ in range(offered):
        outbox.offer(note())
    assert outbox.overrun.is_set() is overrun
    assert len(await outbox.take()) == (0 if overrun else offered)


@pytest.mark.parametrize(("size", "overrun"), [(9, False), (10, False), (11, True)])
async def test_so_many_characters_and_no_more(size: int, overrun: bool) -> None:
    outbox = SendQueue(characters=20)
    outbox.offer(note("x" * 10))
    outbox.offer(note("x" * size))
    assert outbox.overrun.is_set() is overrun


async def test_a_note_that_is_longer_than_all_of_them_may_be_is_sent_by_itself() -> None:
    outbox = SendQueue(characters=20)
    outbox.offer(note("x" * 100))
    assert len(await outbox.take()) == 1
    assert not outbox.overrun.is_set()


async def test_words_are_left_out_where_a_client_is_half_behind() -> None:
    outbox = SendQueue(messages=4)
    for number in range(4):
        outbox.offer(note(str(number)), dispensable=True)
    assert [one.data for one in await outbox.take()] == ["0", "1"]


async def test_the_past_waits_until_half_of_the_room_is_free() -> None:
    outbox = SendQueue(messages=4)

    async def past() -> None:
        for number in range(6):
            await outbox.put(note(str(number)))

    telling = asyncio.create_task(past())
    for _ in range(10):
        await asyncio.sleep(0)
    taken = []
    while len(taken) < 6:
        notes = await outbox.take()
        assert len(notes) <= 2
        taken += [one.data for one in notes]
        await asyncio.sleep(0)
    await telling
    assert taken == list("012345")
    assert not outbox.overrun.is_set()


async def test_who_is_overrun_gets_nothing_more() -> None:
    outbox = SendQueue(messages=1)
    waiting = asyncio.create_task(outbox.take())
    await asyncio.sleep(0)
    outbox.offer(note())
    outbox.offer(note())
    assert await waiting == []
    outbox.offer(note())
    assert await outbox.take() == []
