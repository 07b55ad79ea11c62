"""Checks an investigation that survived a crash: model and tool calls, the record, and both compared.

The world is what the scripted model was asked and what the tool server was called, as they themselves noted it.
"""

from collections import Counter
from collections.abc import Collection
from uuid import UUID

from e2e.tenant import Tenant
from tarsy.store.sealing.sealed_record import SealedRecord


def turns(tenant: Tenant) -> Counter[tuple[str, int]]:
    """How often the model was asked for each turn of each agent."""
    return Counter((str(r.agent), r.turn) for r in tenant.model.journal.requests)


async def repeated_steps(tenant: Tenant, identity: UUID) -> list[str]:
    """Model turns and tool calls done once more although the record had them as finished.

    A turn may be asked for once, and once more for each call of it that the record lists as interrupted; the same for
    a tool call, where the record's rows are its tries.
    """
    found = []
    rows = await tenant.model_calls(identity)
    interrupted: Counter[tuple[str, int]] = Counter()
    turn: Counter[UUID] = Counter()
    for row in rows:
        place = (row["display_name"], turn[row["execution"]])
        if row["state"] == "interrupted":
            interrupted[place] += 1
        elif row["state"] == "completed":
            turn[row["execution"]] += 1
    for place, times in turns(tenant).items():
        if times > 1 + interrupted[place]:
            found.append(f"turn {place} was asked {times} times, {interrupted[place]} were interrupted")
    completed = sum(row["state"] == "completed" for row in rows)
    if completed != len(turns(tenant)):
        found.append(f"{completed} completed model calls for {len(turns(tenant))} turns")
    calls = Counter((tenant.folder / "calls").read_text().splitlines())
    tries = Counter(f"{row['tool']} {row['idempotency_key']}" for row in await tenant.mcp_calls(identity))
    found += [f"tool call {call}: {n} calls, {tries[call]} tries" for call, n in calls.items() if n > tries[call]]
    return found


async def assert_record_is_whole(tenant: Tenant, identity: UUID, *, agents: Collection[str] | None = None) -> None:
    """One row a step, no open step, no doubled event, and every conversation (of `agents`: all) as it was sent."""
    rows = await tenant.model_calls(identity)
    assert {row["state"] for row in rows} <= {"completed", "interrupted"}
    for report in await SealedRecord(tenant.pool).check(identity):
        assert report.flaws == [], "the record differs from its sealed form"
    record = await tenant.record(identity)
    assert record.interrupted_model_calls == sum(row["state"] == "interrupted" for row in rows)
    assert record.model_calls == sum(row["state"] == "completed" for row in rows)
    calls = await tenant.mcp_calls(identity)
    assert {row["state"] for row in calls} <= {"completed", "interrupted"}
    ended = Counter((row["execution"], row["message_seq"], row["index"]) for row in calls if row["result"] is not None)
    assert set(ended.values()) <= {1}, "a tool call has one result"
    events = await tenant.reads.timeline(identity)
    assert [event.seq for event in events] == sorted({event.seq for event in events})
    assert all(event.status.value != "streaming" for event in events)
    told = Counter((event.agent_name, event.type, event.content) for event in events if event.status == "completed")
    assert {what: n for what, n in told.items() if n > 1} == {}, "an event is told twice"
    messages = await tenant.rows(
        "SELECT m.*, e.display_name FROM message m JOIN execution e ON e.id = m.execution "
        "JOIN stage s ON s.id = e.stage WHERE s.investigation = $1 ORDER BY m.execution, m.seq",
        identity,
    )
    for request in tenant.model.journal.requests:
        if agents is not None and request.agent not in agents:
            continue
        sent = [(m["role"], m.get("content") or "") for m in request.messages]
        stored = [(m["role"], m["content"]) for m in messages if m["display_name"] == request.agent]
        assert sent == stored[: len(sent)], f"request {request.number} is not what the record says"
