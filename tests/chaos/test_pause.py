"""An operator that stands still for longer than its lease, and then goes on: a zombie."""

import os
import signal

import pytest

from chaos.exactness import assert_record_is_whole, repeated_steps
from e2e.forked import ForkedProcess
from e2e.tenant import ANSWER, Tenant, condition

pytestmark = pytest.mark.timeout(900)
FAST = ("--lease-seconds", "2")
SCRIPT = f"""
agents:
  agent:
    - text: I look.
      gate: first
      calls: [{{name: tools.look, arguments: {{what: df}}}}]
    - text: I write.
      calls: [{{name: tools.write, arguments: {{what: note}}}}]
    - text: {ANSWER}
"""


async def test_paused_operator_writes_nothing_once_another_has_taken_over(bare_tenant: Tenant) -> None:
    tenant = bare_tenant
    model = await tenant.simple(SCRIPT)
    first = await tenant.machine.operator(*FAST)
    identity = await tenant.investigate()
    await tenant.asked(1)
    second = tenant.machine.new_operator()
    try:
        os.kill(first.pid, signal.SIGSTOP)
        await tenant.asked(2)  # the other asks again what the paused one never heard the answer to
        model.open_gate("first")  # both get their answer; the paused one will find it when it wakes
        await tenant.asked(4)
        os.kill(first.pid, signal.SIGCONT)
        inv = await tenant.finished()
        assert condition(inv, "Succeeded") == "True", inv["status"]
        assert inv["status"]["attempt"] >= 2
        assert await repeated_steps(tenant, identity) == []
        assert (tenant.tool_calls("look"), tenant.tool_calls("write")) == (1, 1)
        await assert_record_is_whole(tenant, identity)
        await assert_useful(first, tenant)
    finally:
        os.kill(first.pid, signal.SIGCONT)
        await second.stop()


async def assert_useful(operator: ForkedProcess, tenant: Tenant) -> None:
    """The one that was paused has stopped its old run and can work again."""
    await tenant.use_model(f"agents: {{again: [{{text: {ANSWER}}}]}}")
    await tenant.use_agent("again")
    await tenant.use_chain(["again"], name="again")
    await tenant.investigate("again", chain="again")
    assert condition(await tenant.finished("again"), "Succeeded") == "True"
    os.kill(operator.pid, 0)
