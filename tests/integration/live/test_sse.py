"""Tests server-sent events."""

import asyncio

import asyncpg
import pytest

from integration.live.api import ONE, PATIENCE, asked, changes, eventually, frames, kube, running_run, serving
from tarsy.http.live import sse
from tarsy.record.run import RunOutcome, State
from tarsy.record.timeline import EventStatus
from tarsy.store.runs.lifecycle import Runs


async def test_events_are_followed_and_gone_on_with_from_the_last_id(dsn: str, pool: asyncpg.Pool) -> None:
    async with running_run(pool) as run, serving(dsn, pool) as api:
        await run.event("a")
        async with api.get(f"{ONE}/events?follow=true") as answer:
            assert answer.headers["Content-Type"].startswith("text/event-stream")
            first = await frames(answer, "caughtUp")
            await run.event("b", EventStatus.STREAMING)
            first += await frames(answer, "timelineEvent.created")
        await run.event("b")
        last = {"Last-Event-ID": first[-1]["id"]}
        async with api.get(f"{ONE}/events?follow=true&after=0", headers=last) as answer:
            second = await frames(answer, "caughtUp")
        told = [f["data"]["event"] for f in first + second if "event" in f["data"]]
        assert [(e["content"], e["status"]) for e in told] == [
            ("a", "completed"),
            ("b", "streaming"),
            ("b", "completed"),
        ]


async def test_a_past_of_any_length_is_told_whole(dsn: str, pool: asyncpg.Pool) -> None:
    async with running_run(pool) as run, serving(dsn, pool) as api:
        for number in range(450):
            await run.event(f"e{number}")
        async with api.get(f"{ONE}/events?follow=true") as answer:
            events = [f["data"] for f in await frames(answer, "caughtUp") if f["event"].startswith("timelineEvent.")]
        assert [(m["event"]["id"], m["event"]["revision"]) for m in events] == await changes(pool, run.id)


async def test_timeline_is_followed_to_the_end_of_the_run(dsn: str, pool: asyncpg.Pool) -> None:
    async with running_run(pool) as run, serving(dsn, pool) as api:
        async with api.get(f"{ONE}/timeline?follow=true") as answer:
            await frames(answer, "caughtUp")
            await run.stage()
            await run.event("a")
            await Runs(pool, run.notifier.notify).finish(
                run.id, 1, RunOutcome(State.COMPLETED), remaining=lambda: PATIENCE
            )
            told = await frames(answer, "investigation.changed")
        assert [frame["event"] for frame in told] == ["timelineEvent.closed", "investigation.changed"]
        assert told[-1]["data"]["run"]["state"] == "completed"


async def test_one_question_is_followed_by_itself(dsn: str, pool: asyncpg.Pool) -> None:
    async with running_run(pool) as run, serving(dsn, pool) as api:
        await run.event("of the investigation")
        await Runs(pool).finish(run.id, 1, RunOutcome(State.COMPLETED), remaining=lambda: PATIENCE)
        async with asked(pool, run.id, run.notifier) as answer:
            async with api.get(f"{ONE}/timeline?follow=true&chatMessage=why") as stream:
                await frames(stream, "caughtUp")
                await answer.event("of the question")
                told = await frames(stream, "timelineEvent.closed")
        assert [f["data"]["event"]["content"] for f in told if "event" in f["data"]] == ["of the question"]


async def test_events_are_read_page_by_page_too(dsn: str, pool: asyncpg.Pool) -> None:
    async with running_run(pool) as run, serving(dsn, pool) as api:
        for number in range(7):
            await run.event(f"e{number}")
        after, told = "0", list[tuple[str, int]]()
        for more in (True, True, False):
            async with api.get(f"{ONE}/events?limit=3&after={after}") as answer:
                page = await answer.json()
            after = page["id"]
            told += [(m["event"]["id"], m["event"]["revision"]) for m in page["items"]]
            assert page["more"] is more
        assert told == await changes(pool, run.id)


@pytest.mark.parametrize("of", ["timeline", "events"])
async def test_who_may_not_is_refused_and_loses_it_when_the_right_is_taken_away(
    dsn: str, pool: asyncpg.Pool, of: str
) -> None:
    may = {"events", "timeline"}
    people = kube(lambda spec: spec["resourceAttributes"].get("subresource") in may)
    async with running_run(pool), serving(dsn, pool, people, check_seconds=0.1) as api:
        async with api.get(f"{ONE}/{of}?follow=true") as answer:
            await frames(answer, "caughtUp")
            may.discard(of)
            assert (await frames(answer, "error"))[-1]["data"]["reason"] == "Forbidden"
            async with asyncio.timeout(PATIENCE):
                assert await answer.content.read() == b""
        async with api.get(f"{ONE}/{of}?follow=true") as answer:
            assert answer.status == 403


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        (f"{ONE}/events?follow=true&after=x", {}, 400),
        (f"{ONE}/events?follow=maybe", {}, 400),
        (f"{ONE}/events?limit=0", {}, 400),
        (f"{ONE}/events?limit=1001", {}, 400),
        (f"{ONE}/events?limit=1000", {}, 200),
        (f"{ONE}/events?follow=true", {"Last-Event-ID": "-3"}, 400),
        (f"{ONE.replace('alert-1', 'none')}/events?follow=true", {}, 404),
        (f"{ONE}/events?follow=true&chatMessage=none", {}, 404),
    ],
)
async def test_what_is_wrong_is_said_before_anything_streams(
    dsn: str, pool: asyncpg.Pool, path: str, headers: dict[str, str], status: int
) -> None:
    async with running_run(pool), serving(dsn, pool) as api, api.get(path, headers=headers) as answer:
        assert answer.status == status


async def test_silence_is_filled(dsn: str, pool: asyncpg.Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "HEARTBEAT_SECONDS", 0.05)
    async with running_run(pool), serving(dsn, pool) as api, api.get(f"{ONE}/events?follow=true") as answer:
        async with asyncio.timeout(PATIENCE):
            await answer.content.readuntil(b": still here\n\n")


async def test_stream_ends_with_the_process_and_leaves_its_place_when_the_client_goes(
    dsn: str, pool: asyncpg.Pool
) -> None:
    async with running_run(pool), serving(dsn, pool) as api:
        async with api.get(f"{ONE}/events?follow=true") as answer:
            await frames(answer, "caughtUp")
            assert api.hub.connections("ann") == 1
        await eventually(lambda: api.hub.connections("ann") == 0)
        async with api.get(f"{ONE}/events?follow=true") as answer:
            await frames(answer, "caughtUp")
            api.services.stopping.set()
            async with asyncio.timeout(PATIENCE):
                assert await answer.content.read() == b""


async def test_an_event_of_a_type_that_a_newer_replica_wrote_is_followed_as_any_other(
    dsn: str, pool: asyncpg.Pool
) -> None:
    async with running_run(pool) as run, serving(dsn, pool) as api:
        await run.event("newer")
        await pool.execute("UPDATE timeline_event SET type = 'something_newer'")
        async with api.get(f"{ONE}/events?follow=true") as answer:
            told = [f["data"]["event"] for f in await frames(answer, "caughtUp") if "event" in f["data"]]
            assert [(e["type"], e["content"]) for e in told] == [("something_newer", "newer")]
            await run.event("known")
            (live,) = await frames(answer, "timelineEvent.closed")
        assert live["data"]["event"]["type"] == "llm_response"
