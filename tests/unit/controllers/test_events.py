"""Tests which keys the informer queues for an event of the watch, and which objects count as deleted."""

from typing import Any

import pytest

from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.controllers.machinery.informer import Informer
from tarsy.controllers.machinery.queue import KeyedQueue
from tarsy.controllers.machinery.reconciler import Reconciler
from tarsy.controllers.runs.restored import ACCEPTED_UID
from tarsy.record.run import State
from unit.controllers.builders import OTHER_UID, UID, raw, reconcile_context, record, rest_of


class Ended:
    """The store's side: which runs lost their objects."""

    def __init__(self) -> None:
        self.runs: list[str] = []

    async def object_deleted(self, run: Any) -> None:
        self.runs.append(str(run))

    async def record(self, run: Any) -> Any:
        return record(State.RUNNING)


class News:
    """An informer, and whose turn it says it is."""

    def __init__(self) -> None:
        self.queue: KeyedQueue[Key] = KeyedQueue()
        self.cache = Cache()
        self.informer = Informer(self.cache, self.queue)
        self.event = self.informer.event

    async def turns(self) -> set[str]:
        """Whose turn it is; nothing is left after."""
        found = set()
        while len(self.queue):
            key = await self.queue.get()
            found.add(f"{key.kind}/{key.name}")
            self.queue.done(key)
        return found


def inv(name: str = "inv", version: str = "10", uid: str = UID, **rest: Any) -> dict[str, Any]:
    ran = {ACCEPTED_UID: uid}
    return raw(
        "Investigation", name, {"alertRef": {"name": "a"}}, uid=uid, resourceVersion=version, annotations=ran, **rest
    )


ACCEPTED = {"conditions": [{"type": "Accepted", "status": "True", "reason": "Planned"}]}


async def test_status_of_configuration_wakes_nobody_but_its_spec_wakes_all_that_may_wait() -> None:
    of = News()
    for obj in (raw("Agent"), raw("Chain", "pods", {"stages": [{"name": "s", "agents": [{"name": "one"}]}]}), inv()):
        of.event(None, obj)
    await of.turns()
    of.event("MODIFIED", raw("Agent", status={"conditions": []}, resourceVersion="11"))
    assert await of.turns() == {"Agent/one"}
    of.event("MODIFIED", raw("Agent", generation=2, resourceVersion="12"))
    assert await of.turns() == {"Agent/one", "Chain/pods", "Investigation/inv"}


async def test_accepted_investigations_are_not_woken_by_configuration() -> None:
    of = News()
    of.event(None, {**inv(), "status": ACCEPTED})
    await of.turns()
    of.event("ADDED", raw("Agent"))
    assert await of.turns() == {"Agent/one"}


async def test_alert_wakes_only_the_waiting_investigations_that_name_it() -> None:
    of = News()
    other = raw("Investigation", "other", {"alertRef": {"name": "b"}}, uid=OTHER_UID)
    for obj in (inv(), other):
        of.event(None, obj)
    await of.turns()
    of.event("ADDED", raw("Alert", "a", {"alertType": "T", "data": "x"}))
    assert await of.turns() == {"Alert/a", "Investigation/inv"}


async def test_investigation_wakes_its_alert_when_it_changes_and_when_it_goes() -> None:
    of = News()
    of.event("ADDED", inv())
    assert await of.turns() == {"Investigation/inv", "Alert/a"}
    of.event("DELETED", inv())
    assert await of.turns() == {"Investigation/inv", "Alert/a"}


@pytest.mark.parametrize(
    ("news", "ended"),
    [
        ([("ADDED", UID, "1"), ("DELETED", UID, "2")], {UID}),
        # Deleted and made anew while nobody watched: only the new one is seen.
        ([("ADDED", UID, "1"), (None, OTHER_UID, "5")], {UID}),
        # The watch hands objects over one by one: of two with one name, the end of the old may come last.
        ([("ADDED", UID, "1"), ("ADDED", OTHER_UID, "5"), ("DELETED", UID, "4")], {UID}),
        # An old word about an object that is gone is not its return.
        ([("ADDED", OTHER_UID, "5"), ("MODIFIED", UID, "3")], set()),
        (
            [("ADDED", UID, "1"), ("DELETED", UID, "2"), ("ADDED", OTHER_UID, "3"), ("DELETED", OTHER_UID, "4")],
            {UID, OTHER_UID},
        ),
    ],
    ids=["deleted", "replaced unseen", "end comes late", "old word", "twice before anybody looked"],
)
async def test_runs_end_whose_objects_are_gone_and_no_others(news: list[Any], ended: set[str]) -> None:
    store, of = Ended(), News()
    for kind, uid, version in news:
        of.event(kind, inv(version=version, uid=uid))
    key = Key("Investigation", "team-a", "inv")
    context = reconcile_context(store=store, cache=of.cache)
    await Reconciler(context, of.informer, rest_of(context)).reconcile(key)
    assert set(store.runs) == ended


async def test_a_listing_of_what_was_known_tells_that_something_may_have_been_missed_and_an_event_does_not() -> None:
    of = News()
    of.event(None, inv())
    of.event("MODIFIED", inv(version="11"))
    assert not of.informer.missed.is_set()
    of.event(None, inv(version="11"))
    assert of.informer.missed.is_set()


async def test_what_is_gone_is_kept_until_what_its_end_asked_for_was_done() -> None:
    of, key = News(), Key("Investigation", "team-a", "inv")
    of.event("ADDED", inv())
    of.event("DELETED", inv())
    of.event("ADDED", inv(version="12", uid=OTHER_UID))
    assert of.informer.deleted(key) == (UID,)
    of.event("DELETED", inv(version="13", uid=OTHER_UID))
    of.informer.ended(key, UID)
    assert of.informer.deleted(key) == (OTHER_UID,)
    of.informer.ended(key, OTHER_UID)
    assert of.informer.deleted(key) == ()


def accepted_as(status: str, message: str = "") -> dict[str, Any]:
    return {"conditions": [{"type": "Accepted", "status": status, "reason": "Because", "message": message}]}


FINISHED = {"conditions": [{"type": "Finished", "status": "True", "reason": "Completed"}]}


async def test_echo_of_a_status_that_this_process_wrote_queues_nothing() -> None:
    of = News()
    of.event("ADDED", inv(version="10"))
    await of.turns()
    of.cache.put_written({**inv(version="11"), "status": ACCEPTED})
    of.event("MODIFIED", {**inv(version="11"), "status": ACCEPTED})
    assert await of.turns() == set()


async def test_a_version_before_the_one_that_this_process_wrote_queues_nothing() -> None:
    of = News()
    of.event("ADDED", inv(version="10"))
    await of.turns()
    of.cache.put_written({**inv(version="12"), "status": ACCEPTED})
    of.event("MODIFIED", inv(version="11"))
    assert await of.turns() == set()


@pytest.mark.parametrize(
    "event",
    [
        {**inv(version="12"), "status": ACCEPTED},
        {**inv(version="11", generation=2), "status": ACCEPTED},
        {**inv(version="11", uid=OTHER_UID), "status": ACCEPTED},
    ],
    ids=["somebody else's write", "a spec that no event has told yet", "another object of the name"],
)
async def test_what_is_no_echo_queues_its_object(event: dict[str, Any]) -> None:
    of = News()
    of.event("ADDED", inv(version="10"))
    await of.turns()
    if event["metadata"].get("generation") == 2:  # the status was written over a spec that only a request has read
        of.cache.put_written(event)
    else:
        of.cache.put_written({**inv(version="11"), "status": ACCEPTED})
    of.event("MODIFIED", event)
    assert "Investigation/inv" in await of.turns()


async def test_an_object_that_only_a_request_has_read_is_queued_by_its_first_event() -> None:
    of = News()
    of.cache.put_written({**inv(version="11"), "status": ACCEPTED})
    of.event("ADDED", {**inv(version="11"), "status": ACCEPTED})
    assert await of.turns() == {"Investigation/inv", "Alert/a"}


async def test_an_object_that_this_process_created_is_queued_by_its_event() -> None:
    of = News()
    of.cache.put(inv(version="10"))
    of.event("ADDED", inv(version="10"))
    assert "Investigation/inv" in await of.turns()


async def test_the_end_of_an_object_is_looked_at_though_this_process_wrote_it() -> None:
    of = News()
    of.event("ADDED", inv(version="10"))
    await of.turns()
    of.cache.put_written({**inv(version="11"), "status": FINISHED})
    of.event("MODIFIED", {**inv(version="11"), "status": FINISHED})
    assert of.cache.finished(Key("Investigation", "team-a", "inv")) is not None
    assert await of.turns() == {"Investigation/inv", "Alert/a"}


async def test_configuration_is_looked_at_after_a_write_of_this_process() -> None:
    of = News()
    of.event("ADDED", raw("Agent", resourceVersion="10"))
    await of.turns()
    of.cache.put_written(raw("Agent", resourceVersion="11"))
    of.event("MODIFIED", raw("Agent", resourceVersion="11"))
    assert await of.turns() == {"Agent/one"}


async def test_the_alert_is_woken_only_by_what_it_tells_of_its_investigation() -> None:
    of = News()
    of.event("ADDED", inv(version="10"))
    await of.turns()
    seen = []
    for version, status in enumerate(
        [
            accepted_as("False", "no chain"),
            {**accepted_as("False", "no chain"), "phase": "Pending"},
            accepted_as("False", "the chain is not ready"),
            accepted_as("True"),
            {**accepted_as("True"), "phase": "Running"},
            FINISHED,
            {**FINISHED, "phase": "Succeeded"},
        ],
        start=11,
    ):
        of.event("MODIFIED", {**inv(version=str(version)), "status": status})
        seen.append("Alert/a" in await of.turns())
    assert seen == [True, False, True, True, False, True, True]


async def test_an_event_that_comes_before_the_answer_to_the_write_waits_for_it() -> None:
    of = News()
    of.event("ADDED", inv(version="10"))
    await of.turns()
    key = Key("Investigation", "team-a", "inv")
    with of.cache.writing(key):
        of.event("MODIFIED", {**inv(version="11"), "status": ACCEPTED})
        assert await of.turns() == set()
        of.cache.put_written({**inv(version="11"), "status": ACCEPTED})
    assert await of.turns() == set()
    of.event("MODIFIED", {**inv(version="12"), "status": ACCEPTED})
    assert await of.turns() == {"Investigation/inv"}


async def test_an_event_that_comes_during_a_write_is_looked_at_when_the_write_has_failed() -> None:
    of = News()
    of.event("ADDED", inv(version="10"))
    await of.turns()
    with pytest.raises(TimeoutError), of.cache.writing(Key("Investigation", "team-a", "inv")):
        of.event("MODIFIED", {**inv(version="11"), "status": ACCEPTED})
        assert await of.turns() == set()
        raise TimeoutError
    assert await of.turns() == {"Investigation/inv"}


async def test_an_event_waits_for_the_outermost_write() -> None:
    of = News()
    of.event("ADDED", inv(version="10"))
    await of.turns()
    key = Key("Investigation", "team-a", "inv")
    with of.cache.writing(key):
        with of.cache.writing(key):
            of.event("MODIFIED", {**inv(version="11"), "status": FINISHED})
        assert "Investigation/inv" not in await of.turns()
    assert await of.turns() == {"Investigation/inv"}


async def test_a_write_holds_back_the_events_of_no_other_object() -> None:
    of = News()
    with of.cache.writing(Key("Investigation", "team-a", "inv")):
        of.event("ADDED", inv("other", uid=OTHER_UID))
        assert "Investigation/other" in await of.turns()
