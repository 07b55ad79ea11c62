"""Limits of a provider, seen from its server: never more calls at once than it takes, whoever makes them."""

import asyncio
from uuid import UUID

from e2e.tenant import ANSWER, Tenant, condition
from e2e.waiting import until
from tarsy.record.timeline import EventStatus, TimelineEvent

RUNS = 6
HELD = f"agents: {{agent: {{repeat: last, entries: [{{text: {ANSWER}, gate: door}}]}}}}"


async def use_limited_model(tenant: Tenant, script: str, **limits: int) -> None:
    """A chain whose model takes so much at once."""
    await tenant.simple(script)
    await limit(tenant, **limits)


async def limit(tenant: Tenant, **limits: int) -> None:
    spec = (await tenant.get("model", "LLMProvider"))["spec"]
    await tenant.put("LLMProvider", "model", {**spec, "limits": limits})
    await tenant.noticed("LLMProvider", "model")


async def waits(tenant: Tenant, name: str) -> list[TimelineEvent]:
    """What the timeline of a run tells of its waits for the provider."""
    identity = (await tenant.get(name)).get("status", {}).get("record", {}).get("id")
    events = await tenant.reads.timeline(identity) if identity else []
    return [event for event in events if event.metadata.get("reason") == "ProviderLimit"]


async def waiting(tenant: Tenant, name: str) -> None:
    """Until a run says that it waits."""

    async def look() -> bool:
        return any(event.status is EventStatus.STREAMING for event in await waits(tenant, name))

    await until(f"{name} says that it waits", look, 60)


def most_at_once(tenant: Tenant) -> int:
    """The most requests that the model's server had at one time."""
    served = tenant.model.journal.requests
    changes = sorted([(s.received, 1) for s in served] + [(s.ended or s.received, -1) for s in served])
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


async def test_two_operators_share_a_limit_and_every_wait_is_told(bare_tenant: Tenant) -> None:
    tenant = bare_tenant
    await tenant.machine.operator()
    second = tenant.machine.new_operator()
    try:
        await use_limited_model(tenant, HELD, maxConcurrent=2)
        names = [f"run-{i}" for i in range(RUNS)]
        for name in names:
            await tenant.investigate(name)
        await tenant.asked(2)

        async def four_wait() -> bool:
            return len([True for name in names if await waits(tenant, name)]) == RUNS - 2

        await until("all others wait", four_wait, 120)
        tenant.model.open_gate("door")
        told = []
        for name in names:
            inv = await tenant.finished(name)
            assert condition(inv, "Succeeded") == "True", inv["status"]
            told += await waits(tenant, name)
    finally:
        await second.stop()
    assert len(tenant.model.journal.requests) == RUNS
    assert most_at_once(tenant) == 2
    assert told and all(event.status is EventStatus.COMPLETED for event in told)
    assert {(event.metadata["provider"], event.metadata["limit"]) for event in told} == {("model", "maxConcurrent")}
    assert all("its turn: provider model has spec.limits.maxConcurrent 2" in event.content for event in told)


async def test_a_limit_that_is_raised_lets_runs_go_on_that_wait_already(tenant: Tenant) -> None:
    await use_limited_model(tenant, HELD, maxConcurrent=1)
    await tenant.investigate("first")
    await tenant.asked(1)
    await tenant.investigate("next")
    await waiting(tenant, "next")
    assert len(tenant.model.journal.requests) == 1
    await limit(tenant, maxConcurrent=2)
    await tenant.asked(2)
    tenant.model.open_gate("door")
    for name in ("first", "next"):
        assert condition(await tenant.finished(name), "Succeeded") == "True"


async def test_a_run_that_waits_is_cancelled_at_once_and_its_timeline_says_so(tenant: Tenant) -> None:
    await use_limited_model(tenant, HELD, maxConcurrent=1)
    await tenant.investigate("first")
    await tenant.asked(1)
    await tenant.investigate("next")
    await waiting(tenant, "next")
    await tenant.want("next", "Cancelled")
    inv = await tenant.finished("next")
    assert condition(inv, "Finished", "reason") == "Cancelled"
    (wait,) = await waits(tenant, "next")
    assert wait.status is EventStatus.CANCELLED
    timeline = await tenant.reads.timeline(inv["status"]["record"]["id"])
    assert timeline[-1].content == "The investigation was cancelled."
    record = await tenant.record(UUID(inv["metadata"]["uid"]))
    assert (record.interrupted_model_calls, record.usage.complete, record.cost_complete) == (0, True, True)
    tenant.model.open_gate("door")
    assert condition(await tenant.finished("first"), "Succeeded") == "True"


async def test_a_killed_operator_keeps_nobody_waiting_for_longer_than_its_lease(bare_tenant: Tenant) -> None:
    tenant = bare_tenant
    first = await tenant.machine.operator()
    await use_limited_model(tenant, HELD, maxConcurrent=1)
    await tenant.investigate("first")
    await tenant.asked(1)
    first.kill()
    await first.wait(60)
    await tenant.machine.lapse_of_all()
    second = tenant.machine.new_operator()
    try:
        await tenant.investigate("next")
        await tenant.asked(2)  # of either run: the dead one's place is free
        tenant.model.open_gate("door")
        for name in ("first", "next"):
            assert condition(await tenant.finished(name), "Succeeded") == "True"
    finally:
        await second.stop()
        await asyncio.to_thread(first.kill)
        await tenant.machine.stop_operator()
    assert most_at_once(tenant) <= 2  # the dead one's call may have lasted until its server noticed
