"""Which calls `spec.preApproved` of a Chain approves."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tarsy.plan.approval_expressions import expression_errors, when_errors
from tarsy.plan.pre_approval import pre_approval
from unit.plan.builders import TEAM, chain, server

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ARGUMENTS = {"name": "checkout", "scale": 3}


def entry(**changed: Any) -> dict[str, Any]:
    found = {
        "server": "kube",
        "tool": "scale",
        "when": "arguments.name == 'checkout' && arguments.scale <= 5",
        "until": (NOW + timedelta(days=7)).isoformat(),
        "author": {"username": "anna", "groups": ["database"]},
    }
    return found | changed


def ask(*entries: dict[str, Any], arguments: dict[str, Any] | None = None, **call: Any) -> tuple[str, str]:
    """Author of the entry that approves, and why none does."""
    server_of = (call.get("namespace", TEAM), call.get("server", "kube"))
    of = chain(preApproved=list(entries))
    found = pre_approval(of, server_of, call.get("tool", "scale"), arguments or ARGUMENTS, NOW)
    return found.entry.author.username if found.entry is not None else "", found.doubt


def test_an_entry_whose_condition_holds_approves_as_its_author() -> None:
    assert ask(entry()) == ("anna", "")
    assert ask(entry(serverNamespace="library"), namespace="library") == ("anna", "")
    assert ask(entry(when="arguments.scale > 5"), entry(author={"username": "ben"})) == ("ben", "")


@pytest.mark.parametrize(
    "call",
    [{"tool": "delete"}, {"server": "database"}, {"namespace": "library"}, {"tool": "scale2"}],
    ids=["tool", "server", "namespace", "longer name"],
)
def test_other_calls_are_not_spoken_of(call: dict[str, Any]) -> None:
    assert ask(entry(), **call) == ("", "")
    assert ask() == ("", "")


@pytest.mark.parametrize(
    ("changed", "arguments", "why"),
    [
        ({}, {"name": "checkout", "scale": 6}, "condition does not hold"),
        ({}, {"name": "cart", "scale": 3}, "condition does not hold"),
        ({}, {"scale": 3}, "no value for these arguments"),
        ({"when": "arguments.name"}, ARGUMENTS, "condition does not hold"),
        ({"when": "1"}, ARGUMENTS, "condition does not hold"),
        ({"when": "other == 1"}, ARGUMENTS, "no value"),
        ({"when": "arguments.name =="}, ARGUMENTS, "no value"),
    ],
)
def test_a_condition_that_is_not_plainly_true_approves_nothing(
    changed: dict[str, Any], arguments: dict[str, Any], why: str
) -> None:
    author, doubt = ask(entry(**changed), arguments=arguments)
    assert author == "" and why in doubt and "spec.preApproved[0] of Chain team-a/pods" in doubt


@pytest.mark.parametrize(
    ("ahead", "counts"),
    [
        (timedelta(seconds=-1), False),
        (timedelta(), False),
        (timedelta(seconds=1), True),
        (timedelta(days=30), True),
        (timedelta(days=30, seconds=1), False),
    ],
)
def test_an_entry_counts_in_the_thirty_days_before_its_end(ahead: timedelta, counts: bool) -> None:
    author, doubt = ask(entry(until=(NOW + ahead).isoformat()))
    assert (author == "anna") is counts
    assert counts or "it ended at" in doubt or "more than 30 days ahead" in doubt


def test_expressions_that_cannot_be_read_are_told_by_field() -> None:
    (wrong,) = when_errors(chain(preApproved=[entry(), entry(when="before.a")]))
    assert "preApproved[1].when" in str(wrong) and "not a CEL expression over arguments" in str(wrong)
    targets = [
        {"tools": ["a"], "object": "arguments.x =="},
        {"tools": ["b"], "manifestArgument": "m", "change": "y"},
    ]
    wrong_ones = expression_errors(server(approval={"targets": targets}))
    assert [error.field for error in wrong_ones] == [
        "spec.approval.targets[0].object",
        "spec.approval.targets[1].change",
    ]
    assert expression_errors(server()) == [] and when_errors(chain()) == []
