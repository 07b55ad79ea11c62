"""Tests when an incident goes on, and the status of a folded Alert."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from tarsy.controllers.incidents.keys import folded_status, leader_of, stands
from tarsy.controllers.machinery.cache import Cache
from tarsy.resources.meta import condition
from tarsy.resources.v1alpha1 import Alert
from tarsy.store.intake import Led
from unit.controllers.builders import OTHER_UID, UID, alert, investigation, raw

NOW = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)
LED = Led(UUID(int=1), "first", UID, own=False)


def said(kind: str, status: str, reason: str) -> dict[str, str]:
    return {"type": kind, "status": status, "reason": reason, "lastTransitionTime": "2026-11-22T12:00:00Z"}


def ran(*conditions: dict[str, str]) -> Any:
    return investigation(status={"conditions": list(conditions)})


PLANNED, ENDED = said("Accepted", "True", "Planned"), said("Finished", "True", "Succeeded")
REFUSED = [said("Accepted", "False", "ProviderMissing"), said("Finished", "True", "NotAccepted")]


@pytest.mark.parametrize(
    ("run", "led", "goes_on"),
    [
        (None, {}, True),
        (ran(), {}, True),
        (ran(PLANNED), {"recent": False}, True),
        (ran(PLANNED, ENDED), {}, True),
        (ran(PLANNED, ENDED), {"recent": False}, False),
        (ran(PLANNED), {"resolved": True}, False),
        (ran(*REFUSED), {}, False),
    ],
)
def test_incident_goes_on_while_it_is_investigated_and_for_an_hour_after_its_last_alert(
    run: Any, led: dict[str, bool], goes_on: bool
) -> None:
    values = {name: getattr(LED, name) for name in Led.__dataclass_fields__} | led
    assert stands(Led(**values), alert("first"), run) is goes_on


def test_incident_is_over_when_its_investigation_was_deleted_or_its_leader_follows_another() -> None:
    deleted = alert("first", status={"conditions": [said("Finished", "True", "InvestigationDeleted")]})
    assert not stands(LED, deleted, None)
    follower = alert("first", status={"foldedInto": {"name": "other", "uid": OTHER_UID}})
    assert not stands(LED, follower, None)


class Ledger:
    """Knows of an incident that `first` leads."""

    def __init__(self) -> None:
        self.followed: list[str] = []

    async def lead(self, *_: Any, instead_of: Any = None) -> Led:
        return Led(UUID(int=1), "first", OTHER_UID, own=instead_of is not None)

    async def follow(self, incident: UUID, namespace: str, name: str, uid: str) -> None:
        self.followed.append(name)


class Api:
    """The Kubernetes API with these objects."""

    def __init__(self, *there: Any) -> None:
        self.there = {obj["metadata"]["name"]: obj for obj in there}

    async def find(self, kind: str, namespace: str, name: str) -> Any:
        return self.there.get(name)


@pytest.mark.parametrize("there", [True, False], ids=["investigation there", "investigation deleted"])
async def test_controller_that_has_just_started_asks_for_the_investigation_of_the_incident(there: bool) -> None:
    status: dict[str, Any] = {"investigationRef": {"name": "first-abc", "uid": OTHER_UID}}
    status["conditions"] = [said("Finished", "True", "InvestigationFinished")]
    led = raw("Alert", "first", {"alertType": "PodCrash", "data": "x"}, status, uid=OTHER_UID)
    ended = {"conditions": [PLANNED, ENDED]}
    run = raw("Investigation", "first-abc", {"alertRef": {"name": "first"}}, ended, uid=OTHER_UID)
    api: Any = Api(led, *([run] if there else []))
    ledger: Any = Ledger()
    found = await leader_of(alert("second"), "disk", Cache(), api, ledger)
    assert (found is not None, ledger.followed) == (there, ["second"] if there else [])


def leader(*conditions: dict[str, str]) -> Alert:
    status = {"investigationRef": {"name": "first-abc", "uid": OTHER_UID}, "conditions": list(conditions)}
    return alert("first", uid=OTHER_UID, status=status)


def test_folded_alert_names_its_leader_and_its_investigation() -> None:
    status = folded_status(alert("second"), leader(), NOW)
    accepted = condition(status.conditions, "Accepted")
    assert accepted is not None
    assert (accepted.status, accepted.reason) == ("True", "Folded")
    assert "Alert first, which has the same incidentKey" in accepted.message
    assert status.folded_into is not None and status.investigation_ref is not None
    assert (status.folded_into.name, status.folded_into.uid) == ("first", OTHER_UID)
    assert (status.investigation_ref.name, status.phase) == ("first-abc", "Folded")


@pytest.mark.parametrize(
    ("of_leader", "status", "reason"),
    [
        (leader(), "False", "NotFinished"),
        (leader(said("Finished", "True", "InvestigationFinished")), "True", "InvestigationFinished"),
        (None, "True", "InvestigationDeleted"),
    ],
)
def test_folded_alert_ends_as_its_leader_does(of_leader: Alert | None, status: str, reason: str) -> None:
    ended = condition(folded_status(alert("second"), of_leader, NOW).conditions, "Finished")
    assert ended is not None
    assert (ended.status, ended.reason) == (status, reason)


def test_end_that_was_told_stays_when_the_leader_goes() -> None:
    first = folded_status(alert("second"), leader(said("Finished", "True", "InvestigationFinished")), NOW)
    later = folded_status(alert("second").model_copy(update={"status": first}), None, NOW)
    assert condition(later.conditions, "Finished") == condition(first.conditions, "Finished")
    assert later.folded_into == first.folded_into
