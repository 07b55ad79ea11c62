"""Prints usage over whole days (`usage --days`), with the figures of the web UI, from the HTTP API or the database.

Decision: days begin in the time zone that the environment variable TZ names, as those of other commands do; without it,
or where it names no IANA zone, in UTC.
"""

import os
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from rich.table import Table

from tarsy.cli.output import Output, for_programs, printer, write_output
from tarsy.cli.reports.usage import cost_text, group_title
from tarsy.client.api import as_model
from tarsy.client.plain_text import one_line
from tarsy.client.refusals import READ_OBJECTS
from tarsy.http.views.usage import DailyUsageView, UsageItem
from tarsy.plan.cron_times import InvalidTimeZone, named_zone
from tarsy.record.reading.usage_report import UsageDimension, calendar_days

if TYPE_CHECKING:
    from tarsy.cli.commands.connection import AnyClient

_SERIES = 8
_GROUPS = 100
_NAME = 80


def local_zone() -> str:
    """Returns the name of the time zone of TZ, or UTC."""
    name = os.environ.get("TZ", "").removeprefix(":") or "UTC"
    try:
        named_zone(name)
    except InvalidTimeZone:
        return "UTC"
    return name


async def daily_usage_of_record(
    client: "AnyClient", namespace: str | None, days: int, by: UsageDimension, output: Output
) -> int:
    """Prints the usage that the HTTP API returns; returns the exit status.

    Args:
        client: the HTTP API.
        namespace: of the investigations; None: all.
        days: number of days, the last one today.
        by: the field to group by.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: the investigations may not be listed.
    """
    query = {"by": by, "days": str(days), "timeZone": local_zone()}
    query |= {"namespace": namespace} if namespace else {}
    return _show(as_model(DailyUsageView, await client.read("/usage/days", READ_OBJECTS, query)), output)


async def daily_usage_of_database(database_url: str, days: int, by: UsageDimension, output: Output) -> int:
    """Prints the usage of all namespaces in the database; returns the exit status.

    Args:
        database_url: the database.
        days: number of days, the last one today.
        by: the field to group by.
        output: for people, or the format for programs.

    Raises:
        StoreError: the record cannot be read.
    """
    from tarsy.store.database import open_pool
    from tarsy.store.reading.reports import Reports

    zone = local_zone()
    starts = calendar_days(datetime.now(UTC), named_zone(zone), days)
    pool = await open_pool(database_url, max_size=1, application="tarsy usage")
    try:
        found = await Reports(pool).daily_usage(by, starts, series=_SERIES, limit=_GROUPS)
    finally:
        await pool.close()
    return _show(DailyUsageView.of(by, zone, starts, found), output)


def daily_table(usage: DailyUsageView) -> Table:
    """Renders the groups of a report, with the total below them."""
    made = Table(box=None, pad_edge=False, header_style="bold", show_footer=True)
    made.add_column(group_title(usage.by), footer="total", overflow="fold")
    titles = ("Cost", "Cost a finding", "Findings", "Investigations", "Calls", "Input", "Output")
    for title, footer in zip(titles, _cells(usage.total), strict=True):
        made.add_column(title, footer=footer, justify="right")
    for item in usage.items:
        made.add_row(one_line(item.name, _NAME), *_cells(item))
    return made


def _show(usage: DailyUsageView, output: Output) -> int:
    if for_programs(output):
        write_output(usage, output)
        return 0
    console = printer()
    first, last = usage.days[0].date, usage.days[-1].date
    if not usage.items:
        console.print(f"No model was called from {first} to {last} ({usage.time_zone}).")
        return 0
    console.print(daily_table(usage))
    more = f"; {usage.omitted:,} more groups are in the total" if usage.omitted else ""
    console.print(f"{first} to {last}, days of {usage.time_zone}{more}.", style="dim")
    return 0


def _cells(item: UsageItem) -> tuple[str, ...]:
    known = item.cost_usd is not None and item.findings
    least = "≥ " if item.calls_of_unknown_cost else ""
    a_finding = f"{least}${(item.cost_usd or 0) / item.findings:,.4f}" if known else "-"
    counts = (item.findings, item.investigations, item.calls, item.input_tokens, item.output_tokens)
    return cost_text(item), a_finding, *(f"{count:,}" for count in counts)
