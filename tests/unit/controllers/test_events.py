"""What the active controller makes of news from the watch: whose turn it is, and what counts as gone."""

import asyncio
from typing import Any

import pytest

from tarsy.controllers.active import ActiveController
from tarsy.controllers.cache import Key
from tarsy.controllers.investigation import ACCEPTED_UID
from tarsy.kube.lease import LeaderElection
from tarsy.record.run import State
from unit.controllers.builders import OTHER_UID, UID, raw, record


class Ended:
    """The store's side: which runs lost their objects."""

    def __init__(self) -> None:
        self.runs: list[str] = []

    async def object_deleted(self, run: Any) -> None:
        self.runs.append(str(run))

    async def record(self, run: Any) -> Any:
        return record(State.RUNNING)


def controller(store: Any = None) -> ActiveController:
    nobody: Any = None
    return ActiveController(
        nobody,
        store or Ended(),
        store or Ended(),
        nobody,
        nobody,
        LeaderElection(nobody, "lib", "lease", "me"),
        nobody,
        library_namespace="lib",
        mask=str,
        changed=asyncio.Event(),
    )


async def turns(of: ActiveController) -> set[str]:
    """Whose turn it is; nothing is left after."""
    found = set()
    while len(of._queue):
        key = await of._queue.get()
        found.add(f"{key.kind}/{key.name}")
        of._queue.done(key)
    return found


def inv(name: str = "inv", version: str = "10", uid: str = UID, **rest: Any) -> dict[str, Any]:
    ran = {ACCEPTED_UID: uid}
    return raw(
        "Investigation", name, {"alertRef": {"name": "a"}}, uid=uid, resourceVersion=version, annotations=ran, **rest
    )


ACCEPTED = {"conditions": [{"type": "Accepted", "status": "True", "reason": "Planned"}]}


async def test_status_of_configuration_wakes_nobody_but_its_spec_wakes_all_that_may_wait() -> None:
    of = controller()
    for obj in (raw("Agent"), raw("Chain", "pods", {"stages": [{"name": "s", "agents": [{"name": "one"}]}]}), inv()):
        of._on_event(None, obj)
    await turns(of)
    of._on_event("MODIFIED", raw("Agent", status={"conditions": []}, resourceVersion="11"))
    assert await turns(of) == {"Agent/one"}
    of._on_event("MODIFIED", raw("Agent", generation=2, resourceVersion="12"))
    assert await turns(of) == {"Agent/one", "Chain/pods", "Investigation/inv"}


async def test_accepted_investigations_are_not_woken_by_configuration() -> None:
    of = controller()
    of._on_event(None, {**inv(), "status": ACCEPTED})
    await turns(of)
    of._on_event("ADDED", raw("Agent"))
    assert await turns(of) == {"Agent/one"}


async def test_alert_wakes_only_the_waiting_investigations_that_name_it() -> None:
    of = controller()
    other = raw("Investigation", "other", {"alertRef": {"name": "b"}}, uid=OTHER_UID)
    for obj in (inv(), other):
        of._on_event(None, obj)
    await turns(of)
    of._on_event("ADDED", raw("Alert", "a", {"alertType": "T", "data": "x"}))
    assert await turns(of) == {"Alert/a", "Investigation/inv"}


async def test_investigation_wakes_its_alert_when_it_changes_and_when_it_goes() -> None:
    of = controller()
    of._on_event("ADDED", inv())
    assert await turns(of) == {"Investigation/inv", "Alert/a"}
    of._on_event("DELETED", inv())
    assert await turns(of) == {"Investigation/inv", "Alert/a"}


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
    store = Ended()
    of = controller(store)
    for kind, uid, version in news:
        of._on_event(kind, inv(version=version, uid=uid))
    key = Key("Investigation", "team-a", "inv")
    await of._reconcile(key)
    assert set(store.runs) == ended
