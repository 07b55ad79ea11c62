"""Whom to tell is noted once and told until it is taken, through a real Postgres to real receivers."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest

from integration.store.build import claimed_run
from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.controllers.machinery.context import KubernetesPorts
from tarsy.controllers.notifications.delivery import MOST_TRIES, Notifications, Outbox, SlackThreads
from tarsy.controllers.notifications.wire import NotificationSender
from tarsy.observe.metric_table import NOTICES_OWED, NOTIFICATIONS, OLDEST_NOTICE_OWED, TOLD, TOLD_BY
from tarsy.observe.metrics import Metrics
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import SecretKey
from tarsy.record.run import Failure, RunOutcome, State
from tarsy.resources.meta import API_VERSION
from tarsy.resources.v1alpha1 import Investigation
from tarsy.store.reading.gauges import Gauges
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.runs.notices import Notices
from tarsy.store.slack import SlackQuestions
from wire.receiver import KEY, TOKEN, Receiver, receiving

REF = {"name": "s", "key": "k"}
STAGES = [{"name": "s", "agents": [{"name": "a"}]}]
DONE = RunOutcome(State.COMPLETED, final_analysis="The disk is full.")
ALERT = "alert-uid"


class Told:
    """Events: reason and message."""

    def __init__(self) -> None:
        self.events: list[tuple[str, str]] = []
        self.about: list[str] = []

    async def tell(self, about: Any, reason: str, message: str, *, kind: str = "Normal") -> None:
        self.events.append((reason, message))
        self.about.append(str(about))


async def read_secret(key: SecretKey) -> str:
    return TOKEN if key.name == "slack" else KEY


class Desk:
    """Notifications of a namespace with one chain, and the receiver that they lead to."""

    def __init__(self, pool: asyncpg.Pool, receiver: Receiver) -> None:
        self.pool = pool
        self.receiver = receiver
        self.cache = Cache()
        self.cluster: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.told = Told()
        self.reads = Reads(pool)
        self.metrics = Metrics()
        self.notifications = self.another()

    def another(self, api_url: str = "") -> Notifications:
        """A controller beside the others, whose administrator names this address of Slack."""
        sender = NotificationSender(read_secret, Destinations(), seconds=60)
        threads = SlackThreads(SlackQuestions(self.pool), api_url or f"{self.receiver.url}/api")
        outbox = Outbox(Notices(self.pool), sender, "https://tarsy.example.org", threads)
        api: Any = self
        return Notifications(self.cache, outbox, self.reads, KubernetesPorts(api, self.told, api), metrics=self.metrics)

    def put(self, kind: str, name: str, spec: dict[str, Any], uid: str = "") -> None:
        meta = {"name": name, "namespace": "team-a", "uid": uid or str(uuid4()), "resourceVersion": "1"}
        obj = {"apiVersion": API_VERSION, "kind": kind, "metadata": meta, "spec": spec}
        self.cluster[kind, "team-a", name] = obj
        self.cache.put(obj)

    async def find(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        """As the Kubernetes API answers."""
        return self.cluster.get((kind, namespace, name))

    def restart(self) -> None:
        """Another controller takes over, whose watch has told it of the Alert of no run yet."""
        self.cache = Cache()
        for (kind, _, _), obj in self.cluster.items():
            if kind != "Alert":
                self.cache.put(obj)
        self.notifications = self.another()

    def delete(self, kind: str, name: str) -> None:
        obj = self.cluster.pop((kind, "team-a", name))
        self.cache.drop(Key(kind, "team-a", name), obj["metadata"]["uid"])

    def webhook(self, name: str = "hook", **change: Any) -> dict[str, Any]:
        target = {"url": f"{self.receiver.url}/{name}", "signingSecretRef": REF}
        return {"name": name, "webhook": target, **change}

    def slack(self, name: str = "people", **change: Any) -> dict[str, Any]:
        reference = {"name": "slack", "key": "k"}
        target = {"channel": "C1", "tokenSecretRef": reference, "apiUrl": f"{self.receiver.url}/api"}
        return {"name": name, "slack": target, **change}

    def chain(self, *targets: dict[str, Any]) -> None:
        self.put("Chain", "crashloop", {"stages": STAGES, "notify": list(targets)})

    async def run(
        self, name: str = "inv", incident: str | None = None, by_alert: bool = False, named: bool = True
    ) -> UUID:
        """A run that has started, with its object, which need not name the uid of its Alert."""
        run, _ = await claimed_run(self.pool, name=name)
        alert = {"alertType": "DiskFull", "data": '{"id": 7}'} | ({"incidentKey": incident} if incident else {})
        if by_alert:
            self.put("Alert", "alert", alert, ALERT)
            self.put(
                "Investigation", name, {"alertRef": {"name": "alert"} | ({"uid": ALERT} if named else {})}, str(run)
            )
        else:
            self.put("Investigation", name, {"alert": alert}, str(run))
        await self.note(name)
        return run

    async def ended(self, name: str = "inv", outcome: RunOutcome = DONE, **how: Any) -> UUID:
        """A run that has ended and was told of."""
        run = await self.run(name, **how)
        await Runs(self.pool).finish(run, 1, outcome)
        await self.note(name)
        return run

    async def note(self, name: str) -> None:
        """As the publisher does."""
        obj = self.cache.get(Investigation, "team-a", name)
        assert obj is not None
        record = await self.reads.record(UUID(obj.metadata.uid))
        assert record is not None
        await self.notifications.note(record, obj)

    async def came_by(self, route: str) -> None:
        """The intake has made the Alert because of this route."""
        await self.pool.execute(
            "INSERT INTO incident (id, route, group_hash, namespace, alert, alert_uid, opened_at, first_start, "
            "last_start, last_received) VALUES ($1, $2, 'g', 'team-a', 'alert', $3, now(), now(), now(), now())",
            uuid4(),
            f"team-a/{route}",
            ALERT,
        )

    async def rows(self) -> list[asyncpg.Record]:
        """The outbox."""
        return await self.pool.fetch("SELECT * FROM notice ORDER BY made_at")

    def counted(self) -> dict[tuple[str, str], float]:
        """Kind and outcome of what was counted."""
        pairs = [(kind, outcome) for kind in TOLD_BY.values or () for outcome in TOLD.values or ()]
        found = {pair: self.metrics.value(NOTIFICATIONS, kind=pair[0], outcome=pair[1]) for pair in pairs}
        return {pair: number for pair, number in found.items() if number}

    async def let_time_pass(self) -> None:
        """What waits is due."""
        await self.pool.execute("UPDATE notice SET due_at = now() - interval '1 second'")


@pytest.fixture
async def desk(records: asyncpg.Pool) -> AsyncIterator[Desk]:
    async with receiving() as receiver:
        yield Desk(records, receiver)


async def test_an_end_is_noted_once_and_told_once(desk: Desk) -> None:
    desk.chain(desk.webhook(), desk.slack())
    await desk.ended()
    await desk.note("inv")
    await desk.notifications.round()
    await desk.notifications.round()

    (hook,) = desk.receiver.at("/hook")
    (message,) = desk.receiver.at("/api/chat.postMessage")
    assert hook.signed and hook.body["data"]["summary"] == "The disk is full."
    assert message.body["channel"] == "C1" and "thread_ts" not in message.body
    assert hook.body["data"]["url"] == "https://tarsy.example.org/#/investigations/team-a/inv"
    assert f"<{hook.body['data']['url']}|" in str(message.body["blocks"])
    rows = await desk.rows()
    assert {row["state"] for row in rows} == {"sent"} and {row["tries"] for row in rows} == {1}
    assert {reason for reason, _ in desk.told.events} == {"Notified"}
    assert "Chain team-a/crashloop: hook was notified" in " ".join(message for _, message in desk.told.events)
    assert KEY not in str([dict(row) for row in rows]) and TOKEN not in str([dict(row) for row in rows])


@pytest.mark.parametrize(
    ("when", "outcome", "told"),
    [
        (["Started"], DONE, ["Started"]),
        (["Started", "Succeeded"], DONE, ["Started", "Succeeded"]),
        (["Failed"], DONE, []),
        (["Failed"], RunOutcome(State.FAILED, failure=Failure("X", "why")), ["Failed"]),
        (["TimedOut"], RunOutcome(State.TIMED_OUT, failure=Failure("X", "why")), ["TimedOut"]),
        (["Cancelled"], RunOutcome(State.CANCELLED, failure=Failure("X", "why")), ["Cancelled"]),
    ],
)
async def test_a_target_is_told_what_it_asks_for(
    desk: Desk, when: list[str], outcome: RunOutcome, told: list[str]
) -> None:
    desk.chain(desk.webhook(when=when))
    await desk.ended(outcome=outcome)
    await desk.notifications.round()
    assert sorted(one.body["data"]["phase"] for one in desk.receiver.told) == sorted(told)


async def test_what_passes_is_tried_again_under_the_same_id_and_not_too_soon(desk: Desk) -> None:
    desk.chain(desk.webhook())
    desk.receiver.answers = [(429, {"Retry-After": "1800"}), (500, {})]
    await desk.ended()
    await desk.notifications.round()
    await desk.notifications.round()
    (row,) = await desk.rows()
    wait = await desk.pool.fetchval("SELECT extract(epoch FROM due_at - now()) FROM notice")
    assert (row["state"], row["tries"], row["problem"]) == ("owed", 1, "it answered with status 429") and wait > 600
    assert len(desk.receiver.told) == 1
    for _ in range(2):
        await desk.let_time_pass()
        await desk.notifications.round()
    assert len({told.headers["webhook-id"] for told in desk.receiver.told}) == 1
    assert len({str(told.body) for told in desk.receiver.told}) == 1
    (row,) = await desk.rows()
    assert (row["state"], row["tries"], row["problem"]) == ("sent", 3, None)
    assert desk.counted() == {("webhook", "failed"): 2, ("webhook", "sent"): 1}


async def test_what_will_not_pass_is_given_up_at_once_with_an_event(desk: Desk) -> None:
    desk.chain(desk.slack())
    desk.receiver.words = ["channel_not_found"]
    await desk.ended()
    await desk.notifications.round()
    await desk.let_time_pass()
    await desk.notifications.round()
    (row,) = await desk.rows()
    assert (row["state"], row["tries"]) == ("failed", 1)
    assert desk.counted() == {("slack", "given_up"): 1}
    ((reason, message),) = desk.told.events
    assert reason == "NotificationFailed" and message.endswith("(1 tries): Slack refused it: channel_not_found.")


@pytest.mark.parametrize(
    ("change", "state"),
    [
        (f"tries = {MOST_TRIES - 2}", "owed"),
        (f"tries = {MOST_TRIES - 1}", "failed"),
        ("made_at = now() - interval '5 hours'", "owed"),
        ("made_at = now() - interval '6 hours'", "failed"),
    ],
)
async def test_it_is_given_up_after_so_many_tries_or_hours(desk: Desk, change: str, state: str) -> None:
    desk.chain(desk.webhook())
    desk.receiver.answers = [(500, {})]
    await desk.ended()
    await desk.pool.execute(f"UPDATE notice SET {change}")  # noqa: S608 (the table above)
    await desk.notifications.round()
    (row,) = await desk.rows()
    assert row["state"] == state


async def test_what_is_owed_and_since_when_is_told_to_metrics_until_it_was_sent(desk: Desk) -> None:
    desk.chain(desk.webhook("a"), desk.webhook("b"))
    await desk.ended()
    await desk.pool.execute("UPDATE notice SET made_at = now() - interval '1 hour' WHERE target LIKE '%: a'")
    told = await Gauges(desk.pool).read()
    assert told[NOTICES_OWED][()] == 2 and 3600 <= told[OLDEST_NOTICE_OWED][()] < 7200
    await desk.notifications.round()
    told = await Gauges(desk.pool).read()
    assert (told[NOTICES_OWED][()], told[OLDEST_NOTICE_OWED][()]) == (0, 0)
    assert desk.counted() == {("webhook", "sent"): 2}


async def test_what_belongs_to_one_incident_is_one_thread(desk: Desk) -> None:
    desk.chain(desk.slack(when=["Started", "Succeeded"]))
    for name, incident in (("one", "i-1"), ("two", "i-1"), ("three", "i-2"), ("four", None)):
        await desk.run(name, incident=incident)
        await desk.notifications.round()
    run = await desk.pool.fetchval("SELECT id FROM investigation WHERE name = 'four'")
    await Runs(desk.pool).finish(run, 1, DONE)
    await desk.note("four")
    await desk.notifications.round()
    first, second, third, fourth, end = (told.body.get("thread_ts") for told in desk.receiver.told)
    assert (first, third, fourth) == (None, None, None)
    assert second == "1700000001.000100" and end == "1700000004.000100"

    await desk.pool.execute("UPDATE notice_thread SET used_at = now() - interval '25 hours'")
    await desk.run("five", incident="i-1")
    await desk.notifications.round()
    assert "thread_ts" not in desk.receiver.told[-1].body
    assert await desk.pool.fetchval("SELECT count(*) FROM notice_thread") == 1  # the others were forgotten


async def test_the_route_that_an_alert_came_by_is_asked_too_as_the_ledger_knows_it(desk: Desk) -> None:
    desk.chain(desk.webhook())
    desk.put("AlertRoute", "pager", {"notify": [desk.webhook("route")]})
    desk.put("AlertRoute", "other", {"notify": [desk.webhook("other")]})
    await desk.ended("nobody", by_alert=True)
    await desk.notifications.round()
    assert [told.path for told in desk.receiver.told] == ["/hook"]
    await desk.came_by("pager")
    await desk.ended("known", by_alert=True)
    await desk.notifications.round()
    assert sorted(told.path for told in desk.receiver.told) == ["/hook", "/hook", "/route"]


async def test_what_a_controller_sends_before_the_watch_told_it_of_the_run_is_an_event_of_the_run_too(
    desk: Desk,
) -> None:
    desk.chain(desk.webhook())
    await desk.ended()
    desk.cache = Cache()
    await desk.another().round()
    assert [reason for reason, _ in desk.told.events] == ["Notified"]
    assert desk.told.about == ["Investigation team-a/inv"]


async def test_a_controller_that_does_not_know_the_alert_yet_answers_in_the_thread_of_its_incident(desk: Desk) -> None:
    desk.chain(desk.slack(when=["Started", "Succeeded"]))
    await desk.run("other", incident="disk")
    run = await desk.run(incident="disk", by_alert=True)
    await desk.notifications.round()
    await Runs(desk.pool).finish(run, 1, DONE)
    desk.restart()
    await desk.note("inv")
    await desk.notifications.round()
    first, *others = desk.receiver.at("/api/chat.postMessage")
    assert "thread_ts" not in first.body
    assert [told.body.get("thread_ts") for told in others] == ["1700000001.000100"] * 2


@pytest.mark.parametrize("named", [True, False], ids=["uid named", "no uid"])
async def test_a_controller_that_does_not_know_the_alert_yet_answers_its_sender_and_tells_its_route(
    desk: Desk, named: bool
) -> None:
    request = {"url": f"{desk.receiver.url}/notes/{{{{alert:/id}}}}", "body": '{"text": "{{phase}}"}'}
    desk.chain(desk.webhook())
    desk.put("AlertRoute", "pager", {"notify": [desk.webhook("route"), {"name": "answer", "request": request}]})
    await desk.came_by("pager")
    run = await desk.run(by_alert=True, named=named)
    await Runs(desk.pool).finish(run, 1, DONE)
    desk.restart()
    await desk.note("inv")
    await desk.notifications.round()
    assert sorted(told.path for told in desk.receiver.told) == ["/hook", "/notes/7", "/route"]


async def test_a_run_whose_alert_was_deleted_stays_in_the_thread_of_its_incident(desk: Desk) -> None:
    desk.chain(desk.slack(when=["Started", "Succeeded"]))
    run = await desk.run(incident="disk", by_alert=True)
    await desk.notifications.round()
    desk.delete("Alert", "alert")
    await Runs(desk.pool).finish(run, 1, DONE)
    await desk.note("inv")
    await desk.notifications.round()
    began, answer = desk.receiver.at("/api/chat.postMessage")
    assert "thread_ts" not in began.body and answer.body["thread_ts"] == "1700000001.000100"


async def test_two_controllers_send_nothing_twice(desk: Desk) -> None:
    desk.chain(*(desk.webhook(f"hook-{number}") for number in range(8)))
    for number in range(3):
        await desk.ended(f"inv-{number}")
    await asyncio.gather(desk.notifications.round(), desk.another().round())
    sent = [told.headers["webhook-id"] for told in desk.receiver.told]
    assert len(sent) == len(set(sent)) == 24


async def test_what_a_controller_had_taken_when_it_died_is_sent_once_more(desk: Desk) -> None:
    desk.chain(desk.webhook())
    desk.receiver.mute = True
    await desk.ended("first")
    dying = asyncio.create_task(desk.notifications.round())
    await desk.receiver.wait_for(lambda: desk.receiver.told)
    desk.receiver.mute = False
    dying.cancel()
    await asyncio.wait([dying])
    await desk.another().round()
    assert len(desk.receiver.told) == 1  # it is still the other's
    await desk.let_time_pass()
    await desk.another().round()
    ids = [told.headers["webhook-id"] for told in desk.receiver.told]
    assert len(ids) == 2 and len(set(ids)) == 1
    (row,) = await desk.rows()
    assert (row["state"], row["tries"]) == ("sent", 2)


async def test_what_is_owed_goes_with_its_record(desk: Desk) -> None:
    desk.chain(desk.webhook())
    run = await desk.ended()
    await desk.pool.execute("DELETE FROM investigation WHERE id = $1", run)
    await desk.notifications.round()
    assert desk.receiver.told == [] and await desk.rows() == []


async def threads(desk: Desk) -> set[tuple[str, str, UUID]]:
    """Channel, thread and investigation of all threads in which people may ask."""
    return {tuple(row) for row in await desk.pool.fetch("SELECT channel, thread, investigation FROM slack_thread")}


async def test_people_may_ask_in_the_thread_of_each_investigation_that_was_told_there(desk: Desk) -> None:
    desk.chain(desk.slack())
    first = await desk.ended("one", incident="disk")
    await desk.notifications.round()
    second = await desk.ended("two", incident="disk")
    await desk.notifications.round()
    (message, again) = desk.receiver.at("/api/chat.postMessage")
    began = again.body["thread_ts"]
    assert "thread_ts" not in message.body
    assert await threads(desk) == {("C0000000001", began, first), ("C0000000001", began, second)}


async def test_a_thread_at_another_address_than_the_administrators_is_none(desk: Desk) -> None:
    desk.notifications = desk.another("https://slack.com/api")
    desk.chain(desk.slack())
    await desk.ended()
    await desk.notifications.round()
    assert len(desk.receiver.at("/api/chat.postMessage")) == 1
    assert await threads(desk) == set()


async def test_a_thread_of_another_namespace_is_not_joined(desk: Desk) -> None:
    questions = SlackQuestions(desk.pool)
    theirs, _ = await claimed_run(desk.pool, namespace="team-b", name="theirs")
    await questions.begin_thread("C0000000001", "1.000001", theirs)
    ours, _ = await claimed_run(desk.pool, namespace="team-a", name="ours")
    await questions.join_thread("C0000000001", "1.000001", ours)
    await questions.join_thread("C0000000001", "1.000002", ours)
    assert await threads(desk) == {("C0000000001", "1.000001", theirs)}
