"""Lists AlertSchedules (`kubectl tarsy schedules`)."""

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial

from rich.table import Table
from rich.text import Text

from tarsy.cli.output import Output, place_of_list, write_list
from tarsy.client.api import TarsyClient
from tarsy.client.plain_text import one_line
from tarsy.http.views.schedules import ScheduleView

_TITLES = ("NAME", "SCHEDULE", "TIME ZONE", "ALERT TYPE", "LAST", "NEXT", "STATE")


async def list_schedules(client: TarsyClient, namespace: str | None, output: Output) -> int:
    """Prints the schedules; returns the exit status.

    Args:
        client: the API.
        namespace: of the schedules; None: all.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: they may not be read.
    """
    found = await client.schedules(namespace)
    table = partial(schedule_table, with_namespace=namespace is None)
    write_list(found, output, table, f"No schedules in {place_of_list(namespace)}.")
    return 0


def schedule_table(schedules: Sequence[ScheduleView], *, with_namespace: bool) -> Table:
    """Returns the table of schedules for people.

    Args:
        schedules: the schedules.
        with_namespace: whether a column names the namespaces.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in (*(["NAMESPACE"] if with_namespace else []), *_TITLES):
        table.add_column(title, overflow="fold")
    for one in schedules:
        cells = [one.name, one.schedule, one.time_zone, one.alert_type, _shown(one.last), _shown(one.next), _state(one)]
        table.add_row(*(Text(one_line(cell, 300)) for cell in ([one.namespace] if with_namespace else []) + cells))
    return table


def _state(one: ScheduleView) -> str:
    """Says what is to be known about a schedule: why it is not ready, or why its latest time has no Alert."""
    for kind in ("Ready", "Fired"):
        found = next((item for item in one.conditions if item.type == kind), None)
        if found is not None and found.status == "False":
            return f"{found.reason}: {found.message}"
    if one.suspended:
        return "Suspended"
    if one.ready is None:
        return "not checked yet"
    return f"active: {', '.join(one.active)}" if one.active else "-"


def _shown(time: datetime | None) -> str:
    return "-" if time is None else f"{time.astimezone(UTC):%Y-%m-%d %H:%M}Z"
