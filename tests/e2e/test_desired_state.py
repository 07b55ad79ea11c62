"""Cancels and concludes runs that wait or run, and lets them reach their time limits."""

import signal

import pytest

from e2e.tenant import ANSWER, SUMMARY, Tenant, condition
from e2e.waiting import until
from tarsy_dev.model.journal import RequestOutcome

SCRIPT = f"""
agents:
  agent:
    - text: I look.
      calls: [{{name: tools.look, arguments: {{what: df}}}}]
      gate: first
    - text: {ANSWER}
      gate: second
"""


async def test_running_one_is_cancelled_at_once(tenant: Tenant) -> None:
    model = await tenant.simple(SCRIPT)
    identity = await tenant.investigate()
    await tenant.asked()
    await tenant.want("run", "Cancelled")
    inv = await tenant.finished()
    assert inv["status"]["phase"] == "Cancelled"
    assert condition(inv, "Finished", "reason") == "Cancelled"
    assert condition(inv, "Succeeded") == "False"
    await model.journal.wait_for(lambda requests: requests[0].outcome is RequestOutcome.DISCONNECTED, 60)
    record = await tenant.record(identity)
    assert {stage.state.value for stage in record.stages} == {"cancelled"}
    assert record.interrupted_model_calls == 1


HANGS = """
agents:
  agent:
    by: order
    entries:
      - {text: The node of checkout is nearly full and so, hang: {after: 6}}
"""


async def spoken(tenant: Tenant) -> None:
    """Waits until the model has said what it says before it hangs."""

    async def said() -> bool:
        return any(request.chunks >= 6 for request in tenant.model.journal.requests)

    await until("the model speaks", said)


async def test_running_one_concludes_now_although_its_model_hangs(tenant: Tenant) -> None:
    model = await tenant.simple(f"{HANGS}      - text: {ANSWER}\n")
    identity = await tenant.investigate()
    await spoken(tenant)
    await tenant.want("run", "Concluded")
    inv = await tenant.finished()
    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert inv["status"]["finding"]["summary"] == SUMMARY
    assert [request.outcome for request in model.journal.requests] == [
        RequestOutcome.DISCONNECTED,
        RequestOutcome.FINISHED,
    ]
    assert model.journal.requests[-1].tools == [], "the conclusion is asked for without tools"
    record = await tenant.record(identity)
    assert (record.model_calls, record.interrupted_model_calls) == (1, 1)
    (cut, _) = await tenant.model_calls(identity)
    assert cut["state"] == "interrupted"
    events = await tenant.reads.timeline(identity)
    (partial,) = [e for e in events if e.status.value == "interrupted"]
    assert partial.content.startswith("The node of checkout is")
    assert partial.content.strip() in str(model.journal.requests[-1].messages[-2]["content"])


async def test_one_whose_model_hangs_for_good_ends_with_what_is_known(tenant: Tenant) -> None:
    entry = HANGS.partition("entries:")[2]
    await tenant.simple(f"{HANGS.rstrip()}{entry.rstrip()}{entry}")
    await tenant.use_chain(["agent"], summary=True, timeouts={"conclusionSeconds": 1})
    identity = await tenant.investigate()
    await spoken(tenant)
    await tenant.want("run", "Concluded")
    inv = await tenant.finished()
    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert inv["status"]["finding"]["confidence"] == "Inconclusive"
    assert "Stopped on request" in inv["status"]["finding"]["summary"]
    outcome = (await tenant.record(identity)).outcome
    assert (
        outcome is not None and outcome.executive_summary and "The node of checkout" in (outcome.final_analysis or "")
    )


async def test_one_whose_operator_dies_while_it_concludes_comes_to_the_same_end(bare_tenant: Tenant) -> None:
    tenant = bare_tenant
    await tenant.machine.stop_operator()
    operator = await tenant.machine.operator()
    operator.start()
    model = await tenant.simple(f"{HANGS}      - {{text: {ANSWER}, gate: conclusion}}\n      - text: {ANSWER}\n")
    identity = await tenant.investigate()
    await spoken(tenant)
    await tenant.want("run", "Concluded")
    await tenant.asked(2)
    operator.kill()
    assert await operator.wait(60) == -signal.SIGKILL
    await tenant.machine.lapse_of_all()
    operator.start()
    inv = await tenant.finished()
    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert inv["status"]["finding"]["summary"] == SUMMARY
    record = await tenant.record(identity)
    assert (record.attempt, record.model_calls, record.interrupted_model_calls) == (2, 1, 2)
    assert len(model.journal.requests) == 3
    assert "The node of checkout" in str(model.journal.requests[-1].messages[-2]["content"]), (
        "what was said is not lost"
    )


@pytest.mark.parametrize("desired", ["Cancelled", "Concluded"])
async def test_queued_one_ends_without_a_start(tenant: Tenant, desired: str) -> None:
    model = await tenant.simple(SCRIPT, maxConcurrent=1)
    await tenant.investigate("run")
    await tenant.asked()
    identity = await tenant.investigate("queued")
    await tenant.phase("Queued", "queued")
    await tenant.want("queued", desired)
    inv = await tenant.finished("queued")
    assert condition(inv, "Finished", "reason") == f"{desired}BeforeStart", inv["status"]
    assert (await tenant.record(identity)).attempt == 0
    model.open_gate("first")
    model.open_gate("second")
    assert condition(await tenant.finished("run"), "Succeeded") == "True"


@pytest.mark.parametrize(
    ("desired", "reason"), [("Cancelled", "CancelledBeforeStart"), ("Concluded", "ConcludedBeforeStart")]
)
async def test_one_that_was_never_accepted_ends_too(tenant: Tenant, desired: str, reason: str) -> None:
    await tenant.investigate(chain="missing")

    async def refused() -> bool:
        return condition(await tenant.get(), "Accepted") == "False"

    await until("the investigation is not accepted", refused)
    await tenant.want("run", desired)
    inv = await tenant.finished()
    assert condition(inv, "Finished", "reason") == reason, inv["status"]


async def test_deleted_one_stops_and_leaves_its_record(tenant: Tenant) -> None:
    model = await tenant.simple(SCRIPT)
    identity = await tenant.investigate()
    await tenant.asked()
    status, output = await tenant.kubectl("delete", "inv", "run", "--timeout=60s")
    assert status == 0, output
    await model.journal.wait_for(lambda requests: requests[0].outcome is RequestOutcome.DISCONNECTED, 60)

    async def over() -> bool:
        return (await tenant.record(identity)).state.value == "cancelled"

    await until("the run is over", over)
    assert len(model.journal.requests) == 1


async def test_investigation_timeout_ends_the_run(tenant: Tenant) -> None:
    await tenant.simple(SCRIPT, timeouts={"investigationSeconds": 2})
    identity = await tenant.investigate()
    inv = await tenant.finished()
    assert inv["status"]["phase"] == "TimedOut"
    assert condition(inv, "Finished", "reason") == "InvestigationTimeout"
    record = await tenant.record(identity)
    assert record.finished_at is not None
    assert record.started_at is not None
    assert (record.finished_at - record.started_at).total_seconds() >= 2


async def test_iteration_timeout_ends_the_agent(tenant: Tenant) -> None:
    await tenant.simple(SCRIPT, timeouts={"iterationSeconds": 1})
    identity = await tenant.investigate()
    inv = await tenant.finished()
    assert inv["status"]["phase"] == "TimedOut"
    assert inv["status"]["lastError"]["reason"] == "IterationTimeout", inv["status"]["lastError"]
    assert {c["state"] for c in await tenant.model_calls(identity)} <= {"interrupted", "failed"}
    events = await tenant.reads.timeline(identity)
    assert all(event.status.value != "streaming" for event in events)
