"""Prints what the models used and cost (`usage`), from the HTTP API, the database, or the statuses of objects.

With a kubeconfig there is no sum of the record to read, so the statuses of the Investigations and ChatMessages that the
caller may list are summed up: by chain, alert type or namespace, and only of those that have not expired. Decision: the
table shows which of the two it is, because the sums differ. Unknown usage is never shown as zero.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any, Literal

from pydantic import Field
from rich.table import Table

from tarsy.cli.output import Output, for_programs, printer, write_output
from tarsy.client.aggregated import AggregatedClient
from tarsy.client.api import as_model
from tarsy.client.direct import DirectClient
from tarsy.client.plain_text import one_line
from tarsy.client.refusals import READ_OBJECTS
from tarsy.http.models import View
from tarsy.http.views.common import dollars
from tarsy.http.views.usage import UsageItem, UsageView, total
from tarsy.record.reading.usage_report import UsageBy

By = Literal["chain", "alertType", "namespace"]
_TITLES = {"alertType": "Alert type"}
_NAME = 80


class Sum(View):
    """Holds the usage of the runs under a name."""

    name: str
    investigations: int = 0
    questions: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cost_usd: float | None = Field(default=None, alias="costUSD", description="Known cost in US dollars.")
    cost_complete: bool = Field(default=True, description="False: the cost of some calls is not known.")


class Sums(View):
    """Holds the usage from the statuses of existing objects."""

    since: str
    by: By
    items: tuple[Sum, ...]


class RecordedUsage(View):
    """Usage of the record, summed up by the database."""

    since: str
    by: UsageBy
    items: tuple[UsageItem, ...]


async def usage_of_objects(
    client: AggregatedClient, namespace: str | None, seconds: float, since: str, by: By, output: Output
) -> int:
    """Prints the sums of the statuses of objects; returns the exit status.

    Args:
        client: the Kubernetes API.
        namespace: of the objects; None: all.
        seconds: objects created before are left out.
        since: the same as the user wrote it.
        by: the field to group by.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: the objects may not be listed.
    """
    investigations = await client.objects("Investigation", namespace)
    questions = await client.objects("ChatMessage", namespace)
    after = datetime.now(UTC) - timedelta(seconds=seconds)
    sums = Sums(since=since, by=by, items=tuple(summed(investigations, questions, by, after)))
    if for_programs(output):
        write_output(sums, output)
        return 0
    console = printer()
    if not sums.items:
        console.print(f"No investigation of the last {since} that used a model exists.")
        return 0
    made = Table(box=None, pad_edge=False, header_style="bold")
    made.add_column(group_title(by), overflow="fold")
    for title in ("Investigations", "Questions", "Calls", "Tool calls", "Input", "Output", "Cost"):
        made.add_column(title, justify="right")
    for item in sums.items:
        counts = (item.investigations, item.questions, item.model_calls, item.tool_calls)
        tokens = (item.input_tokens, item.output_tokens)
        made.add_row(one_line(item.name, _NAME), *(f"{n:,}" for n in (*counts, *tokens)), _sum_cost(item))
    console.print(made)
    console.print("Sum of the investigations that still exist; --server sums up the whole record.", style="dim")
    return 0


async def usage_of_record(client: DirectClient, namespace: str | None, days: int, by: str, output: Output) -> int:
    """Prints the sums of the record that the HTTP API returns; returns the exit status.

    Args:
        client: the HTTP API.
        namespace: of the investigations; None: all.
        days: days back from now.
        by: the field to group by.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: the investigations may not be listed.
    """
    query = {"by": by, "days": str(days), **({"namespace": namespace} if namespace else {})}
    usage = as_model(UsageView, await client.read("/usage", READ_OBJECTS, query))
    return _show(usage, usage.items, usage.total, f"{days} days", output)


async def usage_of_database(database_url: str, seconds: float, since: str, by: UsageBy, output: Output) -> int:
    """Prints the sums of the record in the database; returns the exit status.

    Args:
        database_url: the database.
        seconds: calls before are left out.
        since: the same as the user wrote it.
        by: the field to group by.
        output: for people, or the format for programs.

    Raises:
        StoreError: the record cannot be read.
    """
    from tarsy.store.database import open_pool
    from tarsy.store.reading.reads import Reads

    pool = await open_pool(database_url, max_size=1, application="tarsy usage")
    try:
        sums = await Reads(pool).usage(seconds, by)
    finally:
        await pool.close()
    items = tuple(UsageItem.of(item) for item in sums)
    return _show(RecordedUsage(since=since, by=by, items=items), items, UsageItem.of(total(sums)), since, output)


def usage_table(items: Sequence[UsageItem], total: UsageItem, by: str) -> Table:
    """Renders sums of the record.

    Args:
        items: one for each group.
        total: of all groups; shown below two or more.
        by: the field that they are grouped by.
    """
    made = Table(box=None, pad_edge=False, header_style="bold", show_footer=len(items) > 1)
    made.add_column(group_title(by), footer="total", overflow="fold")
    titles = ("Calls", "Input", "Cached", "Output", "Thinking", "Cost")
    for title, footer in zip(titles, _cells(total), strict=True):
        made.add_column(title, footer=footer, justify="right")
    for item in items:
        made.add_row(one_line(item.name, _NAME), *_cells(item))
    return made


def cost_text(item: UsageItem) -> str:
    """Returns the known cost, and the number of calls of unknown cost."""
    if item.cost_usd is None:
        return "unknown"
    known = f"${item.cost_usd:,.4f}"
    return f"{known} + {item.calls_of_unknown_cost:,} unknown" if item.calls_of_unknown_cost else known


def summed(
    investigations: Iterable[Mapping[str, Any]], questions: Iterable[Mapping[str, Any]], by: By, after: datetime
) -> list[Sum]:
    """Sums up usage by group, the most expensive first.

    Args:
        investigations: manifests of Investigations.
        questions: manifests of ChatMessages; each counts where its investigation does.
        by: the field to group by.
        after: objects created before are left out.
    """
    names: dict[tuple[str, str], str] = {}
    found: dict[str, dict[str, Any]] = {}
    for obj in investigations:
        meta, status = obj["metadata"], obj.get("status") or {}
        names[meta["namespace"], meta["name"]] = name = _name(meta, status, by)
        _add(found, name, "investigations", obj, after)
    for obj in questions:
        meta, about = obj["metadata"], obj.get("spec", {}).get("investigationRef", {}).get("name", "")
        _add(found, names.get((meta["namespace"], about), "(unknown)"), "questions", obj, after)
    sums = [Sum(name=name, **{**values, "cost_usd": dollars(values["cost_usd"])}) for name, values in found.items()]
    return sorted(sums, key=lambda one: (-(one.cost_usd or 0), -one.input_tokens, one.name))


def _add(found: dict[str, dict[str, Any]], name: str, what: str, obj: Mapping[str, Any], after: datetime) -> None:
    usage = (obj.get("status") or {}).get("usage")
    created = str(obj["metadata"].get("creationTimestamp", ""))
    if not usage or (created and datetime.fromisoformat(created) < after):
        return
    sums = found.setdefault(name, {"cost_usd": None, "cost_complete": True})
    sums[what] = sums.get(what, 0) + 1
    for field, key in (
        ("model_calls", "modelCalls"),
        ("tool_calls", "toolCalls"),
        ("input_tokens", "inputTokens"),
        ("output_tokens", "outputTokens"),
        ("thinking_tokens", "thinkingTokens"),
    ):
        sums[field] = sums.get(field, 0) + int(usage.get(key) or 0)
    cost = str(usage.get("costUSD") or "")
    try:
        sums["cost_usd"] = (sums["cost_usd"] or Decimal(0)) + Decimal(cost.rstrip("+"))
    except InvalidOperation:
        cost = "+" if usage.get("modelCalls") else ""
    sums["cost_complete"] = sums["cost_complete"] and not cost.endswith("+")


def _name(meta: Mapping[str, Any], status: Mapping[str, Any], by: By) -> str:
    match by:
        case "namespace":
            return str(meta["namespace"])
        case "alertType":
            return str(status.get("alertType") or "(unknown)")
        case "chain":
            return f"{status.get('chainNamespace', '')}/{status['chain']}" if status.get("chain") else "(unknown)"


def _show(
    document: RecordedUsage | UsageView, items: Sequence[UsageItem], total: UsageItem, since: str, output: Output
) -> int:
    console = printer()
    if for_programs(output):
        write_output(document, output)
    elif not items:
        console.print(f"No model was called in the last {since}.")
    else:
        console.print(usage_table(items, total, document.by))
    return 0


def group_title(by: str) -> str:
    """Returns the heading of a column of groups."""
    return _TITLES.get(by, by.capitalize())


def _sum_cost(item: Sum) -> str:
    if item.cost_usd is None:
        return "unknown"
    return f"${item.cost_usd:,.4f}" + ("" if item.cost_complete else " +")


def _cells(item: UsageItem) -> tuple[str, ...]:
    tokens = (item.input_tokens, item.cached_tokens, item.output_tokens, item.thinking_tokens)
    none, least = item.calls_of_unknown_usage == item.calls, "≥ " if item.calls_of_unknown_usage else ""
    shown = ["unknown" if none else f"{least}{count:,}" for count in tokens]
    if item.cached_tokens and item.input_tokens:
        shown[1] += f" ({item.cached_tokens / item.input_tokens:.0%})"
    return (f"{item.calls:,}", *shown, cost_text(item))
