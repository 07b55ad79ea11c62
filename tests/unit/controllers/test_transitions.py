"""Tests which changes of conditions are recorded, and when: the store is in memory."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tarsy.controllers.machinery.cache import UnreadableObject
from tarsy.controllers.readiness.transitions import A_MINUTE, WITHHELD, TransitionRecorder
from tarsy.kube.lease import LeaderElection
from tarsy.masking import MaskingFailed
from tarsy.record.reading.condition_transition import ABSENT, ConditionHead, ConditionTransition
from tarsy.resources.meta import AnyResource
from tarsy.resources.parse import InvalidResource, parse_object
from tarsy.store.errors import StoreError

NOW = datetime.now(UTC).replace(microsecond=0) - timedelta(days=1)
SPEC = {"transport": {"type": "http", "http": {"url": "https://tools.example/mcp?token=x"}}}


class Memory:
    """A record that keeps what is written, each change once."""

    def __init__(self) -> None:
        self.rows: list[ConditionTransition] = []
        self.reads = self.writes = 0
        self.away = False
        self.wrote, self.wait = asyncio.Event(), asyncio.Event()
        self.wait.set()

    async def heads(self, uids: list[str], /) -> Mapping[str, tuple[str, dict[str, ConditionHead]]]:
        self._ask()
        self.reads += 1
        found: dict[str, tuple[str, dict[str, ConditionHead]]] = {}
        for row in self.rows:
            if row.object.uid in uids:
                found.setdefault(row.object.uid, (row.object.namespace_uid, {}))[1][row.type] = ConditionHead(
                    row.status, row.at
                )
        return found

    async def write(self, changes: list[ConditionTransition], /) -> int:
        self._ask()
        await self.wait.wait()
        self.writes += 1
        known = {(one.object.uid, one.type, one.at, one.status) for one in self.rows}
        new = [one for one in changes if (one.object.uid, one.type, one.at, one.status) not in known]
        self.rows += new
        self.wrote.set()
        return len(new)

    def _ask(self) -> None:
        if self.away:
            raise StoreError("Postgres is away.")

    def told(self) -> list[tuple[str, str | None, str]]:
        return [(one.type, one.was, one.status) for one in self.rows]


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def server(*told: tuple[str, str, float], uid: str = "uid-1", message: str = "It is so.") -> AnyResource:
    """An MCPServer with conditions, each with the seconds after `NOW` at which it changed."""
    conditions = [
        {
            "type": type_,
            "status": status,
            "reason": f"{type_}Is{status}",
            "message": message,
            "lastTransitionTime": f"{NOW + timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}",
        }
        for type_, status, seconds in told
    ]
    raw = {
        "apiVersion": "tarsy.dev/v1alpha1",
        "kind": "MCPServer",
        "metadata": {"name": "tools", "namespace": "shop", "uid": uid},
        "spec": SPEC,
        "status": {"conditions": conditions},
    }
    return parse_object(raw)


def recorder(store: Memory, clock: Clock | None = None, **values: Any) -> TransitionRecorder:
    async def namespace_uid(name: str) -> str | None:
        return f"uid of {name}" if name == "shop" else None

    return TransitionRecorder(store, namespace_uid, values.pop("mask", str), clock=clock or Clock(), **values)


async def test_a_server_that_goes_away_and_comes_back_has_two_changes_beyond_its_first() -> None:
    store = Memory()
    recording = recorder(store, mask=lambda text: text.replace("so", "[MASKED]"))
    for status, seconds in (("True", 0), ("False", 60), ("False", 60), ("True", 90)):
        recording.observe(server(("Ready", "True", 0), ("Available", status, seconds)))
        await recording.flush()
    assert store.told() == [
        ("Ready", None, "True"),
        ("Available", None, "True"),
        ("Available", "True", "False"),
        ("Available", "False", "True"),
    ]
    gone = store.rows[2]
    assert (gone.at, gone.reason, gone.message) == (NOW + timedelta(seconds=60), "AvailableIsFalse", "It is [MASKED].")
    assert (gone.address, gone.object.namespace_uid) == ("https://tools.example", "uid of shop")


async def test_nothing_is_read_or_written_while_nothing_changes() -> None:
    store = Memory()
    recording = recorder(store)
    recording.observe(server(("Ready", "True", 0)))
    await recording.flush()
    before = (store.reads, store.writes)
    for _ in range(5):
        recording.observe(server(("Ready", "True", 0), message="Another message changes no status."))
        await recording.flush()
    assert (store.reads, store.writes) == before == (1, 1)


async def test_a_controller_that_dies_between_status_and_record_leaves_it_to_the_next_one() -> None:
    store = Memory()
    first = recorder(store)
    first.observe(server(("Ready", "True", 0)))
    await first.flush()
    first.observe(server(("Ready", "False", 60)))  # and it dies
    second, third = recorder(store), recorder(store)
    for one in (second, third):  # two that meet, and a start without news
        one.observe(server(("Ready", "False", 60)))
    await asyncio.gather(second.flush(), third.flush())
    assert store.told() == [("Ready", None, "True"), ("Ready", "True", "False")]
    fourth = recorder(store)
    fourth.observe(server(("Ready", "False", 60)))
    writes = store.writes
    await fourth.flush()
    assert store.writes == writes


async def test_a_condition_that_is_gone_is_recorded_once_also_by_the_next_controller() -> None:
    store = Memory()
    for _ in range(2):
        recording = recorder(store)
        if not store.rows:
            recording.observe(server(("Ready", "True", 0), ("ToolsChanged", "True", 5)))
        recording.observe(server(("Ready", "True", 0)))
        await recording.flush()
    assert store.told()[-1] == ("ToolsChanged", "True", ABSENT) and len(store.rows) == 3
    recording.observe(server(("Ready", "True", 0), ("ToolsChanged", "False", 200_000)))
    await recording.flush()
    assert store.told()[-1] == ("ToolsChanged", ABSENT, "False")


async def test_what_happens_while_postgres_is_away_is_recorded_in_order_when_it_is_back() -> None:
    store = Memory()
    recording = recorder(store)
    store.away = True
    for number in range(4):
        recording.observe(server(("Ready", ("True", "False")[number % 2], number)))
        with pytest.raises(StoreError):
            await recording.flush()
    store.away = False
    await recording.flush()
    assert [one.status for one in store.rows] == ["True", "False", "True", "False"]


@pytest.mark.parametrize(("states", "written", "omitted"), [(11, 11, 0), (12, 12, 0), (13, 12, 0), (14, 12, 1)])
async def test_an_object_that_flaps_writes_a_number_of_rows_a_minute_and_then_its_last_state(
    states: int, written: int, omitted: int
) -> None:
    assert A_MINUTE == 12
    store, clock = Memory(), Clock()
    recording = recorder(store, clock)
    for number in range(states):
        recording.observe(server(("Ready", ("True", "False")[number % 2], number)))
        if number < A_MINUTE:
            await recording.flush()
    await recording.flush()
    clock.now += 59.9
    await recording.flush()
    assert len(store.rows) == min(written, A_MINUTE)
    other = server(("Ready", "True", 0), uid="uid-2")
    recording.observe(other)  # an object beside it is not kept waiting
    await recording.flush()
    assert store.rows[-1].object.uid == "uid-2"
    clock.now += 0.2
    await recording.flush()
    mine = [one for one in store.rows if one.object.uid == "uid-1"]
    assert mine[-1].at == NOW + timedelta(seconds=states - 1)
    assert len(mine) + sum(one.omitted for one in mine) == states


async def test_states_that_wait_are_bounded_and_those_left_out_are_counted() -> None:
    store, clock = Memory(), Clock()
    recording = recorder(store, clock)
    for number in range(100):
        recording.observe(server(("Ready", ("True", "False")[number % 2], number)))
    await recording.flush()
    assert len(store.rows) == A_MINUTE
    assert (store.rows[-1].at, store.rows[-1].omitted) == (NOW + timedelta(seconds=99), 100 - A_MINUTE)
    assert [one.omitted for one in store.rows[:-1]] == [0] * (A_MINUTE - 1)


@pytest.mark.parametrize(("age", "rows"), [(3599, 1), (3601, 0)])
async def test_what_retention_would_delete_is_not_recorded_again(age: float, rows: int) -> None:
    store = Memory()
    recording = recorder(store, kept=timedelta(hours=1))
    ago = (datetime.now(UTC) - NOW).total_seconds() - age
    recording.observe(server(("Ready", "True", ago)))
    await recording.flush()
    assert len(store.rows) == rows
    recording.observe(server(("Ready", "False", ago + age)))
    await recording.flush()
    assert store.told()[-1] == ("Ready", "True", "False")


async def test_a_message_that_cannot_be_masked_is_withheld() -> None:
    def fail(text: str) -> str:
        raise MaskingFailed("It took too long.", left=text)

    store = Memory()
    recording = recorder(store, mask=fail)
    recording.observe(server(("Ready", "True", 0), message="a secret"))
    await recording.flush()
    assert store.rows[0].message == WITHHELD


async def test_invalid_objects_are_recorded_and_other_kinds_and_deleted_namespaces_are_not() -> None:
    store = Memory()
    recording = recorder(store)
    stamp = {"status": "False", "reason": "Invalid", "lastTransitionTime": "2026-11-22T12:00:00Z"}
    status = {"conditions": [{"type": "Ready", **stamp}]}

    def invalid(kind: str, uid: str, namespace: str = "shop") -> UnreadableObject:
        meta = {"name": "broken", "namespace": namespace, "uid": uid}
        return UnreadableObject({"kind": kind, "metadata": meta, "status": status}, InvalidResource(kind, "broken", ()))

    for one in (invalid("Chain", "uid-3"), invalid("Alert", "uid-4"), invalid("Chain", "uid-5", "gone")):
        recording.observe(one)
    recording.observe(None)
    await recording.flush()
    assert [(one.object.uid, one.reason) for one in store.rows] == [("uid-3", "Invalid")]


async def test_a_deleted_object_is_forgotten_when_what_waits_is_recorded() -> None:
    store = Memory()
    recording = recorder(store)
    recording.observe(server(("Ready", "True", 0)))
    recording.forget("uid-1")
    await recording.flush()
    assert store.told() == [("Ready", None, "True")]
    assert not recording._known and not recording._last and not recording._waiting


async def test_an_object_that_is_deleted_while_it_is_recorded_is_recorded_and_forgotten() -> None:
    store = Memory()
    recording = recorder(store)
    recording.observe(server(("Ready", "True", 0)))
    await recording.flush()
    recording.observe(server(("Ready", "False", 9)))
    store.wait.clear()
    flushing = asyncio.create_task(recording.flush())
    await asyncio.sleep(0)
    recording.forget("uid-1")
    store.wait.set()
    await flushing
    assert store.told() == [("Ready", None, "True"), ("Ready", "True", "False")]
    assert not recording._known and not recording._waiting


async def test_it_records_while_it_is_active_and_rests_otherwise() -> None:
    store, election = Memory(), LeaderElection(None, "lib", "lease", "me")  # type: ignore[arg-type]
    recording = recorder(store)
    running = asyncio.create_task(recording.run(election))
    recording.observe(server(("Ready", "True", 0)))
    await asyncio.sleep(0)
    assert not store.rows
    election.active.set()
    await asyncio.wait_for(store.wrote.wait(), 5)
    running.cancel()
    await asyncio.wait([running])
