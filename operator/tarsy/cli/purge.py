"""Deletes old records, changes of objects and transitions of conditions, or prints which (`tarsy purge`).

The operator does the same by its `--retention`; this command deletes more now, or only the records of one namespace. It
may be interrupted and repeated: records that were deleted stay deleted.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC
from typing import Any

from rich.table import Table

from tarsy.cli.console import new_console
from tarsy.store.database import open_pool
from tarsy.store.history.condition_transitions import ConditionTransitions
from tarsy.store.history.retention import HistoryRetention
from tarsy.store.migrate import require_current
from tarsy.store.retention import OldRecords, Retention


async def purge_records(
    database_url: str, seconds: float, older_than: str, namespaces: Sequence[str], *, dry_run: bool, output: str
) -> int:
    """Deletes, or only counts, records of runs and changes of objects older than `seconds`; returns the exit status.

    Args:
        database_url: the database.
        seconds: minimum time since the end of the run, or since the change was recorded.
        older_than: the same as the user wrote it.
        namespaces: only these; empty: all.
        dry_run: only count.
        output: text or json.

    Raises:
        StoreError: the record cannot be read or written, or its schema is not this version's.
    """
    pool = await open_pool(database_url, max_size=1, application="tarsy purge")
    try:
        await require_current(pool)
        retention = Retention(pool)
        old = await retention.survey(seconds, namespaces)
        deleted = {} if dry_run else await retention.purge(seconds, namespaces)
        history = HistoryRetention(pool)
        changes = await (history.survey if dry_run else history.purge)(seconds, namespaces)
        conditions = ConditionTransitions(pool)
        transitions = await (conditions.survey if dry_run else conditions.purge)(seconds, namespaces)
    finally:
        await pool.close()
    counts = {item.namespace: item.investigations for item in old} if dry_run else deleted
    if output == "json":
        sys.stdout.write(json.dumps(_plain(old, counts, (changes, transitions), older_than, dry_run), indent=2) + "\n")
        return 0
    console = new_console()
    if counts:
        console.print(purge_table(old, counts, dry_run))
    else:
        console.print(f"There is no record of a run that ended more than {older_than} ago.")
    told = "would be deleted" if dry_run else "deleted"
    for what, numbers in (("changes of objects", changes), ("transitions of conditions", transitions)):
        if numbers:
            console.print(f"Recorded {what}, {told}: {_by_namespace(numbers)}.", markup=False)
    return 0


def _by_namespace(numbers: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} in {namespace}" for namespace, number in sorted(numbers.items()))


def purge_table(old: Sequence[OldRecords], counts: Mapping[str, int], dry_run: bool) -> Table:
    """Renders the numbers of deleted records with their total.

    Args:
        old: the old records by namespace.
        counts: the number of deleted records by namespace.
        dry_run: nothing was deleted.
    """
    made = Table(box=None, pad_edge=False, header_style="bold", show_footer=len(counts) > 1)
    made.add_column("Namespace", footer="total", overflow="fold")
    made.add_column("Would be deleted" if dry_run else "Deleted", footer=f"{sum(counts.values()):,}", justify="right")
    made.add_column("Oldest run ended")
    made.add_column("Newest run ended")
    for item in old:
        ends = (f"{end.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z" for end in (item.oldest, item.newest))
        made.add_row(item.namespace, f"{counts.get(item.namespace, 0):,}", *ends)
    return made


def _plain(
    old: Sequence[OldRecords],
    counts: Mapping[str, int],
    beside: tuple[Mapping[str, int], Mapping[str, int]],
    older_than: str,
    dry_run: bool,
) -> dict[str, Any]:
    changes, transitions = beside
    return {
        "olderThan": older_than,
        "dryRun": dry_run,
        "investigations": sum(counts.values()),
        "objectChanges": dict(sorted(changes.items())),
        "conditionTransitions": dict(sorted(transitions.items())),
        "items": [
            {
                "namespace": item.namespace,
                "investigations": counts.get(item.namespace, 0),
                "oldest": item.oldest.astimezone(UTC).isoformat(),
                "newest": item.newest.astimezone(UTC).isoformat(),
            }
            for item in old
        ],
    }
