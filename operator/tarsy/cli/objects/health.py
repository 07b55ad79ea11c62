"""Lists configuration objects with their health, and the changes of the conditions of one (`kubectl tarsy objects`)."""

from collections.abc import Sequence
from datetime import UTC, datetime

import typer
from rich.table import Table
from rich.text import Text

from tarsy.cli.output import Output, for_programs, print_lines, printer, write_output
from tarsy.cli.reports.queue import since_text
from tarsy.client.api import TarsyClient, read_as
from tarsy.client.plain_text import one_line
from tarsy.client.refusals import READ_OBJECT_HEALTH
from tarsy.http.views.health_over_time import ObjectHealthList, ObjectHealthView, TransitionList, TransitionView
from tarsy.resources.health import CONFIGURATION_KINDS

_PAGE = 200
_NAMES = {
    name.lower(): kind.KIND for kind in CONFIGURATION_KINDS for name in (kind.KIND, kind.PLURAL, *kind.SHORT_NAMES)
}


def chosen_object(which: str | None) -> tuple[str | None, str | None]:
    """Returns the kind and the name that an argument names, each None where it does not.

    Raises:
        BadParameter: there is no such kind.
    """
    if which is None:
        return None, None
    written, _, name = which.partition("/")
    kind = _NAMES.get(written.lower())
    if kind is None:
        kinds = ", ".join(one.KIND for one in CONFIGURATION_KINDS)
        raise typer.BadParameter(f"there is no kind {written!r}; the kinds are {kinds}", param_hint="KIND")
    return kind, name or None


async def list_objects(client: TarsyClient, namespace: str | None, kind: str | None, hours: int, output: Output) -> int:
    """Prints the objects; returns the exit status.

    Args:
        client: the API.
        namespace: of the objects; None: all.
        kind: of the objects; None: all.
        hours: period in which changes are counted.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: they may not be read.
    """
    path = "/objects" if namespace is None else f"/namespaces/{namespace}/objects"
    query = {"hours": str(hours), **({"kind": kind} if kind is not None else {})}
    page = found = await read_as(client, ObjectHealthList, path, READ_OBJECT_HEALTH, query)
    items = list(found.items)
    while page.next:
        page = await read_as(client, ObjectHealthList, path, READ_OBJECT_HEALTH, {**query, "continue": page.next})
        items += page.items
    if for_programs(output):
        write_output(found.model_copy(update={"items": tuple(items), "next": None}), output)
    elif not items:
        where = "any namespace" if namespace is None else f"namespace {namespace}"
        print_lines([f"No {kind or 'configuration object'} in {where}."])
    else:
        printer().print(objects_table(items, hours, datetime.now(UTC), with_namespace=namespace is None))
    return 0


async def list_transitions(
    client: TarsyClient, namespace: str | None, kind: str, name: str, output: Output, *, limit: int
) -> int:
    """Prints the changes of the conditions of an object, the latest first; returns the exit status.

    Args:
        client: the API.
        namespace: of the object; None: all.
        kind: of the object.
        name: of the object.
        output: for people, or the format for programs.
        limit: maximum number.

    Raises:
        ApiUseError: they may not be read.
    """
    path = "/transitions" if namespace is None else f"/namespaces/{namespace}/transitions"
    items: list[TransitionView] = []
    token: str | None = ""
    while token is not None and len(items) < limit:
        query = {"kind": kind, "name": name, "limit": str(min(_PAGE, limit - len(items)))}
        query |= {"continue": token} if token else {}
        page = await read_as(client, TransitionList, path, READ_OBJECT_HEALTH, query)
        items += page.items
        token = page.next
    if for_programs(output):
        write_output(TransitionList.model_validate({"items": items, "continue": token}), output)
    elif not items:
        where = "any namespace" if namespace is None else f"namespace {namespace}"
        print_lines([f"No change of conditions of {kind} {name} in {where} is recorded."])
    else:
        printer().print(transitions_table(items, datetime.now(UTC), with_namespace=namespace is None))
        if token is not None:
            printer().print("There are more; see --limit.", style="dim")
    return 0


def objects_table(items: Sequence[ObjectHealthView], hours: int, now: datetime, *, with_namespace: bool) -> Table:
    """Renders objects, those with problems first.

    Args:
        items: the objects.
        hours: period in which changes were counted.
        now: the current time.
        with_namespace: whether a column names the namespaces.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    titles = ["KIND", "NAME", "HEALTH", "SINCE", f"CHANGES {hours}H", "LAST PROBLEM"]
    for title in (["NAMESPACE"] if with_namespace else []) + titles:
        table.add_column(title, overflow="fold", no_wrap=title in ("KIND", "HEALTH", "SINCE"))
    for one in items:
        since = "-" if one.since is None else since_text(one.since, now)
        cells = [one.kind, one.name, one.health, since, str(one.transitions), last_problem(one, now)]
        table.add_row(*(Text(one_line(cell, 400)) for cell in ([one.namespace] if with_namespace else []) + cells))
    return table


def last_problem(one: ObjectHealthView, now: datetime) -> str:
    """Describes the problem that an object has, else the last one that is recorded; a dash without one.

    Args:
        one: the object.
        now: the current time.
    """
    if one.health in ("NotReady", "Degraded"):
        return f"{one.reason}: {one.message}"
    last = one.last_problem
    if last is None:
        return "-"
    address = f" ({last.address})" if last.address and last.address not in last.message else ""
    return f"{since_text(last.at, now)} ago, {last.type} {last.reason}: {last.message}{address}"


def transitions_table(items: Sequence[TransitionView], now: datetime, *, with_namespace: bool) -> Table:
    """Renders changes of conditions, the latest first.

    Args:
        items: the changes.
        now: the current time.
        with_namespace: whether a column names the namespaces.
    """
    table = Table(box=None, pad_edge=False, header_style="bold")
    for title in (["NAMESPACE"] if with_namespace else []) + [
        "TIME",
        "AGE",
        "CONDITION",
        "CHANGE",
        "REASON",
        "MESSAGE",
    ]:
        table.add_column(title, overflow="fold", no_wrap=title in ("TIME", "AGE", "CONDITION"))
    for one in items:
        change = f"{one.was or 'new'} -> {one.status}"
        change += f" ({one.omitted} before it not recorded)" if one.omitted else ""
        address = f" ({one.address})" if one.address and one.address not in one.message else ""
        cells = [f"{one.at.astimezone(UTC):%Y-%m-%d %H:%M:%SZ}", since_text(one.at, now), one.type, change, one.reason]
        cells.append(f"{one.message}{address}".strip() or "-")
        table.add_row(*(Text(one_line(cell, 400)) for cell in ([one.namespace] if with_namespace else []) + cells))
    return table
