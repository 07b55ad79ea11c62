"""Tests what a person is shown of a call that waits, and what they must confirm."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from tarsy.cli.errors import CommandError
from tarsy.cli.requests.approvals import approvals_table, render_approval
from tarsy.cli.requests.deciding import Confirmation, confirm, demanded_name, describe_outcome
from tarsy.http.views.approvals import ApprovalEvidenceView, ApprovalView
from unit.http.test_decision_entry import END, entry, raw

NOW = END - timedelta(minutes=61)
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "shop", "name": "checkout", "uid": "1"}
DIFF = "--- now\n+++ then\n@@ spec @@\n-  replicas: 1\n+  replicas: 3"


def view(*decisions: dict[str, Any], spec: dict[str, Any] | None = None, **status: Any) -> ApprovalView:
    found = raw(*decisions, **status)
    found["spec"] |= spec or {}
    return ApprovalView.of(found)


def printed(what: Any) -> str:
    out = StringIO()
    Console(file=out, width=160, highlight=False, markup=False).print(what)
    return out.getvalue()


CITED = {
    "items": [
        {
            "id": "call_0",
            "call": "00000000-0000-0000-0000-000000000001",
            "stage": "look",
            "agent": "mender",
            "tool": "kubernetes.pods_list",
            "arguments": '{"namespace": "shop"}',
            "result": "checkout-1 CrashLoopBackOff\x1b[31m",
            "truncated": False,
            "integrity": "K",
        }
    ]
}


def test_call_is_shown_with_change_reason_and_cited_results() -> None:
    origins = [{"argument": "/replicas", "origins": ["Alert", "K"]}, {"argument": "/url", "origins": ["A"]}]
    origins[1]["destination"] = True  # type: ignore[assignment]
    spec = {"targets": [TARGET], "preview": {"kind": "Read", "diff": DIFF}, "provenance": origins}
    shown = printed(render_approval(view(spec=spec), ApprovalEvidenceView.model_validate(CITED), NOW))
    for words in (
        "deploy.scale",
        '{"replicas": 3}',
        "Deployment/checkout in shop",
        "+  replicas: 3",
        "/replicas from Alert, K",
        "/url (destination) from A",
        "It has too few replicas.",
        "kubernetes.pods_list  class K",
        "checkout-1 CrashLoopBackOff[31m",
        "started by rita",
        "0 of 1, 14:00Z (in 1 h 1 min)",
        "sha256:aaaa",
    ):
        assert words in shown, words
    assert "\x1b" not in shown


def test_undo_manager_and_note_are_shown() -> None:
    undo = {"tool": "scale", "arguments": '{"replicas": 1}'}
    managed = TARGET | {"managedBy": "Helm (app.kubernetes.io/managed-by)"}
    preview = {"kind": "Read", "diff": DIFF, "note": "Its dry run failed."}
    spec = {"undo": undo, "undoes": "earlier-1", "targets": [managed], "preview": preview}
    shown = printed(render_approval(view(spec=spec), "none", NOW))
    for words in ('deploy.scale {"replicas": 1}', "managed by Helm", "Its dry run failed.", "ToolApproval earlier-1"):
        assert words in shown, words
    assert "declares no undo" in printed(render_approval(view(), "none", NOW))
    gone = view(spec={"undo": {"note": "The object did not exist."}})
    assert "cannot be undone by a call: The object did not exist." in printed(render_approval(gone, "none", NOW))


def test_missing_preview_and_evidence_are_told() -> None:
    shown = printed(render_approval(view(), "you may not read them", NOW))
    assert "There is no preview" in shown and "cites call_0; not shown: you may not read them" in shown
    gone = printed(render_approval(view(), ApprovalEvidenceView(items=()), NOW))
    assert "no longer on record: call_0" in gone


def test_table_counts_approvals_and_the_time_that_is_left() -> None:
    two = view(entry("ben"), spec={"required": 2}, target="Deployment/checkout")
    lines = printed(approvals_table([two, view(phase="Executed")], NOW, with_namespace=True)).splitlines()
    assert lines[0].split("  ")[0] == "NAMESPACE" and "1 of 2" in lines[1] and "(in 1 h 1 min)" in lines[1]
    assert "Deployment/checkout" in lines[1] and "Executed" in lines[2]
    late = printed(approvals_table([view()], END, with_namespace=False))
    assert "expired" in late and "NAMESPACE" not in late


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch, typed: str) -> Iterator[None]:
    """A real terminal as standard input, at which somebody typed."""
    keyboard, end = os.openpty()
    os.write(keyboard, typed.encode())
    with os.fdopen(end, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield
    os.close(keyboard)


DESTRUCTIVE: dict[str, Any] = {
    "call": {"id": "c", "server": "deploy", "serverNamespace": "shop", "tool": "delete", "access": "destructive"}
}


@pytest.mark.parametrize(
    ("spec", "decision", "typed", "said"),
    [
        ({}, "Approve", "y\n", None),
        ({}, "Approve", "\n", "nothing is decided"),
        ({}, "Approve", "checkout\n", "nothing is decided"),
        (DESTRUCTIVE | {"targets": [TARGET]}, "Approve", "checkout\n", None),
        (DESTRUCTIVE | {"targets": [TARGET]}, "Approve", "y\n", "that is not the name of the target"),
        (DESTRUCTIVE, "Approve", "deploy.delete\n", None),
        (DESTRUCTIVE, "Reject", "yes\n", None),
    ],
)
async def test_terminal_is_asked(
    monkeypatch: pytest.MonkeyPatch, spec: dict[str, Any], decision: Any, typed: str, said: str | None
) -> None:
    with terminal(monkeypatch, typed):
        if said is None:
            await confirm(view(spec=spec), decision, Confirmation())
        else:
            with pytest.raises(CommandError, match=said):
                await confirm(view(spec=spec), decision, Confirmation())


@pytest.mark.parametrize(
    ("spec", "given", "said"),
    [
        ({}, Confirmation(), "give --yes if you have read"),
        ({}, Confirmation(yes=True), None),
        (DESTRUCTIVE | {"targets": [TARGET]}, Confirmation(yes=True), "give --yes --target checkout"),
        (DESTRUCTIVE | {"targets": [TARGET]}, Confirmation(True, "chekout"), "chekout is not the target"),
        (DESTRUCTIVE | {"targets": [TARGET]}, Confirmation(True, "checkout"), None),
    ],
)
async def test_without_a_terminal_options_must_say_it(
    monkeypatch: pytest.MonkeyPatch, spec: dict[str, Any], given: Confirmation, said: str | None
) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO("y\n"))
    if said is None:
        await confirm(view(spec=spec), "Approve", given)
    else:
        with pytest.raises(CommandError, match=said):
            await confirm(view(spec=spec), "Approve", given)


def test_outcome_of_a_decision_is_one_sentence() -> None:
    admitted = {"type": "ApprovalsEnforced", "status": "False", "reason": "ForgeryAdmitted", "message": "Nothing runs."}
    doubted = view(entry("anna"), conditions=[admitted])
    assert "does not count and nothing is called: Nothing runs." in describe_outcome(doubted, "Approve")
    assert "1 of 2 approvals" in describe_outcome(view(entry("anna"), spec={"required": 2}), "Approve")
    assert "has not taken it yet" in describe_outcome(view(entry("anna")), "Approve")
    done = view(entry("anna"), phase="Approved", outcome="Approved; the run continues.")
    assert describe_outcome(done, "Approve") == "is approved. Approved; the run continues."


def test_name_to_type_is_that_of_the_target_else_the_tool() -> None:
    assert demanded_name(view(target="Deployment/checkout")) == "checkout"
    assert demanded_name(view()) == "deploy.scale"


def test_times_are_those_of_utc() -> None:
    assert "14:00Z" in printed(approvals_table([view()], datetime(2026, 11, 24, 13, tzinfo=UTC), with_namespace=False))
