"""Tests that masked model output streams from one process to another, and ends with the event."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from uuid import uuid4

import asyncpg
import pytest

from integration.live.api import CHANNEL, Socket, serving
from tarsy.plan.model import AgentLimits
from tarsy.record.timeline import EventStatus
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.lifecycle import NewRun, Runs
from unit.engine.build import agent, plan, stage

ELSEWHERE = Path(__file__).parent / "elsewhere.py"
ANSWER = "The disk of node-7 is full because of its logs.\nThe password: hunter22xyz was found there.\nClean it.\n"
SAID = "The disk of node-7 is full because of its logs.\n"
SHOWN = ANSWER.replace("hunter22xyz", "[MASKED_PASSWORD]")


class Speaker:
    """A worker elsewhere."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    def say(self, text: str | None, kind: str = "text") -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(None if text is None else [kind, text]).encode() + b"\n")


@asynccontextmanager
async def elsewhere(dsn: str) -> AsyncIterator[Speaker]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, str(ELSEWHERE), dsn, stdin=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        yield Speaker(process)
    finally:
        process.kill()
        await process.wait()


async def accepted(pool: asyncpg.Pool) -> NewRun:
    run = NewRun(
        id=uuid4(),
        namespace="team-a",
        namespace_uid="uid-of-team-a",
        name="alert-1",
        plan=plan(stage("look", agent()), limits=AgentLimits(finding_repairs=0)),
        alert_data="{}",
        runbook="",
        author={"username": "ada"},
    )
    await Runs(pool).accept(run)
    return run


async def read_along(socket: Socket, until: str) -> str:
    """The text of the deltas, as soon as it is so long."""
    text = "".join(m["text"] for m in socket.told if m["type"] == "delta")
    while len(text) < len(until):
        message = await socket.until_type("delta")
        assert message["offset"] == len(text)
        text += message["text"]
    return text


async def test_words_are_read_along_with_and_the_event_has_the_whole(dsn: str, pool: asyncpg.Pool) -> None:
    await accepted(pool)
    async with serving(dsn, pool) as api, api.socket() as early, api.socket() as late, elsewhere(dsn) as speaker:
        await early.ask("subscribe", CHANNEL)
        await early.until_type("caughtUp")
        for place in range(0, len(ANSWER), 9):
            speaker.say(ANSWER[place : place + 9])
        assert await read_along(early, SHOWN) == SHOWN
        created = next(m for m in early.told if m["type"] == "timelineEvent.created")
        await late.ask("subscribe", CHANNEL)
        assert await read_along(late, SHOWN) == SHOWN
        speaker.say(None)
        closed = await early.until_type("timelineEvent.closed")
        assert closed["event"]["id"] == created["event"]["id"]
        assert closed["event"]["content"].strip() == SHOWN.strip()
        await early.until(lambda m: m["type"] == "investigation.changed" and m["run"]["state"] == "completed")
        assert "hunter" not in json.dumps(early.told + late.told)


async def test_a_follower_that_comes_amid_a_stream_is_shown_its_text_and_a_crash_leaves_its_event(
    dsn: str, pool: asyncpg.Pool
) -> None:
    run = await accepted(pool)
    reads = Reads(pool)
    async with serving(dsn, pool) as api, api.socket() as socket:
        async with elsewhere(dsn) as speaker:
            speaker.say(SAID)
            async with asyncio.timeout(30):
                while True:
                    record = await reads.record(run.id)
                    if record is not None and record.stages:
                        break
                    await asyncio.sleep(0.02)
            assert await reads.timeline(run.id) == [], "nobody follows it"
            await socket.ask("subscribe", CHANNEL)
            assert await read_along(socket, SAID) == SAID
        (event,) = await reads.timeline(run.id)
        shown = next(m for m in socket.told if m["type"] == "timelineEvent.created")
        assert (str(event.id), event.status) == (shown["event"]["id"], EventStatus.STREAMING)


@pytest.mark.heavy("reading along is beside it")
async def test_nothing_is_told_on_the_wire_where_nobody_reads_along(dsn: str, pool: asyncpg.Pool) -> None:
    run = await accepted(pool)
    heard: list[str] = []
    connection = await asyncpg.connect(dsn)
    await connection.add_listener("tarsy_delta", lambda *said: heard.append(said[3]))
    async with elsewhere(dsn) as speaker:
        for word in ANSWER.split():
            speaker.say(f"{word} ")
        speaker.say(None)
        reads = Reads(pool)
        async with asyncio.timeout(60):
            while True:
                record = await reads.record(run.id)
                if record is not None and record.state.finished:
                    break
                await asyncio.sleep(0.1)
    events = await reads.timeline(run.id)
    assert [e.status for e in events] == [EventStatus.COMPLETED]
    assert heard == []
    await connection.close()


@pytest.mark.heavy("words are read along with beside it")
async def test_thinking_is_read_along_with_as_an_event_of_its_own(dsn: str, pool: asyncpg.Pool) -> None:
    await accepted(pool)
    async with serving(dsn, pool) as api, api.socket() as socket, elsewhere(dsn) as speaker:
        await socket.ask("subscribe", CHANNEL)
        await socket.until_type("caughtUp")
        speaker.say("Let me see. What ", "thinking")
        assert await read_along(socket, "Let me see. What ") == "Let me see. What "
        speaker.say("It is full. So ")
        message = await socket.until(lambda m: m["type"] == "delta" and m["text"].startswith("It"))
        thinking = {m["event"] for m in socket.told if m["type"] == "delta" and m["text"].startswith("Let")}
        assert message["event"] not in thinking
