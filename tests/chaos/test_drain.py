"""A worker that is asked to end hands its runs back at a boundary, and the next one goes on from there."""

import signal

import aiohttp
import pytest

from chaos.fleet import Fleet
from e2e.machine import LONG_LEASE
from e2e.tenant import ANSWER, Tenant, condition
from e2e.waiting import until
from tarsy_dev.apiserver.process import free_port

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.once("the API takes no part in what is shown"),
]
SCRIPT = f"""
agents:
  agent:
    - text: I look.
      gate: first
      calls: [{{name: tools.look, arguments: {{what: df}}}}]
    - text: I write.
      gate: second
      calls: [{{name: tools.write, arguments: {{what: note}}}}]
    - text: {ANSWER}
"""


async def is_told_to_end(port: int) -> None:
    """Waits until a worker, by what it says at its health port, has heard a signal."""

    async def stopping() -> bool:
        async with aiohttp.ClientSession() as http, http.get(f"http://127.0.0.1:{port}/readyz") as answer:
            return await answer.text() == "stopping"

    await until("the worker is told to end", stopping)


async def test_a_worker_that_drains_hands_its_run_back_at_a_boundary_and_nothing_is_repeated(
    bare_tenant: Tenant, fleet: Fleet
) -> None:
    tenant = bare_tenant
    model = await tenant.simple(SCRIPT)
    fleet.controller()
    port = free_port()
    first = fleet.worker(*LONG_LEASE, "--drain-seconds", "600", "--health-port", str(port))
    identity = await tenant.investigate()
    await tenant.asked(1)
    fleet.worker(*LONG_LEASE)
    first.signal(signal.SIGTERM)
    await is_told_to_end(port)
    model.open_gate("first")  # what the first had asked is answered, on record, and the last thing it does
    await first.gone()
    await tenant.asked(2)
    model.open_gate("second")
    inv = await tenant.finished()
    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert inv["status"]["attempt"] == 2
    assert [request.turn for request in model.journal.requests] == [0, 1, 2]
    assert (tenant.tool_calls("look"), tenant.tool_calls("write")) == (1, 1)
    assert (await tenant.record(identity)).interrupted_model_calls == 0


@pytest.mark.parametrize("hurried", [False, True], ids=["time-is-over", "second-signal"])
async def test_a_worker_does_not_drain_for_ever(bare_tenant: Tenant, fleet: Fleet, *, hurried: bool) -> None:
    tenant = bare_tenant
    model = await tenant.simple(SCRIPT)
    fleet.controller()
    port = free_port()
    first = fleet.worker(*LONG_LEASE, "--drain-seconds", "600" if hurried else "2", "--health-port", str(port))
    identity = await tenant.investigate()
    await tenant.asked(1)
    fleet.worker(*LONG_LEASE)
    first.signal(signal.SIGTERM)
    if hurried:
        await is_told_to_end(port)
        first.signal(signal.SIGTERM)
    await first.gone()
    await until("the other asks again", lambda: asked_again(tenant))
    for gate in ("first", "second"):
        model.open_gate(gate)
    inv = await tenant.finished()
    assert condition(inv, "Succeeded") == "True", inv["status"]
    record = await tenant.record(identity)
    assert (record.attempt, record.interrupted_model_calls) == (2, 1)
    assert (tenant.tool_calls("look"), tenant.tool_calls("write")) == (1, 1)


async def asked_again(tenant: Tenant) -> bool:
    return len(tenant.model.journal.requests) == 2
