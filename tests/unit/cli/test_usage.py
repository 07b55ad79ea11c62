"""How `tarsy usage` says what is known and what is not."""

from decimal import Decimal
from io import StringIO

import pytest
from rich.console import Console

from tarsy.cli.usage import cost_text, usage_table
from tarsy.http.views.usage import UsageItem
from tarsy.http.views.usage import total as total_of
from tarsy.record.usage_report import UsageSum


def used(name: str = "gpt-5", cost: str | None = "0.5", **changes: int) -> UsageSum:
    counts = {
        "investigations": 1,
        "calls": 2,
        "interrupted": 0,
        "input_tokens": 1200,
        "output_tokens": 30,
        "thinking_tokens": 10,
        "cached_tokens": 400,
        "calls_of_unknown_usage": 0,
        "calls_of_unknown_cost": 0,
    }
    return UsageSum(name=name, cost_usd=None if cost is None else Decimal(cost), **(counts | changes))


@pytest.mark.parametrize(
    ("item", "text"),
    [
        (used(), "$0.5000"),
        (used(calls_of_unknown_cost=1), "$0.5000 + 1 unknown"),
        (used(cost=None, calls_of_unknown_cost=2), "unknown"),
        (used(cost="0"), "$0.0000"),
    ],
)
def test_an_unknown_cost_is_never_shown_as_zero(item: UsageSum, text: str) -> None:
    assert cost_text(UsageItem.of(item)) == text


def test_the_table_ends_with_the_total() -> None:
    out = StringIO()
    sums = [used(), used("local", None, calls_of_unknown_cost=2, calls_of_unknown_usage=1)]
    Console(file=out, width=120).print(
        usage_table([UsageItem.of(one) for one in sums], UsageItem.of(total_of(sums)), "model")
    )
    *_, local, total = out.getvalue().splitlines()
    assert local.split()[:3] == ["local", "2", "≥"]
    assert " ".join(total.split()) == "total 4 ≥ 2,400 ≥ 800 (33%) ≥ 60 ≥ 20 $0.5000 + 2 unknown"
