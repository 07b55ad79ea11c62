"""Workers that stand still for longer than their lease, and then go on: zombies.

It is stopped in the middle of model calls, streams and tool calls, another worker takes over, and it is woken while
that one is at work; the answers it was waiting for lie ready for it. It may write no row, and begin nothing.
"""

import asyncio
import json
import signal
from collections import Counter
from collections.abc import AsyncIterator

import asyncpg
import pytest
import yaml

from chaos import writes
from chaos.exactness import assert_record_is_whole, turns
from chaos.fleet import Fleet
from e2e.machine import LONG_LEASE
from e2e.tenant import ANSWER, SUMMARY, Tenant, condition
from e2e.waiting import until

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.once("the API takes no part in what is shown"),
]

LOOK = [{"name": "tools.look", "arguments": {"what": "df"}}]
WAIT = [{"name": "tools.wait", "arguments": {"what": "door"}}]
LAST = {"text": json.loads(ANSWER), "gate": "last"}
WHERE = ("thinking", "streaming", "waiting")


def script(pace: int) -> str:
    """What each agent's model says; `pace` are milliseconds a word of the stream, which has thirty."""
    agents = {
        "thinking": [{"text": "I look.", "calls": LOOK, "gate": "first"}, LAST],
        "streaming": [{"text": "I speak slowly " * 10, "calls": LOOK, "per_token_ms": pace}, LAST],
        "waiting": [{"text": "I wait.", "calls": WAIT}, LAST],
    }
    return yaml.safe_dump({"agents": agents})


@pytest.fixture
async def record(bare_tenant: Tenant) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(bare_tenant.machine.postgres.dsn, server_settings={"search_path": "tarsy"})
    await writes.install(connection)
    try:
        yield connection
    finally:
        await writes.remove(connection)
        await connection.close()


async def test_a_worker_that_wakes_after_its_lease_writes_no_row_and_begins_nothing(
    bare_tenant: Tenant, fleet: Fleet, record: asyncpg.Connection, full: bool
) -> None:
    tenant = bare_tenant
    each, lease, pace = (10, 10.0, 1000) if full else (2, 8.0, 500)
    model = await tenant.use_model(script(pace))
    await tenant.use_tools(tools={"readOnly": ["look", "wait"]})
    for name in WHERE:
        await tenant.use_agent(name, "tools")
        await tenant.use_chain([name], name=name)
    fleet.controller()
    zombie = fleet.worker("--places", "100", "--lease-seconds", f"{lease:g}")
    runs = {
        f"{name}-{number}": await tenant.investigate(f"{name}-{number}", chain=name)
        for name in WHERE
        for number in range(each)
    }
    in_flight = {("thinking", 0): each, ("streaming", 0): each, ("waiting", 0): each}
    await until("all are in the middle of something", lambda: reached(tenant, in_flight, waits=each, streams=each))
    assert await writes.written(record, zombie.pid)

    zombie.signal(signal.SIGSTOP)
    other = fleet.worker("--places", "100", *LONG_LEASE)
    taken = Counter(in_flight) + Counter({("thinking", 0): each, ("streaming", 0): each})
    await until("another asks what that one never heard the answer to", lambda: reached(tenant, taken, waits=2 * each))
    model.open_gate("first")
    (tenant.folder / "gate").touch()
    asked = taken + Counter({(name, 1): each for name in WHERE})
    await until("the other has come to the last turn", lambda: reached(tenant, asked))

    woken = await record.fetchval("SELECT clock_timestamp()")
    zombie.signal(signal.SIGCONT)
    await asyncio.sleep(lease + 4)
    rows = await writes.written(record, zombie.pid, woken)
    begun = sum(turns(tenant).values()) - asked.total()
    calls = tenant.tool_calls("look") + tenant.tool_calls("wait") - 2 * each - 2 * each
    model.open_gate("last")
    for name, identity in runs.items():
        inv = await tenant.finished(name)
        assert condition(inv, "Succeeded") == "True", inv["status"]
        assert inv["status"]["attempt"] >= 2
        assert inv["status"]["finding"]["summary"] == SUMMARY
        await assert_record_is_whole(tenant, identity, agents=())
    print(
        f"\ninvestigations {len(runs)}, rows written by the zombie {len(rows)}, model calls it began {begun}, "
        f"tool calls it began {calls}; the other wrote {len(await writes.written(record, other.pid, woken))} rows"
    )
    assert (rows, begun, calls) == ([], 0, 0)
    assert zombie.alive, "it goes on as a new worker"


async def reached(
    tenant: Tenant, wanted: dict[tuple[str, int], int], *, waits: int | None = None, streams: int = 0
) -> bool:
    """Whether the model was asked for exactly these turns, and the tool to wait so often, and so many streams flow."""
    flowing = sum(r.agent == "streaming" and r.chunks > 1 for r in tenant.model.journal.requests)
    waited = waits is None or tenant.tool_calls("wait") == waits
    return turns(tenant) == wanted and waited and flowing >= streams
