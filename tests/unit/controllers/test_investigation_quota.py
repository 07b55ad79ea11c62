"""What the status of an InvestigationQuota tells, and what is news."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from tarsy.cli.objects.quotas import quota_table, use_bar
from tarsy.controllers.investigation_quota import quota_limits, quota_status
from tarsy.http.views.quotas import QuotaLimitView, QuotaView
from tarsy.record.quota import QuotaUsage
from tarsy.resources.meta import condition
from tarsy.resources.v1alpha1 import InvestigationQuota
from tarsy.resources.v1alpha1.common import ConditionType

NOW = datetime(2026, 11, 28, 4, tzinfo=UTC)
START, END = datetime(2026, 11, 1, tzinfo=UTC), datetime(2026, 12, 1, tzinfo=UTC)


def quota(**spec: Any) -> InvestigationQuota:
    hard = {"dollars": 200, "tokens": 1000, "investigations": 10}
    meta = {"name": "month", "namespace": "shop", "uid": "u", "generation": 3}
    body = {"period": "Month", "hard": hard} | spec
    return InvestigationQuota.model_validate({"apiVersion": "tarsy.dev/v1alpha1", "metadata": meta, "spec": body})


def usage(**values: Any) -> QuotaUsage:
    return QuotaUsage(generation=3, starts_at=START, ends_at=END, **values)


def test_work_that_can_wait_gets_half_by_default() -> None:
    assert quota_limits(quota()).shares == {"questions": 50, "replays": 50, "schedules": 50}
    assert quota_limits(quota(share={"replays": 10})).shares == {"questions": 50, "replays": 10, "schedules": 50}


def test_status_has_what_is_limited_in_one_line() -> None:
    used = usage(spent_usd=Decimal("1.2345678"), spent_tokens=700, reserved_usd=Decimal("0.5"), reserved_tokens=100)
    status = quota_status(quota(), used, NOW)
    assert status.spent is not None and status.reserved is not None and status.hard is not None
    assert status.spent.summary == "$1.234568, 700 tokens, 0 runs"
    assert status.reserved.summary == "$0.50, 100 tokens"
    assert status.hard.summary == "$200.00, 1,000 tokens, 10 runs"
    only_runs = quota_status(quota(hard={"investigations": 1}), usage(investigations=1), NOW)
    assert only_runs.spent is not None and only_runs.reserved is not None
    assert (only_runs.spent.summary, only_runs.reserved.summary) == ("1 run", "-")


@pytest.mark.parametrize(
    ("values", "warned"),
    [
        ({"spent_tokens": 799}, False),
        ({"spent_tokens": 800}, True),
        ({"spent_tokens": 801}, True),
        ({"spent_usd": Decimal("159.99")}, False),
        ({"spent_usd": Decimal(160)}, True),
        ({"investigations": 7}, False),
        ({"investigations": 8}, True),
        ({"reserved_tokens": 1000}, False),
    ],
)
def test_warning_comes_at_its_percentage_of_what_is_spent(values: dict[str, Any], warned: bool) -> None:
    found = condition(quota_status(quota(), usage(**values), NOW).conditions, ConditionType.WARNED)
    assert found is not None
    assert found.status == ("True" if warned else "False")


@pytest.mark.parametrize(
    ("on_exceeded", "told"),
    [
        ("Queue", "Investigations wait until 2026-12-01 00:00 UTC"),
        ("Reject", "Investigations are rejected until"),
        ("TriageOnly", "Investigations ask no model until"),
    ],
)
def test_exceeded_says_which_limit_and_what_happens(on_exceeded: str, told: str) -> None:
    made = quota(onExceeded=on_exceeded)
    found = condition(quota_status(made, usage(exceeded="dollars"), NOW).conditions, ConditionType.EXCEEDED)
    assert found is not None
    assert (found.status, found.reason) == ("True", "QuotaSpent")
    assert found.message.startswith(f"The limit of dollars is exhausted. {told}")


def test_plugin_draws_a_bar_for_each_limit() -> None:
    made = quota()
    status = quota_status(made, usage(spent_tokens=500, reserved_tokens=250, investigations=10), NOW)
    view = QuotaView.of(made.model_copy(update={"status": status}))
    assert [(one.name, one.hard, one.spent, one.reserved) for one in view.limits] == [
        ("dollars", 200.0, 0.0, 0.0),
        ("tokens", 1000.0, 500.0, 250.0),
        ("investigations", 10.0, 10.0, 0.0),
    ]
    assert use_bar(view.limits[1]) == "[##########+++++.....] 75%"
    assert use_bar(QuotaLimitView(name="tokens", hard=0, spent=0, reserved=0)) == f"[{'#' * 20}] 100%"
    table = quota_table([view], with_namespace=True)
    assert (len(table.columns), table.row_count) == (9, 3)
    assert QuotaView.of(made).limits == ()
