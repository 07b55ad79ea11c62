"""Ends a run in one statement, for its worker, for the sweep, and for a claim that cannot read its plan.

Everything that the run left open is closed too, and the timeline gets the reason when the run was ended from outside.
The lease is deleted in the same transaction; the caller holds the lease or the claim lock, so no step is written in
between.
"""

from uuid import UUID

import asyncpg

from tarsy.record.ids import event_id
from tarsy.record.run import RunOutcome, State
from tarsy.record.text import clean
from tarsy.record.timeline import Event, EventStatus, EventType
from tarsy.store import columns
from tarsy.store.queries import Statement
from tarsy.store.sealing import seal
from tarsy.store.text import clean_or_none


async def close_run(
    connection: asyncpg.Connection, statement: Statement, run: UUID, outcome: RunOutcome, **more: int
) -> bool:
    """Writes the outcome and closes stages, executions, interactions and events left open.

    Args:
        connection: in a transaction that holds the lease of the run, or the claim lock.
        statement: `close` of `runs.sql`; or `finish`, which takes the lease itself.
        run: the investigation.
        outcome: its outcome; rows that a completed run left open become cancelled.
        more: further parameters of the statement.

    Returns:
        False when the run had ended before; of `finish` also when the lease is not held, or a step ended just now.
    """
    left_open = State.CANCELLED if outcome.state is State.COMPLETED else outcome.state
    failure = outcome.failure
    message = "" if failure is None else clean(failure.message)
    values = {
        "state": outcome.state.value,
        "final_analysis": clean_or_none(outcome.final_analysis),
        "finding": None if outcome.finding is None else outcome.finding.model_dump(mode="json", by_alias=True),
        "executive_summary": clean_or_none(outcome.executive_summary),
        "executive_summary_error": clean_or_none(outcome.executive_summary_error),
        "failure_reason": None if failure is None else failure.reason,
        "failure_message": None if failure is None else message,
        "replay_report": None if outcome.replay is None else outcome.replay.model_dump(mode="json"),
    }
    event = event_id(run, "end") if outcome.cut else None
    sealed = seal.of_end(values)
    if event is not None:
        kind = EventType.NOTICE if outcome.state is State.CANCELLED else EventType.ERROR
        told = Event(event, kind, EventStatus.COMPLETED, message, {"reason": values["failure_reason"]})
        seal.add_events(sealed, columns.event_columns([told]))
    closed = await connection.fetchval(
        *statement(investigation=run, left_open=left_open.value, event=event, **values, **sealed.columns(), **more)
    )
    return closed is not None
