"""Tests how long a run waits to be accepted, and how it is given up."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from tarsy.controllers.machinery.cache import Cache
from tarsy.controllers.runs.acceptance import (
    ACCEPTANCE_SECONDS,
    acceptance_timeout,
    deadline,
    given_up,
    waiting,
    was_given_up,
)
from tarsy.resources.v1alpha1 import Investigation, InvestigationDefaults, InvestigationStatus
from tarsy.resources.v1alpha1.investigation import InvestigationSpec
from tarsy.resources.v1alpha1.investigation_defaults import InvestigationDefaultsSpec
from unit.controllers.builders import NOW, investigation, raw
from unit.controllers.test_investigation import World

TEN = timedelta(seconds=10)


def cache(**seconds: int | None) -> Cache:
    """InvestigationDefaults of namespaces, each with a time or without."""
    made = Cache()
    for namespace, value in seconds.items():
        spec = {} if value is None else {"acceptanceTimeoutSeconds": value}
        place = namespace.replace("_", "-")
        made.put(raw(InvestigationDefaults.KIND, "default", spec, namespace=place, uid=f"uid-of-{place}"))
    return made


@pytest.mark.parametrize(
    ("own", "objects", "seconds"),
    [
        (None, cache(), ACCEPTANCE_SECONDS),
        (None, cache(team_a=None), ACCEPTANCE_SECONDS),
        (None, cache(team_a=7), 7),
        (None, cache(library=9), 9),
        (None, cache(team_a=None, library=9), ACCEPTANCE_SECONDS),
        (5, cache(team_a=7), 5),
    ],
)
def test_the_object_says_how_long_it_waits_then_the_defaults_then_an_hour(
    own: int | None, objects: Cache, seconds: int
) -> None:
    assert acceptance_timeout(own, "team-a", objects, "library") == timedelta(seconds=seconds)


@pytest.mark.parametrize("model", [InvestigationSpec, InvestigationDefaultsSpec])
@pytest.mark.parametrize(("seconds", "fits"), [(0, False), (1, True), (604_800, True), (604_801, False)])
def test_the_time_is_from_one_second_to_a_week(model: Any, seconds: int, fits: bool) -> None:
    body = {"acceptanceTimeoutSeconds": seconds} | ({"alertRef": {"name": "a"}} if model is InvestigationSpec else {})
    if fits:
        assert model.model_validate(body).acceptance_timeout_seconds == seconds
    else:
        with pytest.raises(ValidationError):
            model.model_validate(body)


def refused(seconds_ago: int) -> dict[str, Any]:
    since = (NOW - timedelta(seconds=seconds_ago)).strftime("%Y-%m-%dT%H:%M:%SZ")
    accepted = {"type": "Accepted", "status": "False", "reason": "NoChain", "lastTransitionTime": since}
    return {"conditions": [accepted], "phase": "Pending"}


def test_the_wait_is_counted_from_the_first_refusal_that_people_could_read() -> None:
    assert deadline((), TEN, NOW) == NOW + TEN
    told = InvestigationStatus.model_validate(refused(4)).conditions
    assert deadline(told, TEN, NOW) == NOW + timedelta(seconds=6)


def test_a_run_that_waits_says_until_when_and_the_sentence_stays() -> None:
    first = waiting(InvestigationStatus(), 1, "PlanInvalid", "no such server", NOW + TEN, NOW)
    later = NOW + timedelta(seconds=5)
    again = waiting(first, 1, "PlanInvalid", "no such server", deadline(first.conditions, TEN, later), later)
    assert first == again and first.phase == "Pending"
    said = {one.type: (one.status, one.reason, one.message) for one in first.conditions}
    assert said["Accepted"] == ("False", "PlanInvalid", "no such server")
    assert said["Finished"][:2] == ("False", "NotAccepted") and "2026-11-22T12:00:10Z" in said["Finished"][2]


def test_a_run_that_is_given_up_is_finished_and_keeps_why() -> None:
    status = given_up(InvestigationStatus(), 3, "PlanInvalid", "no such server", TEN, NOW)
    assert {(one.type, one.status, one.reason) for one in status.conditions} == {
        ("Accepted", "False", "PlanInvalid"),
        ("Finished", "True", "NotAccepted"),
        ("Succeeded", "False", "NotAccepted"),
    }
    assert (status.phase, status.finished_at) == ("Failed", NOW)
    assert status.last_error is not None
    assert status.last_error.message == "It was not accepted within 10 s (PlanInvalid): no such server"
    assert was_given_up(status.conditions) and not was_given_up(())


class Told(World):
    """Notes the Events too."""

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[str, str]] = []

    async def tell(self, obj: Any, reason: str, message: str, *, kind: str = "Normal") -> None:
        self.told.append((kind, reason))


async def looked_at(world: World, seconds_ago: int, monkeypatch: pytest.MonkeyPatch) -> float | None:
    from tarsy.controllers import investigation as module

    class Clock:
        @staticmethod
        def now(_: object) -> Any:
            return NOW

    monkeypatch.setattr(module, "datetime", Clock)
    spec = {"alertRef": None, "alert": {"alertType": "PodCrash", "data": "x"}, "acceptanceTimeoutSeconds": 10}
    obj: Investigation = investigation(refused(seconds_ago), spec)
    return await module.reconcile(obj, world.context())


@pytest.mark.parametrize(("seconds_ago", "ends"), [(9, False), (10, True), (11, True)])
async def test_a_run_waits_as_long_as_it_says_and_not_longer(
    seconds_ago: int, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Told()
    again = await looked_at(world, seconds_ago, monkeypatch)
    assert world.accepted == [] and world.status is not None
    assert was_given_up(world.status.conditions) is ends
    assert world.told == ([("Warning", "NotAccepted")] if ends else [])
    assert again is None if ends else again == 2


async def test_a_run_that_was_given_up_stays_so_and_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = given_up(InvestigationStatus(), 1, "NoChain", "no chain", TEN, NOW - timedelta(days=400))
    chain = raw("Chain", "pods", {"alertTypes": ["PodCrash"], "stages": [{"name": "s", "agents": [{"name": "one"}]}]})
    world = Told()
    spec = {"ttlSecondsAfterFinished": 0}
    from tarsy.controllers.investigation import reconcile

    await reconcile(investigation(ended.to_dict(), spec), world.context(chain))
    assert world.deleted and world.accepted == [] and world.told == []
