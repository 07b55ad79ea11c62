"""Tests the way from an Alert to a finished Investigation, and its cost for the API server."""

import asyncio

import pytest

from integration.controllers.desk import Desk, eventually
from tarsy.observe.metric_table import DEFAULTED
from tarsy.observe.metrics import Metrics
from tarsy.record.run import DesiredState, State


async def test_alert_is_investigated_to_its_end_with_few_writes_and_each_event_once(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller() as writes:
        for kind in ("LLMProvider", "Agent", "Chain"):
            await desk.reason(kind, "one", "Ready", "True", "Usable")
        writes.clear()
        await desk.alert()
        investigation = await desk.queued()
        name = investigation["metadata"]["name"]
        await desk.reason("Investigation", name, "Accepted", "True", "Planned")
        claimed = await desk.claim()
        desk.changed.set()
        await eventually(lambda: _phase(desk, name, "Running"))
        await desk.finish(claimed)
        await desk.reason("Investigation", name, "Succeeded", "True", "Succeeded")
        await desk.reason("Alert", "crash", "Finished", "True", "InvestigationFinished")
        await desk.still("Investigation", name)
        await desk.still("Alert", "crash", 0.1)
        found = await desk.get("Investigation", name)
        assert found["status"]["finding"] == {"summary": "The image does not exist.", "confidence": "High"}
        assert "annotations" not in found["metadata"]
        assert found["metadata"]["labels"]["tarsy.dev/alert-uid"] == found["spec"]["alertRef"]["uid"]
        print(f"API writes of one investigation: {sum(writes.values())}: {dict(writes)}")
        assert (await desk.get("Alert", "crash"))["metadata"]["annotations"]["tarsy.dev/accepted-uid"]
        end = ("Investigation", "Succeeded")
        assert await desk.told(end) == [end]


async def _phase(desk: Desk, name: str, phase: str) -> bool:
    status = (await desk.get("Investigation", name)).get("status") or {}
    assert status.get("phase") == phase, status.get("phase")
    return True


async def test_two_active_controllers_make_one_investigation_and_do_not_fight(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller() as one, desk.controller() as two:
        for number in range(5):
            await desk.alert(f"crash-{number}")
        names = []
        for number in range(5):
            found = await desk.queued(f"crash-{number}")
            names.append(found["metadata"]["name"])
            await desk.reason("Investigation", names[-1], "Accepted", "True", "Planned")
        for _ in range(5):
            await desk.finish(await desk.claim())
        for name in names:
            await desk.reason("Investigation", name, "Finished", "True", "Succeeded")
        for number in range(5):
            await desk.reason("Alert", f"crash-{number}", "Finished", "True", "InvestigationFinished")
        assert len(await desk.investigations()) == 5
        await desk.still("Investigation", names[0])
        await desk.still("Alert", "crash-0", 0.1)
        for kind in ("LLMProvider", "Agent", "Chain"):
            await desk.still(kind, "one", 0.1)
        events = await desk.told(*[("Investigation", "Succeeded")] * 5)
        assert events.count(("Investigation", "Succeeded")) == 5
        print(f"API writes of two controllers for five investigations: {dict(one)} {dict(two)}")


async def test_restored_alert_is_not_investigated_again(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        annotations = {"tarsy.dev/accepted-uid": "00000000-0000-4000-8000-000000000000"}
        await desk.put("Alert", "copy", {"alertType": "PodCrash", "data": "it crashed"}, annotations=annotations)
        assert "create a new one" in await desk.reason("Alert", "copy", "Finished", "True", "Restored")
        assert await desk.investigations() == []


@pytest.mark.parametrize("lost", [("Investigation",), ("Alert", "Investigation")], ids=["one", "both"])
async def test_objects_of_a_run_that_are_restored_without_their_status_do_not_run_again(
    desk: Desk, lost: tuple[str, ...]
) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.alert()
        name = (await desk.queued())["metadata"]["name"]
        await desk.finish(await desk.claim())
        await desk.reason("Alert", "crash", "Finished", "True", "InvestigationFinished")
        saved = {"Alert": await desk.get("Alert", "crash"), "Investigation": await desk.get("Investigation", name)}
        for kind in lost:
            await desk.kube.delete(kind, desk.namespace, saved[kind]["metadata"]["name"])
        for kind in lost:
            meta = {key: saved[kind]["metadata"].get(key) or {} for key in ("labels", "annotations")}
            await desk.put(kind, saved[kind]["metadata"]["name"], saved[kind]["spec"], **meta)
        for kind in lost:
            await desk.reason(kind, saved[kind]["metadata"]["name"], "Finished", "True", "Restored")
        assert [one["metadata"]["name"] for one in await desk.investigations()] == [name]
        assert await desk.reads.unfinished() == set()


async def test_direct_investigation_with_its_alert_inside_runs(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.put("Investigation", "mine", {"alert": {"alertType": "PodCrash", "data": "it crashed"}})
        await desk.reason("Investigation", "mine", "Accepted", "True", "Planned")
        claimed = await desk.claim()
        assert claimed.alert_data == "it crashed"
        await desk.finish(claimed)
        await desk.reason("Investigation", "mine", "Finished", "True", "Succeeded")


@pytest.mark.parametrize(
    ("wish", "reason"), [("Cancelled", "CancelledBeforeStart"), ("Concluded", "ConcludedBeforeStart")]
)
async def test_pending_investigation_ends_at_once_as_wished(desk: Desk, wish: str, reason: str) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.alert()
        found = await desk.queued()
        name = found["metadata"]["name"]
        await desk.kube.patch("Investigation", desk.namespace, name, {"spec": {"desiredState": wish}})
        await desk.reason("Investigation", name, "Finished", "True", reason)
        assert (await desk.conditions("Investigation", name))["Succeeded"][0] == "False"
        await desk.reason("Alert", "crash", "Finished", "True", "InvestigationFinished")


async def test_investigation_that_is_cancelled_while_it_waits_for_its_chain_ends(desk: Desk) -> None:
    async with desk.controller():
        spec = {"alert": {"alertType": "PodCrash", "data": "x"}}
        await desk.put("Investigation", "mine", spec)
        await desk.reason("Investigation", "mine", "Accepted", "False", "NoChain")
        await desk.kube.patch("Investigation", desk.namespace, "mine", {"spec": {"desiredState": "Cancelled"}})
        await desk.reason("Investigation", "mine", "Finished", "True", "CancelledBeforeStart")


async def test_deletion_of_a_running_investigation_cancels_its_run_and_the_record_stays(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.alert()
        found = await desk.queued()
        await desk.claim()
        await desk.kube.delete("Investigation", desk.namespace, found["metadata"]["name"])

        async def cancelled() -> bool:
            return (await desk.record(found)).desired_state is DesiredState.CANCELLED

        await eventually(cancelled)
        await desk.reason("Alert", "crash", "Finished", "True", "InvestigationDeleted")
        assert await desk.investigations() == []  # and it is not made anew


async def test_investigation_deleted_while_no_controller_ran_is_cancelled_by_the_next(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.alert()
        found = await desk.queued()
    await desk.kube.delete("Investigation", desk.namespace, found["metadata"]["name"])
    async with desk.controller():

        async def cancelled() -> bool:
            return (await desk.record(found)).state is State.CANCELLED

        await eventually(cancelled)


async def test_restored_copy_does_not_run_and_says_so(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        annotations = {"tarsy.dev/accepted-uid": "00000000-0000-4000-8000-000000000000"}
        spec = {"alert": {"alertType": "PodCrash", "data": "x"}}
        await desk.put("Investigation", "copy", spec, annotations=annotations)
        assert "create a new one" in await desk.reason("Investigation", "copy", "Finished", "True", "Restored")
        assert await desk.reads.unfinished() == set()


async def test_investigation_whose_record_is_gone_says_so_unless_it_had_finished(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        for name in ("done", "open"):
            await desk.put("Investigation", name, {"alert": {"alertType": "PodCrash", "data": "x"}})
            await desk.reason("Investigation", name, "Accepted", "True", "Planned")
            if name == "done":
                await desk.finish(await desk.claim())
                await desk.reason("Investigation", name, "Finished", "True", "Succeeded")
    await desk.pool.execute("TRUNCATE investigation CASCADE")
    async with desk.controller():
        await desk.reason("Investigation", "open", "Finished", "True", "RecordLost")
        assert (await desk.conditions("Investigation", "done"))["Succeeded"][0] == "True"


async def test_finished_objects_expire_and_the_record_stays(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.alert(ttlSecondsAfterFinished=0)
        found = await desk.queued()
        await desk.finish(await desk.claim())

        async def gone() -> bool:
            return await desk.kube.list("Alert", desk.namespace) == [] and await desk.investigations() == []

        await eventually(gone)
        assert (await desk.record(found)).state is State.COMPLETED


async def test_relist_finds_what_the_watch_missed(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf:
        def __init__(self, *_: object, **__: object) -> None: ...

        async def run(self) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr("tarsy.controllers.machinery.active.Watch", Deaf)
    async with desk.controller(relist_seconds=0.5):
        await desk.configure()
        await desk.alert()
        found = await desk.queued()
        name = found["metadata"]["name"]
        await desk.reason("Investigation", name, "Accepted", "True", "Planned")
        await desk.kube.patch("Investigation", desk.namespace, name, {"spec": {"desiredState": "Concluded"}})
        await desk.reason("Investigation", name, "Finished", "True", "ConcludedBeforeStart")
        await desk.kube.delete("Investigation", desk.namespace, name)
        await desk.kube.delete("Agent", desk.namespace, "one")
        await desk.reason("Chain", "one", "Ready", "False", "ReferencesInvalid")


async def test_relists_never_cancel_what_is_created_meanwhile(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller(relist_seconds=0.01):
        for number in range(30):
            await desk.put("Investigation", f"i-{number}", {"alert": {"alertType": "PodCrash", "data": "x"}})
        for number in range(30):
            await desk.reason("Investigation", f"i-{number}", "Accepted", "True", "Planned")
        states = await desk.pool.fetch("SELECT state, desired_state FROM investigation")
        assert {tuple(row) for row in states} == {("pending", "Running")}


async def test_the_default_chain_takes_an_alert_of_an_unknown_type_when_it_is_old_enough(desk: Desk) -> None:
    await desk.configure()
    await desk.put("InvestigationDefaults", "default", {"defaultChain": "one"})
    metrics = Metrics()
    async with desk.controller(default_chain_seconds=1.0, metrics=metrics):
        await desk.alert("claimed")
        await desk.queued("claimed")
        assert metrics.value(DEFAULTED) == 0
        await desk.alert(alertType="NobodyKnows")
        investigation = await desk.queued()
        assert investigation["spec"]["chainRef"] == {"name": "one"}
        record = await desk.record(investigation)
        assert (record.alert_type, record.chain) == ("NobodyKnows", "one")
        assert metrics.value(DEFAULTED) == 1


async def test_a_chain_that_claims_the_type_comes_before_the_default_chain(desk: Desk) -> None:
    await desk.configure()
    await desk.put("InvestigationDefaults", "default", {"defaultChain": "one"})
    async with desk.controller():
        await desk.alert(alertType="Later")
        message = await desk.reason("Alert", "crash", "Accepted", "False", "NoChain")
        assert message.endswith("otherwise the default chain one takes it 5 minutes after its creation")
        chain = (await desk.get("Chain", "one"))["spec"]
        await desk.put("Chain", "two", {**chain, "alertTypes": ["Later"]})
        investigation = await desk.queued()
        assert "chainRef" not in investigation["spec"]


@pytest.mark.parametrize("spec", [{"chainRef": {"name": "none"}}, {}], ids=["named", "nothing-there"])
async def test_the_default_chain_takes_no_alert_that_names_one_and_none_where_it_is_missing(
    desk: Desk, spec: dict[str, object]
) -> None:
    await desk.configure()
    await desk.put("InvestigationDefaults", "default", {"defaultChain": "one" if spec else "none"})
    async with desk.controller(default_chain_seconds=0.0):
        await desk.alert(alertType="NobodyKnows", **spec)
        assert "default chain" not in await desk.reason("Alert", "crash", "Accepted", "False", "NoChain")
        assert await desk.investigations() == []
