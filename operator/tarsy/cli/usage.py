"""`tarsy usage`: what the models used and cost, summed out of the record.

What is not known is never shown as zero: a sum with unknown parts says of how many calls it lacks the cost.
"""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from decimal import Decimal
from typing import Any, Literal

from rich.table import Table

from tarsy.cli.console import new_console
from tarsy.record.usage_report import UsageBy, UsageSum
from tarsy.store.database import open_pool
from tarsy.store.reads import Reads

_TITLES = {"model": "Model", "provider": "Provider", "chain": "Chain", "alertType": "Alert type"}


async def show_usage(
    database_url: str, seconds: float, since: str, by: UsageBy, *, output: Literal["text", "json"]
) -> int:
    """Prints the usage of the last `seconds`; returns the exit status.

    Raises:
        StoreError: the record cannot be read.
    """
    pool = await open_pool(database_url, max_size=1, application="tarsy usage")
    try:
        sums = await Reads(pool).usage(seconds, by)
    finally:
        await pool.close()
    if output == "json":
        items = [_plain(item) for item in sums]
        sys.stdout.write(json.dumps({"since": since, "by": by, "items": items}, indent=2) + "\n")
        return 0
    console = new_console()
    console.print(usage_table(sums, by) if sums else f"No model was called in the last {since}.")
    return 0


def usage_table(sums: Sequence[UsageSum], by: UsageBy) -> Table:
    """The sums for people, with their total."""
    made = Table(box=None, pad_edge=False, header_style="bold", show_footer=len(sums) > 1)
    total = _total(sums)
    made.add_column(_TITLES.get(by, "Namespace"), footer="total", overflow="fold")
    columns = ("Calls", "Input", "Cached", "Output", "Thinking", "Cost")
    for title, footer in zip(columns, _cells(total), strict=True):
        made.add_column(title, footer=footer, justify="right")
    for item in sums:
        made.add_row(item.name, *_cells(item))
    return made


def _cells(item: UsageSum) -> tuple[str, ...]:
    tokens = (item.input_tokens, item.cached_tokens, item.output_tokens, item.thinking_tokens)
    none = item.calls_of_unknown_usage == item.calls
    least = "≥ " if item.calls_of_unknown_usage else ""
    return (f"{item.calls:,}", *("unknown" if none else f"{least}{count:,}" for count in tokens), cost_text(item))


def cost_text(item: UsageSum) -> str:
    """The cost in words: unknown when nothing is known of it, and of how many calls it is not."""
    if item.cost_usd is None:
        return "unknown"
    dollars = f"${item.cost_usd:,.4f}"
    return f"{dollars} + {item.calls_of_unknown_cost:,} unknown" if item.calls_of_unknown_cost else dollars


def _total(sums: Sequence[UsageSum]) -> UsageSum:
    known = [item.cost_usd for item in sums if item.cost_usd is not None]
    counts = {
        name: sum(getattr(item, name) for item in sums)
        for name in UsageSum.__dataclass_fields__
        if name not in ("name", "cost_usd")
    }
    return UsageSum(name="total", cost_usd=sum(known, Decimal(0)) if known else None, **counts)


def _plain(item: UsageSum) -> dict[str, Any]:
    found = asdict(item)
    found["cost_usd"] = None if item.cost_usd is None else float(item.cost_usd)
    return {_camel(name): value for name, value in found.items()}


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join("USD" if part == "usd" else part.capitalize() for part in rest)
