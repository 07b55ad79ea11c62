"""Tests the WebSocket: messages, authorization, and close codes."""

import base64
import contextlib
import json

import aiohttp
import asyncpg
import pytest

from integration.live.api import CHANNEL, PATIENCE, asked, changes, eventually, kube, running_run, serving
from integration.store.build import event, new_run
from tarsy.http.live.cursor import read_cursor
from tarsy.record.run import RunOutcome, State
from tarsy.record.timeline import EventStatus
from tarsy.store.runs.lifecycle import Runs


async def test_follower_is_told_what_was_and_what_comes(dsn: str, pool: asyncpg.Pool) -> None:
    async with running_run(pool) as run, serving(dsn, pool) as api, api.socket() as socket:
        await run.event("first")
        await socket.ask("subscribe", CHANNEL)
        caught_up = await socket.until_type("caughtUp")
        assert [m["type"] for m in socket.told] == [
            "subscribed",
            "investigation.changed",
            "timelineEvent.closed",
            "caughtUp",
        ]
        await run.stage()
        assert (await socket.until_type("stage.changed"))["stage"]["name"] == "stage-0"
        await run.event("second", EventStatus.STREAMING)
        assert (await socket.until_type("timelineEvent.created"))["event"]["content"] == "second"
        await run.event("second", content="all of it")
        closed = await socket.until_type("timelineEvent.closed")
        assert closed["event"]["content"] == "all of it"
        assert closed["investigation"] == {"namespace": "team-a", "name": "alert-1", "uid": str(run.id)}
        assert read_cursor(closed["id"]).of(0) > read_cursor(caught_up["id"]).of(0)
        await Runs(pool, run.notifier.notify).finish(run.id, 1, RunOutcome(State.COMPLETED), remaining=lambda: PATIENCE)
        ended = await socket.until_type("investigation.changed")
        assert ended["run"]["state"] == "completed"


async def test_who_comes_again_is_told_what_was_missed_and_nothing_twice(dsn: str, pool: asyncpg.Pool) -> None:
    async with running_run(pool) as run, serving(dsn, pool) as api:
        async with api.socket() as socket:
            await socket.ask("subscribe", CHANNEL)
            await run.event("a")
            seen = (await socket.until_type("timelineEvent.closed"))["id"]
        await run.event("b")
        await run.event("c")
        async with api.socket() as again:
            await again.ask("subscribe", CHANNEL, after=seen)
            await again.until_type("caughtUp")
        assert socket.events() + again.events() == await changes(pool, run.id)


async def test_more_than_is_caught_up_with_is_an_overflow_and_what_comes_is_told(dsn: str, pool: asyncpg.Pool) -> None:
    async with running_run(pool) as run, serving(dsn, pool) as api, api.socket() as socket:
        for number in range(201):
            await run.event(f"e{number}")
        await socket.ask("subscribe", CHANNEL)
        overflow = await socket.until_type("overflow")
        assert overflow["after"] == "0"
        await socket.until_type("caughtUp")
        await run.event("later")
        await socket.until_type("timelineEvent.closed")
        assert socket.events() == (await changes(pool, run.id))[-1:]
        await socket.ask("catchup", CHANNEL, after=(await changes(pool, run.id))[-11][1])
        await socket.until_type("caughtUp")
        assert socket.events()[1:] == (await changes(pool, run.id))[-10:]


async def test_as_many_as_are_caught_up_with_are_all_told(dsn: str, pool: asyncpg.Pool) -> None:
    async with running_run(pool) as run, serving(dsn, pool) as api, api.socket() as socket:
        for number in range(200):
            await run.event(f"e{number}")
        await socket.ask("subscribe", CHANNEL)
        await socket.until_type("caughtUp")
        assert socket.events() == await changes(pool, run.id)


async def test_questions_are_told_on_the_channel_of_their_investigation(dsn: str, pool: asyncpg.Pool) -> None:
    async with running_run(pool) as run, serving(dsn, pool) as api, api.socket() as socket:
        await Runs(pool).finish(run.id, 1, RunOutcome(State.COMPLETED), remaining=lambda: PATIENCE)
        await socket.ask("subscribe", CHANNEL)
        await socket.until_type("caughtUp")
        async with asked(pool, run.id, run.notifier) as answer:
            message = await socket.until(lambda m: m["type"] == "investigation.changed" and m["question"] is not None)
            assert message["question"] == {"name": "why", "uid": str(answer.id), "place": 1}
            await answer.event("thinking")
            told = await socket.until_type("timelineEvent.closed")
            assert told["question"]["name"] == "why"
            assert told["id"] == f"{read_cursor(told['id']).of(0)},1:{told['event']['revision']}"


async def test_list_tells_of_new_and_changed_investigations_of_its_namespace(dsn: str, pool: asyncpg.Pool) -> None:
    async with running_run(pool) as run, serving(dsn, pool) as api, api.socket() as one, api.socket() as every:
        await one.ask("subscribe", "investigations:team-a")
        await every.ask("subscribe", "investigations")
        for socket in (one, every):
            await socket.until_type("subscribed")
        other, mine = new_run(namespace="team-b", name="b"), new_run(name="a")
        runs = Runs(pool, run.notifier.notify)
        await runs.accept(other)
        await runs.accept(mine)
        assert (await one.until_type("investigations.changed"))["item"]["name"] == "a"
        names = {(await every.until_type("investigations.changed"))["item"]["name"] for _ in range(2)}
        assert names == {"a", "b"}
        await run.stage()
        changed = await one.until_type("investigations.changed")
        assert changed["item"]["uid"] == str(run.id)
        assert changed["item"]["progress"]["currentStage"] == "stage-0"


async def test_lost_wakeup_costs_a_poll_and_no_change(dsn: str, pool: asyncpg.Pool) -> None:
    async with running_run(pool) as run, serving(dsn, pool, poll_seconds=0.2) as api, api.socket() as socket:
        await socket.ask("subscribe", CHANNEL)
        await socket.until_type("caughtUp")
        await socket.ask("subscribe", "investigations")
        await socket.until(lambda m: m["type"] == "subscribed" and m["channel"] == "investigations")
        unheard = run.without_wakeups()
        await unheard.event("unheard")
        await socket.until_type("timelineEvent.closed")
        await unheard.stage()
        await socket.until_type("investigations.changed")


async def test_who_may_not_is_told_so_whether_it_exists_or_not(dsn: str, pool: asyncpg.Pool) -> None:
    async with running_run(pool), serving(dsn, pool, kube(lambda _: False)) as api, api.socket() as socket:
        refusals = []
        for channel in (CHANNEL, "investigation:team-a/none", "investigation:gone/none", "investigations"):
            await socket.ask("subscribe", channel)
            refusals.append(await socket.until_type("error"))
        assert {refusal["reason"] for refusal in refusals} == {"Forbidden"}
        assert len({refusal["message"].replace("gone", "team-a") for refusal in refusals[:3]}) == 1


async def test_what_is_asked_of_kubernetes_is_the_right_of_the_channel(dsn: str, pool: asyncpg.Pool) -> None:
    people = kube()
    async with running_run(pool), serving(dsn, pool, people) as api, api.socket() as socket:
        await socket.ask("subscribe", CHANNEL)
        await socket.ask("subscribe", "investigations:team-a")
        await socket.ask("subscribe", "investigations")
        await socket.until(lambda m: m["type"] == "subscribed" and m["channel"] == "investigations")
    asked = [r["spec"]["resourceAttributes"] for r in people.reviews if r["kind"] == "SubjectAccessReview"]
    assert [
        (a["verb"], a["group"], a["resource"], a.get("subresource", ""), a.get("namespace", "")) for a in asked
    ] == [
        ("get", "record.tarsy.dev", "investigations", "events", "team-a"),
        ("list", "tarsy.dev", "investigations", "", "team-a"),
        ("list", "tarsy.dev", "investigations", "", ""),
    ]


async def test_right_that_is_taken_away_ends_the_subscription_and_no_other(dsn: str, pool: asyncpg.Pool) -> None:
    taken: set[str] = set()
    people = kube(lambda spec: spec["resourceAttributes"]["group"] not in taken)
    async with running_run(pool) as run, serving(dsn, pool, people, check_seconds=0.1) as api, api.socket() as socket:
        await socket.ask("subscribe", CHANNEL)
        await socket.ask("subscribe", "investigations")
        await socket.until_type("caughtUp")
        taken.add("record.tarsy.dev")
        ended = await socket.until_type("error")
        assert (ended["channel"], ended["reason"]) == (CHANNEL, "Forbidden")
        await run.event("secret")
        await socket.until_type("investigations.changed")
        assert socket.events() == []
        taken.add("tarsy.dev")
        assert (await socket.until_type("error"))["channel"] == "investigations"


async def test_token_that_is_no_good_any_more_ends_the_connection(dsn: str, pool: asyncpg.Pool) -> None:
    people = kube()
    async with running_run(pool), serving(dsn, pool, people, check_seconds=0.1) as api, api.socket() as socket:
        await socket.ask("subscribe", CHANNEL)
        await socket.until_type("caughtUp")
        people.tokens = {}
        assert await socket.closed() == (1008, "the token is no longer valid")


async def test_kubernetes_that_is_away_for_a_while_ends_nothing(dsn: str, pool: asyncpg.Pool) -> None:
    people = kube()
    async with running_run(pool) as run, serving(dsn, pool, people, check_seconds=0.5) as api, api.socket() as socket:
        await socket.ask("subscribe", CHANNEL)
        await socket.until_type("caughtUp")
        before, people.away = people.asked["TokenReview"], True
        await eventually(lambda: people.asked["TokenReview"] >= before + 2)
        people.away = False
        await run.event("on")
        await socket.until_type("timelineEvent.closed")


async def test_nobody_connects_without_a_token_and_browsers_send_it_as_a_subprotocol(
    dsn: str, pool: asyncpg.Pool
) -> None:
    token = base64.urlsafe_b64encode(b"ann").decode().rstrip("=")
    async with serving(dsn, pool) as api:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            await api.session.ws_connect(f"{api.url}/api/v1/ws")
        assert refused.value.status == 401
        offered = ("v1.tarsy.dev", f"base64url.bearer.authorization.k8s.io.{token}")
        async with api.session.ws_connect(f"{api.url}/api/v1/ws", protocols=offered) as ws:
            assert ws.protocol == "v1.tarsy.dev"


@pytest.mark.parametrize(("origin", "status"), [("https://evil.example", 403), ("null", 403)])
async def test_pages_of_other_sites_do_not_connect(dsn: str, pool: asyncpg.Pool, origin: str, status: int) -> None:
    async with serving(dsn, pool) as api:
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with api.socket(headers={"Origin": origin}):
                pass
        assert refused.value.status == status
        async with api.socket(headers={"Origin": api.url}) as socket:
            await socket.ask("ping")
            await socket.until_type("pong")


async def test_plain_request_is_told_to_upgrade(dsn: str, pool: asyncpg.Pool) -> None:
    async with serving(dsn, pool) as api, api.get("/api/v1/ws") as answer:
        assert answer.status == 400


WRONG = (
    "no json",
    "{}",
    '{"action": "dance"}',
    '{"action": "subscribe"}',
    '{"action": "subscribe", "channel": "investigation:team-a/alert-1", "after": -1}',
    '{"action": "subscribe", "channel": "investigation:team-a/alert-1", "after": "x"}',
    '{"action": "subscribe", "channel": "investigation:team-a/alert-1", "after": "\\u0661"}',
    '{"action": "subscribe", "channel": "investigation:team-a/alert-1", "after": 1000000000000000000}',
    '{"action": "subscribe", "channel": "investigation:team-a/alert-1", "more": 1}',
    '{"action": "subscribe", "channel": "everything"}',
    '{"action": "subscribe", "channel": "investigation:team-a"}',
    '{"action": "subscribe", "channel": "investigation:Team/a"}',
    '{"action": "subscribe", "channel": "investigations:"}',
    '{"action": "catchup", "channel": "investigations", "after": 1}',
    '{"action": "unsubscribe", "channel": "investigations"}',
)


async def test_wrong_actions_are_refused_and_the_connection_stays(dsn: str, pool: asyncpg.Pool) -> None:
    async with running_run(pool), serving(dsn, pool) as api, api.socket() as socket:
        for sent in WRONG:
            await socket.ws.send_str(sent)
            assert (await socket.until_type("error"))["reason"] in ("BadRequest", "NotFound"), sent
        await socket.ask("ping")
        await socket.until_type("pong")


async def test_what_is_no_text_or_too_long_ends_the_connection(dsn: str, pool: asyncpg.Pool) -> None:
    async with serving(dsn, pool) as api:
        async with api.socket() as socket:
            await socket.ws.send_bytes(b"{}")
            assert (await socket.closed())[0] == 1003
        async with api.socket() as socket:
            await socket.ws.send_str(json.dumps({"action": "ping", "more": "x" * 9_000}))
            assert (await socket.closed())[0] == 1009


async def test_too_many_actions_end_the_connection(dsn: str, pool: asyncpg.Pool) -> None:
    async with serving(dsn, pool) as api, api.socket() as socket:
        with contextlib.suppress(ConnectionError):
            for _ in range(2_000):
                await socket.ask("ping")
        assert (await socket.closed())[0] == 1008


async def test_unsubscribed_channel_is_silent(dsn: str, pool: asyncpg.Pool) -> None:
    async with running_run(pool) as run, serving(dsn, pool) as api, api.socket() as socket:
        await socket.ask("subscribe", CHANNEL)
        await socket.ask("subscribe", CHANNEL)
        assert (await socket.until_type("error"))["reason"] == "Conflict"
        await socket.ask("unsubscribe", CHANNEL)
        await socket.until_type("unsubscribed")
        await socket.ask("subscribe", "investigations")
        await socket.until(lambda m: m["type"] == "subscribed" and m["channel"] == "investigations")
        await run.event("unseen")
        await socket.until_type("investigations.changed")
        assert socket.events() == []


async def test_one_caller_has_so_many_connections_and_others_have_theirs(dsn: str, pool: asyncpg.Pool) -> None:
    async with serving(dsn, pool, of_one=2, of_all=3) as api, api.socket(), api.socket():
        with pytest.raises(aiohttp.WSServerHandshakeError) as refused:
            async with api.socket():
                pass
        assert refused.value.status == 429
        async with api.socket("bob"):
            with pytest.raises(aiohttp.WSServerHandshakeError) as full:
                async with api.socket("bob"):
                    pass
            assert full.value.status == 503


async def test_process_that_ends_says_so(dsn: str, pool: asyncpg.Pool) -> None:
    async with serving(dsn, pool) as api, api.socket() as socket:
        await socket.ask("ping")
        await socket.until_type("pong")
        api.services.stopping.set()
        assert await socket.closed() == (1012, "the server is shutting down; reconnect")


async def test_slow_client_is_dropped_and_delays_nobody(dsn: str, pool: asyncpg.Pool) -> None:
    long = "x" * 100_000
    async with running_run(pool) as run, serving(dsn, pool) as api, api.socket() as quick:
        slow = await api.session.ws_connect(
            f"{api.url}/api/v1/ws", headers={"Authorization": "Bearer bob"}, max_msg_size=0
        )
        transport = slow.get_extra_info("socket")
        assert transport is not None
        for socket in (quick.ws, slow):
            await socket.send_str(json.dumps({"action": "subscribe", "channel": CHANNEL}))
        await quick.until_type("caughtUp")
        slow._reader._protocol.pause_reading()  # type: ignore[attr-defined]
        for number in range(120):
            await run.event(f"e{number}", content=long)
            await quick.until_type("timelineEvent.closed")
        assert quick.events() == await changes(pool, run.id)
        await eventually(lambda: not api.hub.connections("bob"))
        await slow.close()


async def test_client_that_falls_behind_catches_up_at_its_own_pace(dsn: str, pool: asyncpg.Pool) -> None:
    long = "x" * 100_000
    async with running_run(pool) as run, serving(dsn, pool) as api, api.socket(max_msg_size=0) as socket:
        await socket.ask("subscribe", CHANNEL)
        await socket.until_type("caughtUp")
        await run.write.write_events([event(run.id, f"e{number}", content=long) for number in range(100)])
        await run.event("last")
        await socket.until(lambda m: m.get("event", {}).get("content") == "last")
        assert set(socket.events()) == set(await changes(pool, run.id))
        known = list(dict.fromkeys(socket.events()))
        assert known[-1] == (await changes(pool, run.id))[-1]


async def test_postgres_that_goes_away_costs_nobody_a_change(dsn: str, pool: asyncpg.Pool) -> None:
    async with running_run(pool) as run, serving(dsn, pool, poll_seconds=0.2) as api, api.socket() as socket:
        await socket.ask("subscribe", CHANNEL)
        await socket.until_type("caughtUp")
        for number in range(5):
            await pool.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            await run.event(f"e{number}")
            await socket.until(lambda m, part=f"e{number}": m.get("event", {}).get("content") == part)
        assert socket.events() == await changes(pool, run.id)
