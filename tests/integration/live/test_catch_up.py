"""Tests catch-up: clients that disconnect and reconnect lose no change and receive none twice."""

import asyncio
import random

import asyncpg
import pytest

from integration.live.api import CHANNEL, Api, Run, Socket, changes, running_run, serving
from integration.store.build import event
from tarsy.record.timeline import EventStatus

Change = tuple[str, int]


async def write(run: Run, seed: int, steps: int) -> None:
    """Events that begin, change and end; some of them at once."""
    chance, open_parts = random.Random(seed), list[str]()
    for step in range(steps):
        if open_parts and chance.random() < 0.4:
            await run.event(open_parts.pop(chance.randrange(len(open_parts))))
        elif chance.random() < 0.3:
            together = [event(run.id, f"{step}/{number}") for number in range(chance.randint(2, 4))]
            await run.write.write_events(together)
        else:
            open_parts.append(str(step))
            await run.event(str(step), EventStatus.STREAMING)
        if chance.random() < 0.3:
            await asyncio.sleep(chance.random() * 0.05)


async def follow_for_a_while(socket: Socket, after: str | None, chance: random.Random, done: asyncio.Event) -> None:
    """Follows for some messages, or until nothing more is written."""
    await socket.ask("subscribe", CHANNEL, **({} if after is None else {"after": after}))
    over = asyncio.create_task(done.wait())
    for _ in range(chance.randint(1, 25)):
        message = asyncio.create_task(socket.until(lambda _: True))
        await asyncio.wait({message, over}, return_when=asyncio.FIRST_COMPLETED)
        if not message.done():
            message.cancel()
            await asyncio.wait({message})
            break
    over.cancel()


def _known(socket: Socket, after: str | None) -> tuple[list[Change], str | None]:
    """What is known for sure: up to the last id."""
    known, waiting = list[Change](), list[Change]()
    for message in socket.told:
        if message["type"].startswith("timelineEvent."):
            waiting.append((message["event"]["id"], message["event"]["revision"]))
        if message.get("id") is not None:
            known, waiting, after = known + waiting, [], message["id"]
    return known, after


async def comes_and_goes(api: Api, seed: int, done: asyncio.Event) -> list[Change]:
    """All that somebody was told who connects again and again, and at last until there is nothing more."""
    chance, after, told = random.Random(seed), None, list[Change]()
    while not done.is_set():
        async with api.socket() as socket:
            await follow_for_a_while(socket, after, chance, done)
            known, after = _known(socket, after)
            told += known
    async with api.socket() as socket:
        await socket.ask("subscribe", CHANNEL, **({} if after is None else {"after": after}))
        await socket.until_type("caughtUp")
        return told + _known(socket, after)[0]


async def stays(api: Api, finished: asyncio.Event, marker: list[str]) -> list[Change]:
    """All that somebody was told who stays connected."""
    async with api.socket() as socket:
        await socket.ask("subscribe", CHANNEL)
        await finished.wait()
        await socket.until(lambda m: m.get("event", {}).get("content") == marker[0])
        return socket.events()


@pytest.mark.sweep("another order")
@pytest.mark.parametrize("seed", range(4))
async def test_every_change_is_told_once_to_everybody(dsn: str, pool: asyncpg.Pool, seed: int) -> None:
    async with running_run(pool) as run, serving(dsn, pool, poll_seconds=0.3) as api:
        done, finished = asyncio.Event(), asyncio.Event()
        async with asyncio.TaskGroup() as group:
            guests = [group.create_task(comes_and_goes(api, seed * 10 + n, done)) for n in range(3)]
            guests += [group.create_task(stays(api, finished, ["the last"]))]
            await write(run, seed, 80)
            done.set()
            await run.event("the last")
            finished.set()
        record = dict(await changes(pool, run.id))
        for guest in guests:
            told = guest.result()
            assert len(set(told)) == len(told), "nothing is told twice"
            seen = dict(told)
            missing = {identity: at for identity, at in record.items() if seen.get(identity) != at}
            assert set(missing) <= _after_its_end(guest is guests[-1], record), "nothing is lost"


def _after_its_end(stayed: bool, record: dict[str, int]) -> set[str]:
    """What came after somebody had caught up for the last time: the last event, and nothing for who stayed."""
    return set() if stayed else {max(record, key=lambda identity: record[identity])}
