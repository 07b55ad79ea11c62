"""Tests the relist: it finds what the watch missed, and deletes nothing that came while the list was read."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tarsy.controllers.machinery import relist as module
from tarsy.controllers.machinery.cache import PASSIVE, Cache, Key
from tarsy.controllers.machinery.informer import Informer
from tarsy.controllers.machinery.queue import KeyedQueue
from tarsy.controllers.machinery.reconciler import Reconciler
from tarsy.controllers.machinery.relist import learn, relist, relist_while_watch_lists, until_listed
from tarsy.controllers.machinery.workers import ReconcileWorkers
from tarsy.kube.client import PAGE_SIZE, ApiError
from tarsy.kube.lease import LeaderElection
from tarsy.record.run import State
from tarsy.resources.v1alpha1 import KINDS
from unit.controllers.builders import OTHER_UID, UID, raw, reconcile_context, record, rest_of

INV = Key("Investigation", "team-a", "inv")


class World:
    """Cluster and record, and what is known of them; `meanwhile` happens while Investigations are being listed."""

    def __init__(self, *there: dict[str, Any], unfinished: tuple[str, ...] = ()) -> None:
        self.there = list(there)
        self.ids = set(unfinished)
        self.ended: list[str] = []
        self.listed: set[str] = set()
        self.meanwhile: Any = None
        self.cache = Cache()
        self.queue: KeyedQueue[Key] = KeyedQueue()
        self.informer = Informer(self.cache, self.queue)

    async def learn(self) -> None:
        me: Any = self
        await learn(me, self.cache, (), seen=self.informer.seen)

    async def relist(self, namespaces: tuple[str, ...] = (), *, listing: Any = relist) -> None:
        me: Any = self
        await listing(me, self.cache, me, me, namespaces, seen=self.informer.seen, gone=self.informer.gone)

    async def pages(self, kind: str, namespace: str | None = None) -> AsyncIterator[list[dict[str, Any]]]:
        self.listed.add(kind)
        found = [item for item in self.there if item["kind"] == kind]
        if kind == "Investigation" and self.meanwhile:
            self.meanwhile()
        for item in found:
            yield [item]

    async def find(self, kind: str, namespace: str | None, name: str) -> Any:
        return next((i for i in self.there if (i["kind"], i["metadata"]["name"]) == (kind, name)), None)

    async def unfinished(self) -> set[Any]:
        return set(self.ids)

    async def record(self, run: Any) -> Any:
        return record(State.RUNNING, id=run)

    async def object_deleted(self, run: Any) -> None:
        self.ended.append(str(run))


def inv(version: str = "10", **changes: Any) -> dict[str, Any]:
    return raw("Investigation", "inv", {"alertRef": {"name": "a"}}, resourceVersion=version, **changes)


async def test_nothing_is_decided_before_the_configuration_is_known() -> None:
    defaults = raw("InvestigationDefaults", "default", {"maxIterations": 3}, resourceVersion="5")
    world = World(defaults, inv())
    election = LeaderElection(world, "lib", "lease", "me")  # type: ignore[arg-type]
    election.active.set()
    decided: list[tuple[str, bool]] = []
    asked, listed, learned, planned = asyncio.Event(), asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def learn_later() -> None:
        asked.set()
        await listed.wait()
        await world.learn()

    async def reconcile(key: Key) -> None:
        decided.append((key.kind, world.cache.find(Key("InvestigationDefaults", "team-a", "default")) is not None))
        if key == INV:
            planned.set()

    workers = ReconcileWorkers(world.queue, election, learn_later, learned, reconcile)
    world.informer.event("ADDED", inv())  # the watch has told of the run only
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        work = group.create_task(workers.run())
        await asked.wait()
        assert decided == [] and not learned.is_set()
        listed.set()
        await planned.wait()
        work.cancel()
    assert ("Investigation", True) in decided and ("Investigation", False) not in decided and learned.is_set()


async def test_a_kind_that_may_not_be_listed_holds_nothing_up() -> None:
    world = World(raw("Chain", "chain", {"stages": [{"name": "s", "agents": [{"name": "a"}]}]}, resourceVersion="5"))
    there = world.pages

    async def refused(kind: str, namespace: str | None = None) -> AsyncIterator[list[dict[str, Any]]]:
        if kind == "AlertRoute":
            raise ApiError(403, "Forbidden", "no")
        async for page in there(kind, namespace):
            yield page

    world.pages = refused  # type: ignore[method-assign]
    await world.learn()
    assert world.cache.find(Key("Chain", "team-a", "chain")) is not None


async def test_object_that_came_while_the_list_was_read_is_not_gone() -> None:
    world = World()

    def meanwhile() -> None:
        world.there.append(inv())
        world.ids.add(UID)
        world.informer.event("ADDED", inv())

    world.meanwhile = meanwhile
    await world.relist()
    assert world.cache.find(INV) is not None
    assert world.informer.deleted(INV) == () and world.ended == []


async def test_object_that_changed_while_the_list_was_read_stays_as_it_became() -> None:
    world = World(inv("10"))
    world.informer.event(None, inv("10"))
    world.meanwhile = lambda: world.informer.event("MODIFIED", inv("12", labels={"changed": "yes"}))
    await world.relist()
    found: Any = world.cache.find(INV)
    assert found.metadata.labels == {"changed": "yes"}


async def test_object_that_was_deleted_while_the_list_was_read_does_not_come_back() -> None:
    """The answer is from before the deletion, and the next relist is minutes away."""
    world = World(inv("10"))

    def meanwhile() -> None:
        world.informer.event("ADDED", inv("10"))
        world.informer.event("DELETED", inv("11"))

    world.meanwhile = meanwhile
    await world.relist()
    assert world.cache.find(INV) is None and world.cache.version(INV) is None
    assert world.informer.deleted(INV) == (UID,)


async def test_object_that_is_there_again_with_its_uid_is_found_by_a_later_list() -> None:
    """As after the restore of a backup."""
    world = World(inv("10"))
    world.informer.event("ADDED", inv("10"))
    world.informer.event("DELETED", inv("11"))
    await world.relist()
    assert world.cache.find(INV) is not None


async def test_object_that_the_watch_did_not_tell_of_is_found_and_one_that_went_is_forgotten() -> None:
    world = World(inv())
    await world.relist()
    assert world.cache.find(INV) is not None
    world.there.clear()
    await world.relist()
    assert world.cache.find(INV) is None and world.informer.deleted(INV) != ()
    context = reconcile_context(world, world, world.cache)
    await Reconciler(context, world.informer, rest_of(context)).reconcile(INV)
    assert world.ended == [UID]


async def test_run_whose_object_is_nowhere_ends_and_one_whose_object_is_there_does_not() -> None:
    world = World(inv(), unfinished=(UID, OTHER_UID))
    await world.relist()
    assert world.ended == [OTHER_UID]


async def test_run_whose_object_cannot_be_read_any_more_goes_on() -> None:
    broken = {**inv(), "spec": {"alertRef": {"name": "a"}, "ofANewerVersion": True}}
    world = World(broken, unfinished=(UID,))
    await world.relist()
    assert world.ended == []


async def test_runs_of_namespaces_that_this_operator_does_not_look_after_are_not_its_business() -> None:
    world = World(unfinished=(UID,))
    await world.relist(("team-b",))
    assert world.ended == []


async def test_world_whose_versions_begin_anew_is_believed() -> None:
    """After etcd was restored from a backup."""
    world = World(inv("7", labels={"restored": "yes"}))
    world.informer.event(None, inv("1000"))
    await world.relist()
    found: Any = world.cache.find(INV)
    assert found.metadata.labels == {"restored": "yes"}


@pytest.mark.parametrize(("listed", "pauses"), [(1, 1), (3, 3)])
async def test_relist_waits_until_the_watch_lists_no_further_object(
    monkeypatch: pytest.MonkeyPatch, listed: int, pauses: int
) -> None:
    missed, slept = asyncio.Event(), 0

    async def sleep(_: float) -> None:
        nonlocal slept
        slept += 1
        if slept < listed:
            missed.set()

    monkeypatch.setattr(asyncio, "sleep", sleep)
    missed.set()
    await until_listed(missed)
    assert slept == pauses and not missed.is_set()


async def test_relist_waits_for_no_listing_without_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    missed, slept = asyncio.Event(), 0
    monkeypatch.setattr(module, "LISTING_SECONDS", 0.0)

    async def sleep(_: float) -> None:
        nonlocal slept
        slept += 1
        missed.set()

    monkeypatch.setattr(asyncio, "sleep", sleep)
    missed.set()
    await until_listed(missed)
    assert slept == 0 and not missed.is_set()


CHAIN = raw("Chain", "chain", {"stages": [{"name": "s", "agents": [{"name": "a"}]}]}, resourceVersion="5")


async def test_the_first_relist_leaves_the_objects_of_runs_to_the_watch() -> None:
    world = World(CHAIN, inv(), unfinished=(UID, OTHER_UID))
    await world.relist(listing=relist_while_watch_lists)
    assert world.listed == {kind for kind in KINDS if kind not in PASSIVE}
    assert world.ended == [OTHER_UID]  # the other is there, though the watch has not told of it
    assert world.cache.find(INV) is None


async def test_a_configuration_object_that_went_while_the_watch_listed_is_found_by_the_first_relist() -> None:
    world = World(CHAIN)
    await world.learn()
    world.there.clear()
    await world.relist(listing=relist_while_watch_lists)
    assert world.cache.find(Key("Chain", "team-a", "chain")) is None


@pytest.mark.parametrize(("unknown", "lists"), [(PAGE_SIZE - 1, False), (PAGE_SIZE, False), (PAGE_SIZE + 1, True)])
async def test_the_first_relist_lists_runs_where_more_than_a_page_would_be_asked_for(unknown: int, lists: bool) -> None:
    world = World(inv(), unfinished=tuple(f"run-{number}" for number in range(unknown)))
    await world.relist(listing=relist_while_watch_lists)
    assert ("Investigation" in world.listed) is lists
    assert len(world.ended) == unknown


async def test_what_the_watch_lists_anew_asks_for_a_relist_of_all_kinds_only_if_it_told_of_it_before() -> None:
    world = World(CHAIN)
    await world.learn()
    world.informer.event(None, CHAIN)  # the watch begins, and lists what is known from the start
    world.informer.event(None, inv())
    assert world.informer.missed.is_set() and not world.informer.missed_all
    world.informer.event(None, CHAIN)  # it has lost its place
    assert world.informer.missed_all
