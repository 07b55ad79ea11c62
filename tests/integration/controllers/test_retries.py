"""Tests that an investigation and its rerun name each other, and that a rerun may use another model."""

from uuid import UUID

from integration.controllers.desk import Desk, eventually
from integration.controllers.test_authors import ALICE, grant, refused


async def test_a_rerun_and_what_it_reruns_name_each_other_and_it_uses_the_other_model(desk: Desk) -> None:
    alert = {"alertType": "PodCrash", "data": "it crashed"}
    async with desk.controller():
        await desk.configure()
        await desk.put("LLMProvider", "other", {"type": "openai", "model": "m"})
        first = await desk.finished("first")
        of_first = {"name": "first", "uid": first["metadata"]["uid"]}
        await grant(desk, "chains", names=["one"])
        again = {"alert": alert, "retryOf": of_first, "llmProviderRef": {"name": "other"}, "author": ALICE}
        await desk.put("Investigation", "again", again)
        assert "may not use LLMProvider" in await refused(desk, "Investigation", "again")
        await grant(desk, "llmproviders", names=["other"])
        second = await desk.get("Investigation", "again")

        async def told() -> bool:
            retried_by = (await desk.get("Investigation", "first"))["status"].get("retriedBy")
            return bool(retried_by == {"name": "again", "uid": second["metadata"]["uid"]})

        await eventually(told)
        claimed = await desk.claim()
        assert {provider.ref.name for provider in claimed.plan.providers} == {"other"}
    reruns, rerun = await desk.record(second), await desk.record(first)
    assert reruns.retry_of is not None and reruns.retried_by is None
    assert (reruns.retry_of.name, reruns.retry_of.id) == ("first", UUID(of_first["uid"]))
    assert rerun.retried_by is not None and rerun.retry_of is None
    assert rerun.retried_by.name == "again"


async def test_a_rerun_of_what_is_not_on_record_says_nothing(desk: Desk) -> None:
    alert = {"alertType": "PodCrash", "data": "it crashed"}
    async with desk.controller():
        await desk.configure()
        await desk.finished("first")
        for name, of in (("stranger", {"name": "first", "uid": "not-its-uid"}), ("gone", {"name": "nobody"})):
            found = await desk.finished(name, alert=alert, retryOf=of)
            assert (await desk.record(found)).retry_of is None
        named = await desk.finished("named", alert=alert, retryOf={"name": "first"})
        rerun = (await desk.record(named)).retry_of
        assert rerun is not None and rerun.name == "first"
