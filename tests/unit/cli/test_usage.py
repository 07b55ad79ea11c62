"""How `tarsy usage` says what is known and what is not."""

from datetime import UTC, datetime
from decimal import Decimal
from io import StringIO
from zoneinfo import ZoneInfo

import pytest
from rich.console import Console

from tarsy.cli.reports.daily_usage import daily_table, local_zone
from tarsy.cli.reports.usage import cost_text, usage_table
from tarsy.http.views.usage import DailyUsageView, UsageItem
from tarsy.http.views.usage import total as total_of
from tarsy.record.reading.usage_report import DailyUsage, UsageSum, calendar_days


def used(name: str = "gpt-5", cost: str | None = "0.5", **changes: int) -> UsageSum:
    counts = {
        "investigations": 1,
        "findings": 1,
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


def test_the_table_of_days_has_the_cost_of_a_finding_where_it_is_known() -> None:
    groups = (used("shop/disk", findings=2), used("shop/none", findings=0), used("shop/free", None))
    report = DailyUsage(groups, 0, {}, used("total", "1.0", findings=2, calls_of_unknown_cost=2))
    starts = calendar_days(datetime(2026, 3, 30, tzinfo=UTC), ZoneInfo("UTC"), 2)
    out = StringIO()
    Console(file=out, width=120).print(daily_table(DailyUsageView.of("chain", "UTC", starts, report)))
    header, *rows = (" ".join(line.split()) for line in out.getvalue().splitlines())
    assert header == "Chain Cost Cost a finding Findings Investigations Calls Input Output"
    assert rows == [
        "shop/disk $0.5000 $0.2500 2 1 2 1,200 30",
        "shop/none $0.5000 - 0 1 2 1,200 30",
        "shop/free unknown - 1 1 2 1,200 30",
        "total $1.0000 + 2 unknown ≥ $0.5000 2 1 2 1,200 30",
    ]


@pytest.mark.parametrize(
    ("set_to", "zone"),
    [("Asia/Tokyo", "Asia/Tokyo"), (":Asia/Tokyo", "Asia/Tokyo"), ("CET-1CEST", "UTC"), ("", "UTC"), (None, "UTC")],
)
def test_days_are_those_of_the_time_zone_of_the_environment(
    set_to: str | None, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TZ", raising=False)
    if set_to is not None:
        monkeypatch.setenv("TZ", set_to)
    assert local_zone() == zone
