"""Tests that the outcome of a finding reaches the status of its Investigation, after its last publication."""

from integration.controllers.desk import Desk, eventually


async def test_an_outcome_is_written_to_a_status_that_was_published(desk: Desk) -> None:
    await desk.configure()
    async with desk.controller():
        await desk.alert("crash", incidentKey="k-1")
        await desk.queued("crash")
        await desk.finish(await desk.claim())
        await eventually(lambda: _published(desk))
        name = await desk.pool.fetchval("SELECT name FROM investigation")
        assert "outcome" not in (await desk.get("Investigation", name))["status"]
    await desk.pool.execute(
        "UPDATE incident SET resolved_at = now() - interval '25 hours'; UPDATE investigation SET finished_at ="
        " finished_at - interval '26 hours'; UPDATE outcome_look SET look_at = now()"
    )
    async with desk.controller():
        await eventually(lambda: _told(desk, name))
    assert await desk.pool.fetchval("SELECT count(*) FROM outcome_look") == 0


async def _published(desk: Desk) -> bool:
    return bool(await desk.pool.fetchval("SELECT published_digest IS NOT NULL FROM investigation"))


async def _told(desk: Desk, name: str) -> bool:
    return (await desk.get("Investigation", name))["status"].get("outcome") == "Settled"
