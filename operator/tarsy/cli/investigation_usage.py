"""`usage`: what the models used and cost, as far as the caller may see.

The HTTP API (`--server`) sums up the record. With a kubeconfig there is no such sum to be read, so the status of the
Investigations and ChatMessages that the caller may list is summed up: by chain, alert type or namespace, and of those
only that have not expired. Decision: the table says which of the two it is, because the sums differ.
"""

from collections.abc import Iterable, Mapping
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
from tarsy.http.views.usage import UsageItem, UsageView

By = Literal["chain", "alertType", "namespace"]
TITLES = {"chain": "Chain", "alertType": "Alert type", "namespace": "Namespace"}
_NAME = 80


class Sum(View):
    """What the runs under a name used."""

    name: str
    investigations: int = 0
    questions: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    thinking_tokens: int = 0
    cost_usd: float | None = Field(default=None, alias="costUSD", description="US dollars of what is known.")
    cost_complete: bool = Field(default=True, description="False: of some calls the cost is not known.")


class Sums(View):
    """What the objects that are still there say."""

    since: str
    by: By
    items: tuple[Sum, ...]


async def usage_of_objects(
    door: AggregatedClient, namespace: str | None, seconds: float, since: str, by: By, output: Output
) -> int:
    """Prints what the statuses of objects sum up to; returns the exit status.

    Raises:
        ApiUseError: they may not be listed.
    """
    investigations = await door.objects("Investigation", namespace)
    questions = await door.objects("ChatMessage", namespace)
    after = datetime.now(UTC) - timedelta(seconds=seconds)
    sums = Sums(since=since, by=by, items=tuple(summed(investigations, questions, by, after)))
    if for_programs(output):
        write_output(sums, output)
        return 0
    console = printer()
    if not sums.items:
        console.print(f"No investigation of the last {since} is there that used a model.")
        return 0
    made = Table(box=None, pad_edge=False, header_style="bold")
    made.add_column(TITLES[by], overflow="fold")
    for title in ("Investigations", "Questions", "Calls", "Tool calls", "Input", "Output", "Cost"):
        made.add_column(title, justify="right")
    for item in sums.items:
        counts = (item.investigations, item.questions, item.model_calls, item.tool_calls)
        tokens = (item.input_tokens, item.output_tokens)
        made.add_row(one_line(item.name, _NAME), *(f"{n:,}" for n in (*counts, *tokens)), _cost(item))
    console.print(made)
    console.print("Of the investigations that are still there; --server sums up the whole record.", style="dim")
    return 0


async def usage_of_record(door: DirectClient, namespace: str | None, days: int, by: str, output: Output) -> int:
    """Prints what the HTTP API sums up of the record; returns the exit status.

    Raises:
        ApiUseError: the investigations may not be listed there.
    """
    query = {"by": by, "days": str(days), **({"namespace": namespace} if namespace else {})}
    usage = as_model(UsageView, await door.read("/usage", READ_OBJECTS, query))
    if for_programs(output):
        write_output(usage, output)
        return 0
    console = printer()
    if not usage.items:
        console.print(f"No model was called in the last {days} days.")
        return 0
    made = Table(box=None, pad_edge=False, header_style="bold", show_footer=len(usage.items) > 1)
    made.add_column(TITLES.get(by, by.capitalize()), footer="total", overflow="fold")
    titles = ("Calls", "Input", "Cached", "Output", "Thinking", "Cost")
    for title, footer in zip(titles, _cells(usage.total), strict=True):
        made.add_column(title, footer=footer, justify="right")
    for item in usage.items:
        made.add_row(one_line(item.name, _NAME), *_cells(item))
    console.print(made)
    return 0


def summed(
    investigations: Iterable[Mapping[str, Any]], questions: Iterable[Mapping[str, Any]], by: By, after: datetime
) -> list[Sum]:
    """The sums under each name, the dearest first.

    Args:
        investigations: as the Kubernetes API has them.
        questions: the same of ChatMessages; each counts where its investigation does.
        by: what makes the name.
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


def _cost(item: Sum) -> str:
    if item.cost_usd is None:
        return "unknown"
    return f"${item.cost_usd:,.4f}" + ("" if item.cost_complete else " +")


def _cells(item: UsageItem) -> tuple[str, ...]:
    tokens = (item.input_tokens, item.cached_tokens, item.output_tokens, item.thinking_tokens)
    none, least = item.calls_of_unknown_usage == item.calls, "≥ " if item.calls_of_unknown_usage else ""
    cost = "unknown" if item.cost_usd is None else f"${item.cost_usd:,.4f}"
    if item.cost_usd is not None and item.calls_of_unknown_cost:
        cost += f" + {item.calls_of_unknown_cost:,} unknown"
    return (f"{item.calls:,}", *("unknown" if none else f"{least}{count:,}" for count in tokens), cost)
