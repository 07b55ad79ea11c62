"""Tests when statuses are published, and what happens to those that cannot be; with time set by hand."""

import asyncio
from collections.abc import Collection
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.controllers.machinery.context import AtRest, KubernetesPorts, StorePorts
from tarsy.controllers.runs import publisher as module
from tarsy.controllers.runs.publisher import Publisher
from tarsy.controllers.runs.restored import ACCEPTED_UID
from tarsy.kube.client import ApiError
from tarsy.record.run import Failure, InvestigationRecord, StageKind, State
from tarsy.store.errors import StoreUnavailable
from tarsy.store.reading.reads import Publication
from unit.controllers.builders import OTHER_UID, UID, raw, record, stage


class Told:
    """Events, by reason."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    async def tell(self, obj: Any, reason: str, message: str, **_: Any) -> None:
        self.reasons.append(reason)


class World:
    """API and record in one; the seconds pass when told."""

    def __init__(self, *records: InvestigationRecord) -> None:
        self.records = {item.id: item for item in records}
        self.published: dict[UUID, int] = {}
        self.marked: list[int] = []
        self.record_away = False
        self.writes: list[tuple[str, Any]] = []
        self.read: list[list[str]] = []
        self.refuse: dict[str, ApiError] = {}
        self.stale: list[InvestigationRecord] = []
        self.conflicts = 0
        self.there: Any = None
        self.alert: Any = None
        self.asked: list[str] = []
        self.pruned: tuple[str, ...] = ()
        self.lose_answers = False
        self.busy: set[UUID] = set()
        self.now = 1000.0
        self.told = Told()
        self.noted = asyncio.Event()
        self.cache = Cache()
        self.version = 10
        for item in records:
            self.cache.put(self.object(item.name, str(item.id)))
        active, self.learned = asyncio.Event(), asyncio.Event()
        active.set()
        api: Any = self
        self.at_rest: AtRest = {}
        ports = KubernetesPorts(api, self.told, api)
        store = StorePorts(api, api, api)
        self.publisher = Publisher(ports, store, self.cache, active, self.learned, note=self.note, at_rest=self.at_rest)

    def monotonic(self) -> float:
        return self.now

    def object(self, name: str, uid: str, status: Any = None) -> dict[str, Any]:
        self.version += 1
        spec = {"alertRef": {"name": "a"}}
        marks = {ACCEPTED_UID: uid}
        return raw("Investigation", name, spec, status, uid=uid, resourceVersion=str(self.version), annotations=marks)

    async def unpublished(self, limit: int, but: Collection[UUID] = ()) -> list[InvestigationRecord]:
        behind = [item for item in self.records.values() if item.revision > self.published.get(item.id, 0)]
        behind += self.stale
        self.read.append([item.name for item in behind if item.state.finished or item.id not in but])
        return [item for item in behind if item.state.finished or item.id not in but]

    async def record(self, run: UUID) -> InvestigationRecord | None:
        return self.records.get(run)

    async def mark_all_published(self, published: Collection[Publication]) -> frozenset[UUID]:
        if published and self.record_away:
            raise StoreUnavailable("away")
        if published:
            self.marked.append(len(published))
        for one in published:
            if one.run in self.busy:
                continue
            self.published[one.run] = one.revision
            if one.run in self.records:
                self.records[one.run] = replace(self.records[one.run], published_revision=one.revision)
        return frozenset(one.run for one in published if one.run in self.busy)

    async def find(self, kind: str, namespace: str, name: str) -> Any:
        self.asked.append(kind)
        return self.alert if kind == "Alert" else self.there

    async def patch(self, kind: str, namespace: str, name: str, body: Any, *, subresource: str) -> Any:
        if error := self.refuse.get(name):
            raise error
        if self.conflicts:
            self.conflicts -= 1
            self.there = self.object(name, body["metadata"]["uid"], self.status(kind, name))
            raise ApiError(409, "Conflict", "the object has been modified")
        self.writes.append((name, body["status"]))
        status = {**self.status(kind, name), **body["status"]}
        for field in self.pruned:
            status.pop(field, None)
        answer = self.object(name, body["metadata"]["uid"], status)
        if self.lose_answers:
            self.cache.put(answer)  # the watch tells of it
            raise ApiError(0, "Unreachable", "the answer was lost")
        return answer

    def status(self, kind: str, name: str) -> dict[str, Any]:
        found = self.cache.find(next(key for key in self.cache.keys_of(kind) if key.name == name))
        return found.status.to_dict()  # type: ignore[union-attr,no-any-return]

    def overwrite(self, status: dict[str, Any]) -> None:
        """Somebody else writes the status, and the reconcile finds that."""
        (item,) = self.records.values()
        self.cache.put(self.object(item.name, str(item.id), status))
        self.publisher.again(item)

    def change(self, run: str = UID, **changes: Any) -> None:
        before = self.records[UUID(run)]
        self.records[before.id] = replace(before, revision=before.revision + 1, **changes)

    async def note(self, record: InvestigationRecord, investigation: Any) -> None:
        self.noted.set()

    async def round(self, seconds: float = 0.0) -> int:
        """One round after so many seconds; the number of writes it made."""
        self.now += seconds
        before = len(self.writes)
        await self.publisher.round()
        return len(self.writes) - before


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(*records: InvestigationRecord) -> World:
        made = World(*records)
        monkeypatch.setattr(module, "time", made)
        return made

    return make


async def test_what_is_published_is_not_written_again(world: Any) -> None:
    w = world(record())
    assert [await w.round(), await w.round(5), await w.round(50)] == [1, 0, 0]


async def test_nothing_is_published_before_the_configuration_is_known(world: Any) -> None:
    """Its chain is not in the cache before that, and would declare no notifications."""
    w = world(record(State.COMPLETED))
    async with asyncio.timeout(60), asyncio.TaskGroup() as group:
        work = group.create_task(w.publisher.run())
        await asyncio.sleep(3 * module.PAUSE_SECONDS)
        assert w.writes == [] and w.read == []
        w.learned.set()
        await w.noted.wait()
        work.cancel()


async def test_severity_of_the_alert_that_is_there_is_written(world: Any) -> None:
    w = world(record())
    w.cache.put(raw("Alert", "a", {"alertType": "PodCrash", "data": "x", "severity": "Critical"}, uid=OTHER_UID))
    await w.round()
    assert w.writes[-1][1]["severity"] == "Critical"


async def test_stage_change_is_written_at_most_once_a_second(world: Any) -> None:
    w = world(record())
    await w.round()
    w.change(stages=(stage(0, State.RUNNING),))
    assert [await w.round(0.5), await w.round(0.6)] == [0, 1]


async def test_run_that_goes_on_is_read_once_a_second_and_one_that_ended_at_once(world: Any) -> None:
    w = world(record())
    await w.round()
    for seconds in (0.3, 0.3, 0.5):
        w.change(model_calls=w.records[UUID(UID)].model_calls + 1)
        await w.round(seconds)
    assert w.read == [["inv"], [], [], ["inv"]]
    ended = record(State.COMPLETED)
    w.change(state=ended.state, outcome=ended.outcome, finished_at=ended.finished_at)
    await w.round(0.1)
    assert w.read[-1] == ["inv"] and w.told.reasons == ["Succeeded"]


async def test_round_comes_again_when_what_it_left_out_is_due(world: Any) -> None:
    w = world(record())
    await w.round()
    w.now += 0.4
    assert await w.publisher.round() == pytest.approx(0.6)


async def test_counters_alone_are_written_every_ten_seconds(world: Any) -> None:
    w = world(record())
    await w.round()
    writes = []
    for second in range(1, 13):
        w.change(model_calls=3 + second)
        writes.append(await w.round(1))
    assert writes == [0] * 9 + [1] + [0] * 2
    w.change(stages=(stage(0, State.RUNNING),))
    assert await w.round(1) == 1


async def test_end_is_written_at_once_with_the_last_counters(world: Any) -> None:
    w = world(record())
    await w.round()
    w.change(model_calls=7)
    assert await w.round(0.1) == 0
    ended = record(State.COMPLETED)
    w.change(state=ended.state, outcome=ended.outcome, finished_at=ended.finished_at)
    assert await w.round(0.1) == 1
    assert w.writes[-1][1]["usage"] == {"modelCalls": 7}
    assert w.told.reasons == ["Succeeded"]


async def test_run_that_ended_rests_once_its_status_is_written_and_noted(world: Any) -> None:
    w = world(record())
    await w.round()
    assert w.at_rest == {}
    ended = record(State.COMPLETED)
    w.change(state=ended.state, outcome=ended.outcome, finished_at=ended.finished_at)
    await w.round(1)
    assert w.at_rest == {UID: (str(w.version), ended.finished_at + timedelta(days=7))}


async def test_run_whose_status_the_api_does_not_keep_does_not_rest(world: Any) -> None:
    w = world(record(State.COMPLETED))
    w.pruned = ("usage",)
    await w.round()
    assert w.writes and w.at_rest == {}


OTHER = {"id": UUID(OTHER_UID), "name": "other"}


@pytest.mark.parametrize("error", [ApiError(422, "Invalid", "no such field"), ApiError(403, "Forbidden", "no")])
async def test_status_that_the_api_refuses_holds_nobody_else_up_and_is_tried_later(world: Any, error: ApiError) -> None:
    w = world(record(), record(**OTHER))
    w.refuse["inv"] = error
    assert await w.round() == 1
    assert w.writes[0][0] == "other"
    w.refuse.clear()
    assert [await w.round(1), await w.round(20)] == [0, 1]


async def test_record_that_makes_no_status_holds_nobody_else_up(world: Any) -> None:
    w = world(record(alert_type="\x00"), record(**OTHER))
    assert await w.round() == 1
    assert w.writes[0][0] == "other"


async def test_api_that_is_away_ends_the_round_and_nothing_is_marked(world: Any) -> None:
    w = world(record())
    w.refuse["inv"] = ApiError(0, "Unreachable", "away")
    with pytest.raises(ApiError):
        await w.round()
    assert w.published == {}
    w.refuse.clear()
    assert await w.round() == 1


async def test_a_run_that_is_being_changed_is_noted_by_the_next_round_and_holds_up_no_other(world: Any) -> None:
    w = world(*(record(State.COMPLETED, id=UUID(int=number), name=f"run-{number}") for number in (1, 2)))
    w.busy.add(UUID(int=1))
    assert await w.round() == 2
    assert w.published.keys() == {UUID(int=2)} and w.at_rest.keys() == {str(UUID(int=2))}
    told = list(w.told.reasons)
    w.busy.clear()
    assert await w.round(1.1) == 0
    assert w.published.keys() == {UUID(int=1), UUID(int=2)} and len(w.at_rest) == 2
    assert w.told.reasons == told


async def test_what_a_round_publishes_is_noted_together(world: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "NOTED_TOGETHER", 3)
    w = world(*(record(id=UUID(int=number), name=f"run-{number}") for number in range(1, 9)))
    assert await w.round() == 8
    assert w.marked == [3, 3, 2] and len(w.published) == 8


async def test_reconciles_of_what_a_round_publishes_wait_until_it_is_noted(world: Any) -> None:
    w = world(record(State.COMPLETED), record(State.COMPLETED, **OTHER))
    rested: list[int] = []
    patch = w.patch

    async def patched(kind: str, namespace: str, name: str, body: Any, *, subresource: str) -> Any:
        answer = await patch(kind, namespace, name, body, subresource=subresource)
        w.cache.after_write(Key(kind, namespace, name), lambda: rested.append(len(w.at_rest)))
        return answer

    w.patch = patched
    await w.round()
    assert rested == [2, 2]


async def test_what_was_published_before_the_api_was_away_is_noted_by_the_next_round(world: Any) -> None:
    w = world(record(), record(**OTHER))
    w.refuse["other"] = ApiError(0, "Unreachable", "away")
    with pytest.raises(ApiError):
        await w.round()
    assert len(w.writes) == 1 and w.published == {}
    with pytest.raises(ApiError):
        await w.round(2)
    assert len(w.writes) == 1 and w.published == {UUID(UID): 5}


async def test_what_could_not_be_noted_is_noted_later_and_tells_nothing_again(world: Any) -> None:
    w = world(record(State.COMPLETED))
    w.record_away = True
    with pytest.raises(StoreUnavailable):
        await w.round()
    assert w.told.reasons == ["Succeeded"] and w.at_rest == {}
    w.record_away = False
    assert await w.round(2) == 0
    assert w.published == {UUID(UID): 5} and w.told.reasons == ["Succeeded"] and UID in w.at_rest


async def test_record_whose_object_is_gone_or_another_is_done_with(world: Any) -> None:
    w = world(record())
    w.records = {UUID(OTHER_UID): record(id=UUID(OTHER_UID))}
    assert await w.round() == 0
    assert w.published == {UUID(OTHER_UID): 5}


async def test_older_revision_is_never_written_over_a_newer_one(world: Any) -> None:
    """Another controller published the end while this one still had the record from before in its hands."""
    w = world(record())
    ended = record(State.COMPLETED, revision=9)
    before = record()
    await w.round()
    w.records[ended.id] = ended
    await w.round(2)
    w.now += 2
    w.stale = [before]
    await w.round()
    assert w.writes[-1][1]["phase"] == "Succeeded" and len(w.writes) == 2


async def test_record_restored_from_a_backup_is_published_although_its_revision_is_older(world: Any) -> None:
    w = world(record(revision=50))
    await w.round()
    w.published.clear()
    w.records[UUID(UID)] = record(State.FAILED, revision=20)
    assert await w.round(2) == 1
    assert w.writes[-1][1]["phase"] == "Failed"


async def test_status_is_made_anew_at_once_when_the_object_has_changed_and_not_for_ever(world: Any) -> None:
    for conflicts, written, left in ((module.TRIES - 1, 1, 0), (module.TRIES, 0, 0), (100, 0, 100 - module.TRIES)):
        w = world(record())
        w.conflicts = conflicts
        assert await w.round() == written
        assert w.conflicts == left
    w.conflicts = 0
    assert await w.round() == 1


async def test_status_that_somebody_else_wrote_over_is_put_right_once_a_second_and_tells_nothing(world: Any) -> None:
    w = world(record(State.COMPLETED))
    await w.round()
    assert w.told.reasons == ["Succeeded"]
    w.overwrite({"phase": "Queued"})
    assert [await w.round(0.4), await w.round(0.4), await w.round(0.4), await w.round(5)] == [0, 0, 1, 0]
    assert w.writes[-1][1]["phase"] == "Succeeded"
    assert w.told.reasons == ["Succeeded"]


async def test_status_that_could_not_be_put_right_is_tried_again(world: Any) -> None:
    w = world(record(State.COMPLETED))
    await w.round()
    w.overwrite({"phase": "Queued"})
    w.conflicts = module.TRIES
    assert [await w.round(2), await w.round(2)] == [0, 1]


async def test_status_of_which_the_api_keeps_only_a_part_is_not_written_for_ever(world: Any) -> None:
    w = world(record())
    w.pruned = ("planHash",)
    assert await w.round() == 1
    w.publisher.again(w.records[UUID(UID)])
    assert [await w.round(2), await w.round(2)] == [0, 0]
    w.change(stages=(stage(0, State.RUNNING),))
    assert await w.round(2) == 1


async def test_event_is_told_although_the_answer_to_the_status_was_lost(world: Any) -> None:
    w = world(record(State.COMPLETED))
    w.lose_answers = True
    with pytest.raises(ApiError):
        await w.round()
    assert w.told.reasons == [] and len(w.writes) == 1
    w.lose_answers = False
    assert await w.round(1) == 0
    assert w.told.reasons == ["Succeeded"]


async def test_events_tell_what_is_new_since_the_last_told_whatever_others_wrote(world: Any) -> None:
    w = world(record(attempt=2))
    await w.round()
    w.overwrite({"attempt": 1})
    w.change(stages=(stage(0, State.RUNNING),))
    await w.round(2)
    assert w.told.reasons == ["Resumed"]


async def test_severity_of_an_alert_that_the_watch_has_not_told_of_is_published_and_asked_for_once(world: Any) -> None:
    w = world(record())
    w.alert = raw("Alert", "a", {"alertType": "PodCrash", "data": "x", "severity": "Critical"})
    await w.round()
    assert w.writes[-1][1]["severity"] == "Critical"
    w.change(state=State.COMPLETED)
    await w.round(2)
    assert w.writes[-1][1].get("severity", "Critical") == "Critical" and w.asked == ["Alert"]


async def test_severity_that_was_told_stays_when_the_alert_is_gone_and_the_api_is_not_asked_again(world: Any) -> None:
    w = world(record())
    w.overwrite({"severity": "Critical"})
    w.change(stages=(stage(0, State.RUNNING),))
    await w.round(2)
    assert w.asked == [] and w.writes[-1][1].get("severity", "Critical") == "Critical"


SUMMARY = stage(1, State.RUNNING, kind=StageKind.EXECUTIVE_SUMMARY)


@pytest.mark.parametrize(
    ("stages", "writes"),
    [
        ((stage(0, State.COMPLETED), stage(1, State.RUNNING)), 1),
        ((stage(0, State.COMPLETED),), 0),
        ((stage(0, State.COMPLETED), SUMMARY), 0),
        ((stage(0, State.FAILED, failure=Failure("AllAgentsFailed", "no")),), 1),
    ],
    ids=["next stage", "between two stages", "executive summary", "failed stage"],
)
async def test_end_of_a_stage_waits_for_what_follows_it_at_most_as_long_as_counters(
    world: Any, stages: Any, writes: int
) -> None:
    w = world(record(stages=(stage(0, State.RUNNING),)))
    await w.round()
    w.change(stages=stages)
    assert await w.round(1) == writes
    assert await w.round(module.COUNTERS_SECONDS - 1.1) == 0
    assert await w.round(1) == 1 - writes


async def test_stage_that_begins_brings_the_end_of_the_one_before(world: Any) -> None:
    w = world(record(stages=(stage(0, State.RUNNING),)))
    await w.round()
    w.change(stages=(stage(0, State.COMPLETED),))
    assert await w.round(1) == 0
    w.change(stages=(stage(0, State.COMPLETED), stage(1, State.RUNNING)))
    assert await w.round(1) == 1
    status = w.writes[-1][1]
    assert (status["progress"], status["currentStage"]) == ("1/3", "stage-1")
    assert [one["phase"] for one in status["stages"]] == ["Succeeded", "Running"]
