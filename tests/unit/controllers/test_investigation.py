"""Tests the reconcile of Investigations, most of all of those without a record."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tarsy.controllers.investigation import reconcile
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.runs.alert_of_run import mask_alert
from tarsy.controllers.runs.projection import project
from tarsy.controllers.runs.restored import ACCEPTED_UID, ALERT_LABEL
from tarsy.masking import MaskingFailed, default_masker
from tarsy.plan.model import MaskingPlan
from tarsy.record.run import DesiredState, State
from tarsy.resources.v1alpha1 import InvestigationStatus
from unit.controllers.builders import NOW, OTHER_UID, UID, investigation, raw, reconcile_context, record

THIRD_UID = "6a1c7f6e-0000-4000-8000-000000000003"


def _broken(text: str) -> str:
    raise MaskingFailed("nothing got through")


def _slow(text: str) -> str:
    raise MaskingFailed("custom pattern 'own' took too long", default_masker().mask(text))


class World:
    """API and store: no record unless one is given; writes are noted."""

    def __init__(self, found: Any = None) -> None:
        self.found = found
        self.status: InvestigationStatus | None = None
        self.annotations: Any = None
        self.deleted = False
        self.accepted: list[Any] = []
        self.wanted: list[DesiredState] = []
        self.again: list[Any] = []
        self.read = 0

    def context(self, *objects: dict[str, Any]) -> ReconcileContext:
        return reconcile_context(self, self, objects=objects, publish_again=self.again.append)

    async def record(self, run: Any) -> Any:
        self.read += 1
        return self.found

    async def accept(self, run: Any) -> bool:
        self.accepted.append(run)
        return True

    async def set_desired_state(self, run: Any, desired: DesiredState) -> None:
        self.wanted.append(desired)

    async def unfinished(self, about: Any) -> list[str]:
        return ["why"] if self.found.state.finished else []

    async def find(self, kind: str, namespace: str | None, name: str) -> Any:
        return {"metadata": {"uid": "namespace-uid"}} if kind == "Namespace" else None

    async def patch(self, kind: str, namespace: str, name: str, body: Any, *, subresource: str | None = None) -> Any:
        if subresource:
            self.status = InvestigationStatus.model_validate(body["status"])
        else:
            self.annotations = body["metadata"]["annotations"]
        return raw(kind, name, {"alertRef": {"name": "a"}}, body.get("status"), resourceVersion="11")

    async def delete(self, *_: Any, **__: Any) -> None:
        self.deleted = True


@pytest.mark.parametrize(
    ("annotation", "desired", "reason", "phase"),
    [
        (OTHER_UID, "Running", "Restored", "Failed"),
        (OTHER_UID, "Cancelled", "Restored", "Failed"),
        (UID, "Running", "RecordLost", "Failed"),
        (None, "Cancelled", "CancelledBeforeStart", "Cancelled"),
        (None, "Concluded", "ConcludedBeforeStart", "Cancelled"),
    ],
)
async def test_investigation_that_shall_not_run_is_finished_and_says_why(
    annotation: str | None, desired: str, reason: str, phase: str
) -> None:
    world = World()
    annotations = {ACCEPTED_UID: annotation} if annotation else {}
    await reconcile(investigation(spec={"desiredState": desired}, annotations=annotations), world.context())
    assert world.accepted == [] and world.status is not None
    assert {(c.type, c.status, c.reason) for c in world.status.conditions} == {
        ("Accepted", "False", reason),
        ("Finished", "True", reason),
        ("Succeeded", "False", reason),
    }
    assert world.status.phase == phase and world.status.finished_at is not None


def finished(at: Any) -> dict[str, Any]:
    time = at.strftime("%Y-%m-%dT%H:%M:%SZ")
    end = {"type": "Finished", "status": "True", "reason": "Succeeded", "lastTransitionTime": time}
    return {"conditions": [end], "phase": "Succeeded", "finding": {"summary": "The image does not exist."}}


async def test_finding_of_a_finished_investigation_stays_when_its_record_is_gone() -> None:
    world = World()
    obj = investigation(finished(NOW), {"ttlSecondsAfterFinished": 31_536_000}, annotations={ACCEPTED_UID: UID})
    assert await reconcile(obj, world.context()) is not None
    assert world.status is None and not world.deleted


async def test_investigation_is_not_deleted_before_its_end_was_published() -> None:
    world = World(record(State.COMPLETED, finished_at=NOW - timedelta(days=400)))
    spec, annotations = {"ttlSecondsAfterFinished": 0}, {ACCEPTED_UID: UID}
    assert await reconcile(investigation(None, spec, annotations=annotations), world.context()) is None
    assert not world.deleted
    await reconcile(investigation(finished(NOW - timedelta(days=400)), spec, annotations=annotations), world.context())
    assert world.deleted


MADE: dict[str, Any] = {"spec": {"alertRef": {"name": "a", "uid": THIRD_UID}}, "labels": {ALERT_LABEL: THIRD_UID}}
"""An Investigation as this operator creates it for an Alert."""


@pytest.mark.parametrize(
    ("made", "marked"),
    [
        ({}, True),
        ({"spec": MADE["spec"]}, True),
        (MADE | {"labels": {ALERT_LABEL: OTHER_UID}}, True),
        (MADE, False),
    ],
    ids=["by name", "without the label", "label of another", "of an alert"],
)
async def test_annotation_that_a_crash_prevented_is_written_later_where_the_alert_does_not_tell_the_same(
    made: dict[str, Any], marked: bool
) -> None:
    world = World(record(State.RUNNING))
    await reconcile(investigation(**made), world.context())
    assert world.annotations == ({ACCEPTED_UID: UID} if marked else None)


def _alert(uid: str = THIRD_UID, own: str | None = None, **meta: Any) -> dict[str, Any]:
    status = {"investigationRef": {"name": "inv", "uid": own}} if own else None
    return raw("Alert", "a", {"alertType": "PodCrash", "data": "x"}, status, uid=uid, **meta)


@pytest.mark.parametrize(
    ("there", "reason"),
    [
        (_alert(own=OTHER_UID), "Restored"),
        (_alert(own=UID), "NoChain"),
        (_alert(), "NoChain"),
        (_alert(OTHER_UID, annotations={ACCEPTED_UID: THIRD_UID}), "Restored"),
        (_alert(OTHER_UID, annotations={ACCEPTED_UID: OTHER_UID}), "AlertReplaced"),
        (_alert(OTHER_UID), "AlertReplaced"),
        (None, "AlertMissing"),
    ],
    ids=["alert has another", "alert has it", "first", "both restored", "accepted anew", "created anew", "no alert"],
)
async def test_copy_of_an_investigation_that_was_made_for_an_alert_is_told_by_the_alert(
    there: dict[str, Any] | None, reason: str
) -> None:
    world = World()
    await reconcile(investigation(**MADE), world.context(*filter(None, [there])))
    assert world.accepted == [] and world.status is not None
    assert world.status.conditions[0].reason == reason


@pytest.mark.parametrize(("run", "reason"), [(UID, "RecordLost"), (OTHER_UID, "Restored")])
async def test_status_tells_a_lost_record_and_a_copy_that_was_restored_with_its_status(run: str, reason: str) -> None:
    world = World()
    await reconcile(investigation({"phase": "Running", "record": {"id": run}}, **MADE), world.context())
    assert world.accepted == [] and world.status is not None
    assert world.status.conditions[0].reason == reason


@pytest.mark.parametrize(
    ("wish", "state", "told"),
    [
        ("Cancelled", State.RUNNING, [DesiredState.CANCELLED]),
        ("Concluded", State.PENDING, [DesiredState.CONCLUDED]),
        ("Running", State.RUNNING, []),
        ("Cancelled", State.COMPLETED, [DesiredState.CANCELLED]),  # of the question about it
        ("Concluded", State.COMPLETED, []),
    ],
)
async def test_wish_is_passed_on_while_the_run_lasts(wish: str, state: State, told: list[DesiredState]) -> None:
    world = World(record(state))
    await reconcile(investigation(spec={"desiredState": wish}, annotations={ACCEPTED_UID: UID}), world.context())
    assert world.wanted == told


async def test_investigation_of_an_alert_that_is_not_there_waits_for_it() -> None:
    world = World()
    assert await reconcile(investigation(), world.context()) is not None
    assert world.status is not None and world.status.conditions[0].reason == "AlertMissing"
    assert "spec.alertRef.name: Alert team-a/a does not exist; create it" in world.status.conditions[0].message
    assert [c.status for c in world.status.conditions] == ["False", "False", "Unknown"]


async def test_investigation_of_another_alert_of_that_name_waits() -> None:
    world = World()
    obj = investigation(spec={"alertRef": {"name": "one", "uid": OTHER_UID}})
    await reconcile(obj, world.context(raw("Alert", "one", {"alertType": "PodCrash", "data": "x"})))
    assert world.status is not None and world.status.conditions[0].reason == "AlertReplaced"
    assert "spec.alertRef.uid" in world.status.conditions[0].message


@pytest.mark.parametrize(
    ("mask", "stored"),
    [
        (default_masker().mask, "password: [MASKED_PASSWORD]"),
        (_slow, "password: [MASKED_PASSWORD]"),
        (_broken, "[a text of an alert could not be searched for secrets and is withheld]"),
    ],
)
async def test_alert_is_stored_masked_and_without_the_patterns_that_fail(mask: Any, stored: str) -> None:
    context = replace(World().context(), mask=mask)
    assert await mask_alert("password: hunter22", None, context) == stored


@pytest.mark.parametrize(
    ("setting", "stored"),
    [
        (MaskingPlan(enabled=False), "password: hunter22"),
        (MaskingPlan(groups=("cloud",)), "password: hunter22"),
        (MaskingPlan(groups=("basic",)), "password: [MASKED_PASSWORD]"),
        (MaskingPlan(groups=("nosuch",)), "password: [MASKED_PASSWORD]"),
    ],
    ids=["off", "other groups", "its group", "what can be used of it, and the usual groups"],
)
async def test_alert_is_masked_as_the_namespace_says(setting: MaskingPlan, stored: str) -> None:
    context = replace(World().context(), mask=str.upper)
    assert await mask_alert("password: hunter22", setting, context) == stored


async def test_status_that_is_not_the_records_is_published_again_unless_that_is_due_anyway() -> None:
    published = record(revision=7, published_revision=7)
    right = project(published, investigation(annotations={ACCEPTED_UID: UID}), NOW).to_dict()
    for status, behind, again in (({"phase": "Queued"}, 0, 1), (right, 0, 0), ({"phase": "Queued"}, 1, 0)):
        world = World(replace(published, published_revision=7 - behind))
        await reconcile(investigation(status, annotations={ACCEPTED_UID: UID}), world.context())
        assert len(world.again) == again


@pytest.mark.parametrize(("annotations", "behind"), [({}, 0), ({ACCEPTED_UID: UID}, 1)], ids=["mark", "status"])
async def test_what_is_over_and_lacks_something_is_looked_at_again(annotations: dict[str, str], behind: int) -> None:
    ended = record(State.COMPLETED, revision=7, published_revision=7 - behind)
    spec = {"ttlSecondsAfterFinished": 31_536_000}
    right = project(ended, investigation(None, spec), NOW).to_dict()
    world = World(ended)
    context = world.context()
    for _ in range(2):
        await reconcile(investigation(right, spec, annotations=annotations), context)
    assert world.read == 2
