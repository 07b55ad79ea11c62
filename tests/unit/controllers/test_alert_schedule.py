"""Tests when an AlertSchedule creates an Alert, by a clock that the tests set."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.controllers.alert_schedule import reconcile
from tarsy.controllers.machinery.cache import Cache
from tarsy.controllers.machinery.context import ControllerSettings, ReconcileContext
from tarsy.controllers.machinery.status import merge_patch
from tarsy.controllers.schedules.alerts import SCHEDULE_LABEL, SCHEDULED_AT, scheduled_name
from tarsy.controllers.schedules.times import FiringResult, look_at_clock
from tarsy.kube.client import ApiError
from tarsy.plan.cron_times import CronTimes
from tarsy.resources.meta import condition
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1 import AlertSchedule
from unit.controllers.builders import UID, raw, reconcile_context

NINE = datetime(2026, 11, 24, 9, 0, tzinfo=UTC)
CREATED = "2026-11-24T08:30:00Z"
SECOND = timedelta(seconds=1)
TEMPLATE = {"alertType": "PodCrash", "data": "Check it."}
CHAIN = raw("Chain", "pods", {"alertTypes": ["PodCrash"], "stages": [{"name": "s", "agents": [{"name": "triage"}]}]})


class Died(Exception):
    """The operator was killed."""


class Machine:
    """A namespace with one schedule, its clock, and the rights of its author."""

    def __init__(self, **spec: Any) -> None:
        self.now = NINE
        self.spec = {"schedule": "0 * * * *", "template": TEMPLATE, "author": {"username": "rita"}} | spec
        self.generation = 1
        self.status: dict[str, Any] = {}
        self.alerts: dict[str, dict[str, Any]] = {}
        self.rights = {"create alerts", "use chains"}
        self.results: list[FiringResult] = []
        self.dies: str | None = None
        self.refuses: ApiError | None = None
        self.chains: list[dict[str, Any]] = [CHAIN]
        self.deleted: list[str] = []

    @property
    def schedule(self) -> AlertSchedule:
        meta = {"generation": self.generation, "creationTimestamp": CREATED}
        return parse_as(AlertSchedule, raw("AlertSchedule", "morning", self.spec, self.status, **meta))

    def context(self) -> ReconcileContext:
        cache = Cache()
        for obj in [*self.chains, *self.alerts.values()]:
            cache.put(obj)
        plain = reconcile_context(self, cache=cache)
        return replace(plain, note_firing=self.results.append)

    async def look(self, at: datetime | None = None, context: ReconcileContext | None = None) -> float | None:
        if at is not None:
            self.now = at
        return await reconcile(self.schedule, context or self.context(), lambda: self.now)

    def change(self, **spec: Any) -> None:
        self.spec |= spec
        self.generation += 1

    def end(self, name: str, succeeded: str = "True") -> None:
        done = {"reason": "X", "lastTransitionTime": CREATED}
        self.alerts[name]["status"] = {
            "conditions": [
                {"type": "Finished", "status": "True"} | done,
                {"type": "Succeeded", "status": succeeded} | done,
            ]
        }

    @property
    def fired(self) -> tuple[str, str, str] | None:
        found = condition(self.schedule.status.conditions, "Fired")
        return None if found is None else (found.status, found.reason, found.message)

    @property
    def ready(self) -> tuple[str, str, str]:
        found = condition(self.schedule.status.conditions, "Ready")
        assert found is not None
        return found.status, found.reason, found.message

    # The Kubernetes API, as far as it is asked.

    async def list(self, kind: str, namespace: str, *, labelSelector: str) -> list[dict[str, Any]]:
        label, _, value = labelSelector.partition("=")
        return [one for one in self.alerts.values() if one["metadata"]["labels"].get(label) == value]

    async def find(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        return self.alerts.get(name)

    async def create(self, obj: dict[str, Any]) -> dict[str, Any]:
        if obj["kind"] == "SubjectAccessReview":
            about = obj["spec"]["resourceAttributes"]
            assert obj["spec"]["user"] == "rita"
            return {"status": {"allowed": f"{about['verb']} {about['resource']}" in self.rights}}
        name = obj["metadata"]["name"]
        if self.refuses is not None:
            raise self.refuses
        if name in self.alerts:
            raise ApiError(409, "AlreadyExists", "it exists")
        meta = {**obj["metadata"], "uid": f"{len(self.alerts):08}-1", "generation": 1, "resourceVersion": "1"}
        self.alerts[name] = {**obj, "metadata": meta}
        if self.dies == "after create":
            raise Died
        return self.alerts[name]

    async def patch(self, kind: str, namespace: str, name: str, body: Any, *, subresource: str) -> dict[str, Any]:
        await asyncio.sleep(0)
        if self.dies == "before status":
            raise Died
        self.status = merged(self.status, body["status"])
        return raw(kind, name, self.spec, self.status, generation=self.generation, resourceVersion="11")

    async def delete(self, kind: str, namespace: str, name: str, *, uid: str) -> None:
        assert self.alerts.pop(name)["metadata"]["uid"] == uid
        self.deleted.append(name)

    async def tell(self, obj: Any, reason: str, message: str, *, kind: str = "Normal") -> None:
        assert reason and message


def merged(old: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """The old status with a merge patch of ours, which nests no deeper."""
    new = {**old, **patch}
    assert merge_patch(old, {key: value for key, value in new.items() if value is not None}) is not None
    return {key: value for key, value in new.items() if value is not None}


async def test_nothing_is_created_before_the_time_and_the_timer_is_that_of_the_next() -> None:
    machine = Machine()
    assert await machine.look(NINE - 30 * SECOND) == 30.0
    assert machine.alerts == {} and machine.fired is None and machine.ready[:2] == ("True", "Scheduled")
    assert machine.status["nextScheduleTime"] == "2026-11-24T09:00:00Z"


async def test_an_alert_is_created_at_its_time_in_the_name_of_the_author_and_once() -> None:
    machine = Machine()
    await machine.look(NINE)
    (alert,) = machine.alerts.values()
    assert alert["spec"]["author"] == {"username": "rita", "groups": []} and alert["spec"]["alertType"] == "PodCrash"
    assert alert["metadata"]["annotations"][SCHEDULED_AT] == "2026-11-24T09:00:00Z"
    assert machine.fired is not None and machine.fired[:2] == ("True", "AlertCreated")
    assert machine.status["lastScheduleTime"] == "2026-11-24T09:00:00Z" and len(machine.status["active"]) == 1
    for later in (0, 1, 59, 1800, 3599):
        await machine.look(NINE + later * SECOND)
    assert len(machine.alerts) == 1 and machine.results == [FiringResult.CREATED]


@pytest.mark.parametrize("moment", ["after create", "before status"])
async def test_an_operator_that_is_killed_creates_no_second_alert(moment: str) -> None:
    machine = Machine()
    machine.dies = moment
    with pytest.raises(Died):
        await machine.look(NINE)
    assert len(machine.alerts) == 1
    machine.dies = None
    await machine.look(NINE + 45 * SECOND)
    assert len(machine.alerts) == 1 and machine.results == [FiringResult.CREATED]
    assert machine.status["lastScheduleTime"] == "2026-11-24T09:00:00Z"


async def test_an_alert_that_was_created_before_a_long_outage_is_no_missed_time() -> None:
    machine = Machine()
    machine.dies = "after create"
    with pytest.raises(Died):
        await machine.look(NINE)
    machine.dies = None
    await machine.look(NINE + timedelta(minutes=50))
    assert len(machine.alerts) == 1 and machine.fired is not None and machine.fired[1] == "AlertCreated"


async def test_two_operators_create_one_alert() -> None:
    machine = Machine()
    one, other = machine.context(), machine.context()
    await asyncio.gather(machine.look(NINE, one), machine.look(NINE, other))
    assert len(machine.alerts) == 1 and machine.fired is not None and machine.fired[1] == "AlertCreated"


@pytest.mark.parametrize(
    ("policy", "late", "created"),
    [
        ({}, 59, True),
        ({}, 60, True),
        ({}, 61, False),
        ({"missedRuns": "RunOnce", "startingDeadlineSeconds": 600}, 599, True),
        ({"missedRuns": "RunOnce", "startingDeadlineSeconds": 600}, 600, True),
        ({"missedRuns": "RunOnce", "startingDeadlineSeconds": 600}, 601, False),
    ],
)
async def test_a_missed_time_is_made_up_for_as_the_policy_says(
    policy: dict[str, Any], late: int, created: bool
) -> None:
    machine = Machine(**policy)
    await machine.look(NINE + late * SECOND)
    assert len(machine.alerts) == int(created) and machine.fired is not None
    assert machine.results == [FiringResult.CREATED if created else FiringResult.MISSED]
    assert machine.fired[:2] == (("True", "AlertCreated") if created else ("False", "Missed"))
    await machine.look(NINE + (late + 5) * SECOND)
    assert len(machine.results) == 1


async def test_one_alert_makes_up_for_many_missed_times() -> None:
    machine = Machine(schedule="* * * * *", missedRuns="RunOnce")
    await machine.look(NINE + timedelta(minutes=20, seconds=7))
    assert [one["metadata"]["annotations"][SCHEDULED_AT] for one in machine.alerts.values()] == ["2026-11-24T09:20:00Z"]


async def test_a_time_is_skipped_while_the_previous_alert_is_not_finished() -> None:
    machine = Machine()
    await machine.look(NINE)
    await machine.look(NINE + timedelta(hours=1))
    assert len(machine.alerts) == 1 and machine.fired is not None and machine.fired[:2] == ("False", "PreviousActive")
    assert machine.results[-1] is FiringResult.OVERLAP
    (name,) = machine.alerts
    machine.end(name)
    await machine.look(NINE + timedelta(hours=1, minutes=1))
    assert "active" not in machine.status or machine.status["active"] == []
    await machine.look(NINE + timedelta(hours=2))
    assert len(machine.alerts) == 2


async def test_alerts_overlap_where_that_is_allowed_up_to_a_limit() -> None:
    machine = Machine(overlap="Allow")
    for hour in range(20):
        await machine.look(NINE + timedelta(hours=hour))
    assert len(machine.alerts) == 20 == len(machine.status["active"])
    await machine.look(NINE + timedelta(hours=20))
    assert len(machine.alerts) == 20 and machine.fired is not None and machine.fired[1] == "TooManyActive"


async def test_a_suspended_schedule_creates_nothing_and_makes_up_for_nothing() -> None:
    machine = Machine(suspend=True, missedRuns="RunOnce")
    assert await machine.look(NINE) is None
    assert machine.alerts == {} and "nextScheduleTime" not in machine.status and machine.ready[1] == "Suspended"
    machine.change(suspend=False)
    await machine.look(NINE + timedelta(minutes=30))
    assert machine.alerts == {} and machine.results == []
    await machine.look(NINE + timedelta(hours=1))
    assert len(machine.alerts) == 1


async def test_another_expression_counts_from_when_it_is_seen() -> None:
    machine = Machine(schedule="0 18 * * *", missedRuns="RunOnce")
    await machine.look(NINE - 60 * SECOND)
    machine.change(schedule="59 8 * * *")
    await machine.look(NINE)
    assert machine.alerts == {} and machine.fired is None


@pytest.mark.parametrize(("right", "words"), [("create alerts", "create alerts"), ("use chains", "may not use Chain")])
async def test_an_author_without_the_rights_gets_a_condition_and_no_alert(right: str, words: str) -> None:
    machine = Machine()
    machine.rights.discard(right)
    await machine.look(NINE)
    assert machine.alerts == {} and machine.results == [FiringResult.REFUSED]
    assert machine.fired is not None and machine.fired[:2] == ("False", "Forbidden") and words in machine.fired[2]
    machine.rights.add(right)
    await machine.look(NINE + 30 * SECOND)
    assert machine.alerts == {}, "a refused time is decided"
    await machine.look(NINE + timedelta(hours=1))
    assert len(machine.alerts) == 1


async def test_an_author_is_required_where_authors_are() -> None:
    machine = Machine()
    del machine.spec["author"]
    required = replace(machine.context(), settings=ControllerSettings("library", require_author=True))
    await machine.look(NINE, required)
    assert machine.alerts == {} and machine.fired is not None and machine.fired[1] == "AuthorUnknown"


async def test_without_a_chain_nothing_is_created_and_the_schedule_is_not_ready() -> None:
    machine = Machine()
    machine.chains = []
    await machine.look(NINE)
    assert machine.alerts == {} and machine.ready[:2] == ("False", "NoChain")
    assert machine.fired is not None and machine.fired[1] == "NoChain"


@pytest.mark.parametrize(
    ("spec", "reason", "words"),
    [
        ({"schedule": "61 * * * *"}, "ScheduleInvalid", "spec.schedule"),
        ({"timeZone": "Mars/Base"}, "TimeZoneInvalid", "spec.timeZone"),
    ],
)
async def test_a_mistake_makes_it_not_ready_with_the_field(spec: dict[str, Any], reason: str, words: str) -> None:
    machine = Machine(**spec)
    assert await machine.look(NINE) is None
    assert machine.ready[:2] == ("False", reason) and words in machine.ready[2] and machine.alerts == {}
    machine.change(schedule="0 * * * *", timeZone="UTC", missedRuns="RunOnce")
    await machine.look(NINE + timedelta(minutes=5))
    assert machine.ready[0] == "True" and machine.alerts == {}, "times before the correction do not count"


async def test_a_refusal_of_the_api_server_is_told_and_an_outage_is_tried_again() -> None:
    machine = Machine()
    machine.refuses = ApiError(503, "ServiceUnavailable", "etcd is away")
    with pytest.raises(ApiError):
        await machine.look(NINE)
    assert machine.fired is None
    machine.refuses = ApiError(403, "Forbidden", "exceeded quota: count/alerts.tarsy.dev")
    await machine.look(NINE + SECOND)
    assert machine.fired is not None and machine.fired[1] == "CreateRefused" and "exceeded quota" in machine.fired[2]


async def test_the_name_of_a_stranger_is_told_and_left_alone() -> None:
    machine = Machine()
    name = scheduled_name(machine.schedule, NINE)
    labels = {SCHEDULE_LABEL: UID}
    annotations = {SCHEDULED_AT: "2026-11-24T09:00:00Z"}
    spec = TEMPLATE | {"author": {"username": "mallory"}}
    machine.alerts[name] = raw("Alert", name, spec, labels=labels, annotations=annotations)
    await machine.look(NINE)
    assert machine.fired is not None and machine.fired[1] == "NameTaken" and machine.deleted == []


async def test_finished_alerts_beyond_the_limits_are_deleted_the_oldest_first() -> None:
    machine = Machine(successfulAlertsHistoryLimit=2, failedAlertsHistoryLimit=0)
    stranger = raw("Alert", "stranger", TEMPLATE, labels={SCHEDULE_LABEL: UID}, annotations={})
    machine.alerts["stranger"] = stranger
    names = []
    for hour in range(4):
        await machine.look(NINE + timedelta(hours=hour))
        names.append(scheduled_name(machine.schedule, machine.now))
        machine.end(names[-1], "False" if hour == 1 else "True")
        await machine.look(machine.now + 60 * SECOND)
    assert machine.deleted == [names[1], names[0]] and {"stranger", names[2], names[3]} == set(machine.alerts)


@given(
    st.text("abcdefghijklmnopqrstuvwxyz-.0123456789", min_size=1, max_size=253).filter(
        lambda name: name[0].isalnum() and name[-1].isalnum()
    ),
    st.datetimes(datetime(2026, 1, 1), datetime(2126, 1, 1)),
)
def test_names_of_alerts_are_valid_and_their_own(name: str, at: datetime) -> None:
    obj = parse_as(AlertSchedule, raw("AlertSchedule", "x", {"schedule": "0 * * * *", "template": TEMPLATE}))
    named = obj.model_copy(update={"metadata": obj.metadata.model_copy(update={"name": name})})
    made = scheduled_name(named, at.replace(tzinfo=UTC))
    assert len(made) <= 63 and made[-1].isalnum() and made[0].isalnum()
    assert made != scheduled_name(named, at.replace(tzinfo=UTC) + timedelta(minutes=1))


@given(
    st.lists(st.integers(min_value=0, max_value=7200), min_size=1, max_size=40), st.sampled_from(["Skip", "RunOnce"])
)
def test_no_time_is_decided_twice_whenever_the_operator_looks(seconds: list[int], policy: str) -> None:
    spec = {"schedule": "*/5 * * * *", "template": TEMPLATE, "missedRuns": policy}
    decided, status = [], {"observedGeneration": 1}
    for second in sorted(seconds):
        now = NINE + second * SECOND
        obj = parse_as(AlertSchedule, raw("AlertSchedule", "x", spec, status, creationTimestamp=CREATED))
        look = look_at_clock(obj, CronTimes("*/5 * * * *", "UTC"), now)
        if look.due is not None:
            assert look.due <= now
            decided.append(look.due)
        status = {"observedGeneration": 1, "decidedTime": f"{look.due or look.begun:%Y-%m-%dT%H:%M:%SZ}"}
    assert decided == sorted(set(decided))
