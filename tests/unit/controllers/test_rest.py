"""Tests which finished objects count as at rest, what that costs, and that all others are reconciled."""

import asyncio
import copy
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tarsy.controllers.alert import ACCEPTED_UID
from tarsy.controllers.alert import reconcile as reconcile_alert
from tarsy.controllers.investigation import reconcile
from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.runs import rest as module
from tarsy.controllers.runs.projection import project
from tarsy.controllers.runs.rest import Resting, rest_until, status_digest
from tarsy.controllers.runs.run_secret import RUN_SECRET
from tarsy.record.run import InvestigationRecord, State
from tarsy.store.reading.reads import Published
from unit.controllers.builders import OTHER_UID, UID, investigation, raw, reconcile_context, record, rest_of

YEAR = 31_536_000
COUNT = 40
MARKS = {ACCEPTED_UID: UID}
ENDED = record(State.COMPLETED, revision=7, published_revision=7, finished_at=datetime.now(UTC) - timedelta(days=1))
KEY = Key("Investigation", "team-a", "inv")
Change = Callable[[dict[str, Any]], object]


def finished(found: InvestigationRecord = ENDED, **spec: Any) -> dict[str, Any]:
    """An Investigation as its run left it."""
    wanted = {"alertRef": {"name": "a"}, "ttlSecondsAfterFinished": YEAR} | spec
    status = project(found, investigation(None, wanted, annotations=MARKS), datetime.now(UTC)).to_dict()
    return raw("Investigation", "inv", wanted, status, annotations=dict(MARKS))


class World:
    """API and record: what was published, with what status; each query and each write is noted."""

    def __init__(self, found: InvestigationRecord | None = ENDED, digest: bytes | None = None) -> None:
        self.record_found = found
        self.digest = digest
        self.asked: list[set[UUID]] = []
        self.read = 0
        self.again: list[Any] = []
        self.marked: list[bytes | None] = []
        self.deleted: list[str] = []

    def context(self, *objects: dict[str, Any]) -> ReconcileContext:
        return reconcile_context(self, self, objects=objects, publish_again=self.again.append)

    async def published(self, ids: Iterable[UUID]) -> dict[UUID, Published]:
        self.asked.append(set(ids))
        await asyncio.sleep(0)
        if self.record_found is None or self.digest is None:
            return {}
        assert self.record_found.finished_at is not None
        return {self.record_found.id: Published(self.digest, self.record_found.finished_at)}

    async def record(self, run: UUID) -> InvestigationRecord | None:
        self.read += 1
        return None if self.record_found is None else replace(self.record_found, published_digest=self.digest)

    async def mark_published(self, run: UUID, revision: int, digest: bytes | None = None) -> None:
        self.marked.append(digest)
        self.digest = digest

    async def unfinished(self, about: UUID) -> list[UUID]:
        return []

    async def delete(self, kind: str, namespace: str, name: str, **_: Any) -> None:
        self.deleted.append(name)


async def test_object_whose_status_is_as_published_rests_until_it_expires_and_its_record_is_not_read() -> None:
    obj = finished()
    world = World(digest=status_digest(obj["status"]))
    rest = rest_of(world.context(obj))
    for _ in range(3):
        found = await rest.of(KEY)
        assert found is not None and found.seconds is not None
        assert YEAR - 2 * 86400 < found.seconds < YEAR
    assert (len(world.asked), world.read) == (1, 0)


@pytest.mark.parametrize(
    "change",
    [
        lambda obj: obj["status"].update(phase="Queued"),
        lambda obj: obj["status"]["conditions"][0].update(lastTransitionTime="2020-01-01T00:00:00Z"),
        lambda obj: obj["status"].update(tampered="yes"),
        lambda obj: obj["status"].pop("finding"),
        lambda obj: obj["metadata"].update(generation=2),
        lambda obj: obj["metadata"].pop("annotations"),
        lambda obj: obj["metadata"]["annotations"].update({ACCEPTED_UID: OTHER_UID}),
        lambda obj: obj["metadata"]["annotations"].update({RUN_SECRET: UID}),
        lambda obj: obj["spec"].update(desiredState="Cancelled"),
    ],
    ids=["phase", "time", "added", "removed", "generation", "no mark", "restored", "secret", "cancelled"],
)
async def test_object_that_somebody_changed_is_reconciled(change: Change) -> None:
    obj = finished()
    world = World(digest=status_digest(obj["status"]))
    changed = copy.deepcopy(obj)
    change(changed)
    assert await rest_of(world.context(changed)).of(KEY) is None


@pytest.mark.parametrize("digest", [None, b"another"], ids=["none", "another"])
async def test_object_whose_record_is_gone_or_knows_no_such_status_is_reconciled(digest: bytes | None) -> None:
    assert await rest_of(World(digest=digest).context(finished())).of(KEY) is None
    assert await rest_of(World(None).context(finished())).of(KEY) is None


async def test_object_that_was_published_just_now_rests_and_nothing_is_asked_until_it_changes() -> None:
    obj, world = finished(), World()
    context = world.context(obj)
    module.note_published(obj, ENDED.finished_at, context.at_rest)  # type: ignore[arg-type]
    found = await rest_of(context).of(KEY)
    assert found is not None and found.seconds is not None and YEAR - 2 * 86400 < found.seconds < YEAR
    assert world.asked == []
    context.cache.put(raw("Investigation", "inv", obj["spec"], obj["status"], annotations=MARKS, resourceVersion="11"))
    assert await rest_of(context).of(KEY) is None and len(world.asked) == 1


@pytest.mark.parametrize("marks", [{}, {ACCEPTED_UID: OTHER_UID}, {**MARKS, RUN_SECRET: UID}])
async def test_published_object_that_something_is_left_to_do_for_is_not_at_rest(marks: dict[str, str]) -> None:
    obj, context = finished(), World().context()
    obj["metadata"]["annotations"] = marks
    module.note_published(obj, ENDED.finished_at, context.at_rest)  # type: ignore[arg-type]
    assert context.at_rest == {}


async def test_object_that_has_not_finished_is_reconciled() -> None:
    running = finished(record(State.RUNNING))
    world = World(digest=status_digest(running["status"]))
    assert await rest_of(world.context(running)).of(KEY) is None
    assert world.asked == []


async def test_statuses_of_another_release_are_projected_once_more(monkeypatch: pytest.MonkeyPatch) -> None:
    obj = finished()
    world = World(digest=status_digest(obj["status"]))
    monkeypatch.setattr(module, "_RELEASE", b"the next")
    context = world.context(obj)
    assert await rest_of(context).of(KEY) is None
    found: Any = context.cache.find(KEY)
    await reconcile(found, context)
    assert world.marked == [status_digest(obj["status"])]
    assert await rest_of(world.context(obj)).of(KEY) is not None


async def test_reconcile_that_finds_nothing_to_do_notes_the_status_once_and_the_object_rests() -> None:
    obj = finished()
    world = World()
    context = world.context(obj)
    for _ in range(2):
        found: Any = context.cache.find(KEY)
        assert await reconcile(found, context) is not None
    assert world.marked == [status_digest(obj["status"])]
    asked = len(world.asked)
    assert await rest_of(context).of(KEY) is not None
    assert len(world.asked) == asked
    context.cache.put({**obj, "metadata": {**obj["metadata"], "resourceVersion": "11", "generation": 2}})
    assert await rest_of(context).of(KEY) is None


async def test_status_that_somebody_else_wrote_is_written_again_and_not_noted() -> None:
    obj = finished()
    obj["status"]["phase"] = "Queued"
    world = World()
    context = world.context(obj)
    found: Any = context.cache.find(KEY)
    await reconcile(found, context)
    assert world.again != [] and world.marked == [] and context.at_rest == {}


@pytest.mark.parametrize(
    ("left", "rest"), [(-1, None), (0, None), (1, Resting(2.0))], ids=["after its end", "at its end", "before its end"]
)
def test_object_rests_until_its_time_is_over(left: int, rest: Resting | None) -> None:
    now = datetime.now(UTC)
    assert rest_until(now + timedelta(seconds=left), now) == rest
    assert rest_until(None, now) == Resting(None)


async def test_object_whose_time_is_over_is_reconciled_which_deletes_it() -> None:
    obj = finished(ttlSecondsAfterFinished=86400)
    world = World(digest=status_digest(obj["status"]))
    context = world.context(obj)
    assert await rest_of(context).of(KEY) is None
    there: Any = context.cache.find(KEY)
    await reconcile(there, context)
    assert world.deleted == ["inv"]


def several() -> tuple[list[dict[str, Any]], list[Key]]:
    objects, keys = [], []
    for number in range(COUNT):
        uid = f"6a1c7f6e-0000-4000-8000-{number:012}"
        obj = finished()
        meta = {**obj["metadata"], "name": f"inv-{number}", "uid": uid, "annotations": {ACCEPTED_UID: uid}}
        objects.append({**obj, "metadata": meta})
        keys.append(Key("Investigation", "team-a", f"inv-{number}"))
    return objects, keys


async def test_records_of_all_whose_turn_is_next_are_asked_for_at_once() -> None:
    objects, keys = several()
    world = World()
    context = world.context(*objects)
    rest = module.Rest(context.cache, context.store.reads, context.at_rest, lambda limit: keys[:limit])
    for key in keys:
        assert await rest.of(key) is None
    assert [len(ids) for ids in world.asked] == [COUNT]


async def test_several_workers_ask_for_no_record_twice() -> None:
    objects, keys = several()
    world = World()
    context = world.context(*objects)
    line = list(keys)
    rest = module.Rest(context.cache, context.store.reads, context.at_rest, lambda limit: line[:limit])

    async def work() -> None:
        while line:
            assert await rest.of(line.pop(0)) is None

    await asyncio.gather(*(work() for _ in range(8)))
    assert sum(len(ids) for ids in world.asked) == COUNT
    assert len(world.asked) <= 8


async def test_question_rests_for_good() -> None:
    spec = {"investigationRef": {"name": "inv"}, "question": "Why?"}
    status = {**finished()["status"], "observedGeneration": 1}
    obj = raw("ChatMessage", "why", spec, status, annotations=dict(MARKS))
    world = World(digest=status_digest(status))
    assert await rest_of(world.context(obj)).of(Key("ChatMessage", "team-a", "why")) == Resting(None)


class Api:
    """Keeps what a reconcile of an Alert writes."""

    def __init__(self, cache: Cache) -> None:
        self.cache = cache
        self.writes = 0

    async def patch(self, kind: str, namespace: str, name: str, body: Any, *, subresource: str | None = None) -> Any:
        self.writes += 1
        there: Any = self.cache.find(Key(kind, namespace, name))
        before = {**there.to_dict(), "status": there.status.to_dict()}
        meta = {**before["metadata"], "resourceVersion": str(int(before["metadata"]["resourceVersion"]) + 1)}
        return {**before, "metadata": meta, "status": before["status"] | body["status"]}


ALERT = Key("Alert", "team-a", "a")


async def alert_of(obj: dict[str, Any] | None) -> tuple[Cache, dict[str, Any]]:
    """The cache with a finished Alert, as its reconcile left it, and its Investigation; and the Alert as JSON."""
    cache = Cache()
    reference = {"investigationRef": {"name": "inv", "uid": OTHER_UID}}
    spec = {"alertType": "PodCrash", "data": "x", "ttlSecondsAfterFinished": YEAR}
    cache.put(raw("Alert", "a", spec, reference, annotations=dict(MARKS)))
    if obj is not None:
        cache.put({**obj, "metadata": {**obj["metadata"], "uid": OTHER_UID}})
    found: Any = cache.find(ALERT)
    await reconcile_alert(found, reconcile_context(Api(cache), cache=cache))
    left: Any = cache.find(ALERT)
    return cache, {**left.to_dict(), "apiVersion": left.api_version, "status": left.status.to_dict()}


@pytest.mark.parametrize("there", [True, False], ids=["investigation there", "investigation gone"])
async def test_alert_that_reports_the_end_of_its_investigation_rests(there: bool) -> None:
    cache, _ = await alert_of(finished())
    if not there:
        cache.drop(KEY, OTHER_UID)
    api = Api(cache)
    found: Any = cache.find(ALERT)
    await reconcile_alert(found, reconcile_context(api, cache=cache))
    assert api.writes == 0
    rest = await rest_of(reconcile_context(cache=cache)).of(ALERT)
    assert rest is not None and rest.seconds is not None and YEAR - 86400 < rest.seconds < YEAR + 2


def _of(type_: str, **change: Any) -> Change:
    def apply(obj: dict[str, Any]) -> None:
        next(one for one in obj["status"]["conditions"] if one["type"] == type_).update(change)

    return apply


@pytest.mark.parametrize(
    "change",
    [
        lambda obj: obj["status"].update(phase="Investigating"),
        lambda obj: obj["status"].update(observedGeneration=2),
        lambda obj: obj["metadata"].update(generation=2),
        lambda obj: obj["metadata"].update(annotations={ACCEPTED_UID: OTHER_UID}),
        lambda obj: obj["status"]["conditions"].pop(0),
        lambda obj: obj["status"].pop("investigationRef"),
        lambda obj: obj["status"].update(foldedInto={"name": "b", "uid": OTHER_UID}),
        _of("Accepted", status="False"),
        _of("Accepted", message="Nobody said so."),
        _of("Finished", reason="InvestigationDeleted"),
        _of("Succeeded", status="False"),
        _of("Succeeded", reason="Other"),
        _of("Succeeded", message="Other."),
        _of("Succeeded", observedGeneration=2),
        _of("Succeeded", status="Unknown"),
    ],
)
async def test_alert_whose_status_is_not_as_its_reconcile_leaves_it_is_reconciled(change: Change) -> None:
    cache, obj = await alert_of(finished())
    changed = copy.deepcopy(obj)
    change(changed)
    changed["metadata"]["resourceVersion"] = "1000"
    cache.put(changed)
    assert await rest_of(reconcile_context(cache=cache)).of(ALERT) is None


async def test_alert_whose_investigation_has_not_finished_is_reconciled() -> None:
    cache, _ = await alert_of(finished())
    running = finished(record(State.RUNNING))
    cache.put({**running, "metadata": {**running["metadata"], "uid": OTHER_UID, "resourceVersion": "11"}})
    assert await rest_of(reconcile_context(cache=cache)).of(ALERT) is None
