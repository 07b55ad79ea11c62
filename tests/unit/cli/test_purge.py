"""What `tarsy purge` says of what it did, or would do."""

from datetime import UTC, datetime
from io import StringIO

from rich.console import Console

from tarsy.cli.purge import purge_table
from tarsy.store.retention import OldRecords

OLD = [
    OldRecords(name, count, datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), datetime(2026, 2, 2, tzinfo=UTC))
    for name, count in (("team-a", 1200), ("team-b", 3))
]


def shown(dry_run: bool, *, old: list[OldRecords] = OLD) -> list[str]:
    out = StringIO()
    Console(file=out, width=120).print(purge_table(old, {item.namespace: item.investigations for item in old}, dry_run))
    return [" ".join(line.split()) for line in out.getvalue().splitlines()]


def test_deleted_records_are_counted_by_namespace_with_their_total() -> None:
    title, *lines = shown(dry_run=False)
    assert title == "Namespace Deleted Oldest run ended Newest run ended"
    assert lines == [
        "team-a 1,200 2026-01-02 03:04:05Z 2026-02-02 00:00:00Z",
        "team-b 3 2026-01-02 03:04:05Z 2026-02-02 00:00:00Z",
        "total 1,203",
    ]


def test_a_dry_run_never_says_that_something_was_deleted() -> None:
    title, line = shown(dry_run=True, old=OLD[:1])
    assert title.startswith("Namespace Would be deleted ")
    assert line.startswith("team-a 1,200 ")
