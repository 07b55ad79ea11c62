"""Tests the projection of a record onto status and Events."""

import json
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from tarsy.controllers.runs.projection import news, project
from tarsy.record.approvals.acted import ExecutedCall, ModelWord, StageActed
from tarsy.record.approvals.git_change import ChangeForGit, ManagedObject
from tarsy.record.finding import Claim, Confidence, Finding
from tarsy.record.history import BudgetExceeded, BudgetLimit
from tarsy.record.run import (
    DesiredState,
    Failure,
    InvestigationRecord,
    ProviderChange,
    RunOutcome,
    StageKind,
    StageProgress,
    State,
)
from tarsy.record.usage import Usage
from tarsy.resources.meta import MAX_STATUS_BYTES, condition
from unit.controllers.builders import NOW, investigation, record, stage


def conditions(of: InvestigationRecord) -> dict[str, str]:
    return {item.type: item.status for item in project(of, investigation(), NOW).conditions}


def test_severity_of_the_alert_is_shown_and_stays_when_the_alert_is_gone() -> None:
    assert project(record(), investigation(), NOW).severity is None
    told = project(record(), investigation(), NOW, "Critical")
    assert told.severity == "Critical"
    assert project(record(State.COMPLETED), investigation(told.to_dict()), NOW).severity == "Critical"


def test_the_status_names_objects_to_change_in_git_once_and_not_how():
    objects = [ManagedObject(object=f"Deployment shop/{n}", managed_by="Helm (release shop)") for n in range(9)]
    changes = tuple(ChangeForGit.limited("k8s.scale", objects, f"+ replicas: {n}") for n in range(2))
    outcome = RunOutcome(State.COMPLETED, finding=Finding(summary="s", changes_for_git=changes))
    found = project(record(State.COMPLETED, outcome=outcome), investigation(), NOW)
    assert found.finding is not None and found.finding.change_in_git is not None
    assert [one.object for one in found.finding.change_in_git] == [f"Deployment shop/{n}" for n in range(4)]
    assert "replicas" not in found.model_dump_json()
    none = RunOutcome(State.COMPLETED, finding=Finding(summary="s"))
    without = project(record(State.COMPLETED, outcome=none), investigation(), NOW)
    assert without.finding is not None and without.finding.change_in_git is None


@pytest.mark.parametrize(
    ("word", "calls", "acted", "says", "contradicts"),
    [
        (ModelWord.YES, 1, "Yes", "Yes", False),
        (ModelWord.NO, 1, "Yes", "No", True),
        (ModelWord.YES, 0, "No", "Yes", True),
        (ModelWord.UNKNOWN, 0, "No", "Unknown", False),
    ],
)
def test_the_status_of_a_stage_says_what_it_did_and_what_its_model_says(
    word: ModelWord, calls: int, acted: str, says: str, contradicts: bool
) -> None:
    did = StageActed(word, (ExecutedCall("call_0123456789ab", "k8s.scale", "completed"),) * calls)
    stages = (
        StageProgress(0, "look", StageKind.INVESTIGATION, State.COMPLETED, 1, 1, NOW, NOW, None),
        StageProgress(1, "act", StageKind.ACTION, State.COMPLETED, 1, 1, NOW, NOW, None, did),
    )
    look, act = project(replace(record(State.COMPLETED), stages=stages), investigation(), NOW).stages
    assert (look.kind, look.acted, look.model_says_acted, look.message) == ("Investigation", None, None, None)
    assert (act.kind, act.acted, act.model_says_acted) == ("Action", acted, says)
    assert (act.message == did.contradiction) and (act.message is not None) is contradicts


@pytest.mark.parametrize(
    ("state", "phase", "finished", "succeeded"),
    [
        (State.PENDING, "Queued", "False", "Unknown"),
        (State.RUNNING, "Running", "False", "Unknown"),
        (State.COMPLETED, "Succeeded", "True", "True"),
        (State.FAILED, "Failed", "True", "False"),
        (State.CANCELLED, "Cancelled", "True", "False"),
        (State.TIMED_OUT, "TimedOut", "True", "False"),
    ],
)
def test_each_state_has_its_phase_and_all_conditions(state: State, phase: str, finished: str, succeeded: str) -> None:
    assert project(record(state), investigation(), NOW).phase == phase
    assert conditions(record(state)) == {
        "Accepted": "True",
        "Finished": finished,
        "Succeeded": succeeded,
        "EvidenceDegraded": "False",
        "BudgetExceeded": "False",
    }


def test_run_that_was_told_to_conclude_is_concluding() -> None:
    assert project(record(desired_state=DesiredState.CONCLUDED), investigation(), NOW).phase == "Concluding"


def test_failure_is_the_reason_of_finished_and_succeeded_and_the_last_error() -> None:
    status = project(record(State.FAILED), investigation(), NOW)
    for kind in ("Finished", "Succeeded"):
        item = condition(status.conditions, kind)
        assert item is not None
        assert (item.reason, item.message) == ("ModelRefused", "The model server answers 401.")
    assert status.last_error is not None and status.last_error.reason == "ModelRefused"


def test_missing_servers_degrade_the_evidence_and_are_named() -> None:
    status = project(record(State.COMPLETED, evidence_missing=("kube", "logs")), investigation(), NOW)
    item = condition(status.conditions, "EvidenceDegraded")
    assert item is not None and item.status == "True" and "kube, logs" in item.message


@pytest.mark.parametrize(("missing", "reason"), [((), "AlertCut"), (("kube",), "ToolServersMissing")])
def test_alert_that_was_cut_degrades_the_evidence(missing: tuple[str, ...], reason: str) -> None:
    what = record(State.COMPLETED, evidence_missing=missing, alert_cut="m is shown 5 of its 9 bytes")
    item = condition(project(what, investigation(), NOW).conditions, "EvidenceDegraded")
    assert item is not None and (item.status, item.reason) == ("True", reason)
    assert "The alert is cut: m is shown 5 of its 9 bytes." in item.message


@pytest.mark.parametrize("limit", BudgetLimit)
def test_reached_budget_is_a_condition_with_the_limit_as_reason_and_one_event(limit: BudgetLimit) -> None:
    what = record(budget_exceeded=BudgetExceeded(limit, "The run's budget of 5 is reached: 5 are spent."))
    status = project(what, investigation(), NOW)

    item = condition(status.conditions, "BudgetExceeded")

    assert item is not None and (item.status, item.reason) == ("True", limit.value)
    assert item.message == "The run's budget of 5 is reached: 5 are spent."
    assert ("Warning", "BudgetExceeded") in told(what)
    assert ("Warning", "BudgetExceeded") not in told(what, status.to_dict())


@pytest.mark.parametrize(
    ("known", "complete", "shown"),
    [
        (None, False, None),
        (Decimal(0), True, "0.0000"),
        (Decimal("0.12345"), True, "0.1234"),
        (Decimal(3), False, "3.0000+"),
    ],
)
def test_cost_is_shown_as_far_as_it_is_known(known: Decimal | None, complete: bool, shown: str | None) -> None:
    status = project(record(cost_usd=known, cost_complete=complete), investigation(), NOW)

    assert status.usage is not None and status.usage.cost_usd == shown
    assert status.to_dict()["usage"].get("costUSD") == shown


@pytest.mark.parametrize(
    ("supported", "shown"),
    [((), {}), ((False,), {"claims": 1, "supportedClaims": 0}), ((True, False), {"claims": 2, "supportedClaims": 1})],
)
def test_a_finding_says_how_many_of_its_claims_are_supported(
    supported: tuple[bool, ...], shown: dict[str, int]
) -> None:
    claims = tuple(Claim(text="it broke", supported=holds) for holds in supported)
    outcome = RunOutcome(State.COMPLETED, finding=Finding(summary="s", claims=claims))

    status = project(record(State.COMPLETED, outcome=outcome), investigation(), NOW)

    assert status.to_dict()["finding"] == {"summary": "s", "confidence": "Inconclusive"} | shown


def test_failed_executive_summary_is_told_but_the_run_succeeded() -> None:
    outcome = RunOutcome(State.COMPLETED, executive_summary_error="The model server did not answer.")
    status = project(record(State.COMPLETED, outcome=outcome), investigation(), NOW)
    assert status.phase == "Succeeded"
    assert status.last_error is not None and status.last_error.reason == "ExecutiveSummaryFailed"


def test_progress_counts_finished_stages_and_names_the_one_that_runs() -> None:
    stages = (stage(0, State.COMPLETED), stage(1, State.RUNNING))
    status = project(record(stages=stages), investigation(), NOW)
    assert (status.progress, status.current_stage) == ("1/3", "stage-1")


def test_times_of_transition_stay_while_a_condition_stays_and_the_rest_is_made_anew() -> None:
    first = project(record(), investigation(), NOW)
    later = NOW + timedelta(minutes=5)
    second = project(record(), investigation(first.to_dict()), later)
    assert second == first
    third = project(record(State.COMPLETED), investigation(second.to_dict()), later)
    by_type = {item.type: item.last_transition_time for item in third.conditions}
    assert by_type["Accepted"] == NOW and by_type["Finished"] == later


def test_projection_changes_nothing_it_is_given() -> None:
    obj, what = investigation({"phase": "Queued"}), record(stages=(stage(0, State.RUNNING),))
    before = obj.model_dump_json()
    assert project(what, obj, NOW) == project(what, obj, NOW)
    assert obj.model_dump_json() == before


@pytest.mark.parametrize("char", ["x", "<", '"', "漢", "\u2028", "\x00", "\n"], ids=ascii)
def test_worst_record_makes_a_status_below_the_limit_without_control_characters(char: str) -> None:
    failure = Failure("R" * 300, char * 100_000)
    stages = tuple(stage(n, State.FAILED, char * 300 + f"-{n}", failure=failure) for n in range(60))
    outcome = RunOutcome(
        State.FAILED,
        final_analysis=char * 1_000_000,
        finding=Finding(summary=char * 1024, confidence=Confidence.LOW),
        executive_summary=char * 100_000,
        failure=failure,
    )
    what = record(
        State.FAILED,
        stages=stages,
        outcome=outcome,
        evidence_missing=tuple(char * 1000 for _ in range(1000)),
        usage=Usage(input_tokens=2**60, output_tokens=2**60, thinking_tokens=2**60),
        model_calls=2**60,
        cost_usd=Decimal(10) ** 12,
        budget_exceeded=BudgetExceeded(BudgetLimit.TOKENS, char * 100_000),
        revision=2**60,
        alert_type="A" * 253,
        chain="c" * 253,
        chain_namespace="n" * 63,
        stages_planned=999,
        started_at=NOW - timedelta(days=9999),
    )
    document = json.dumps(project(what, investigation(), NOW).to_dict(), ensure_ascii=False)
    for special in "<>&\u2028\u2029":
        document = document.replace(special, f"\\u{ord(special):04x}")  # as the API server writes them
    assert len(document.encode()) < MAX_STATUS_BYTES
    assert "\\u0000" not in document


@pytest.mark.parametrize(
    "reason", ["", "not camel case", "model.timeout", "9Lives", "Zürich", "X" * 200], ids=lambda r: r[:12]
)
def test_reason_that_the_api_would_refuse_is_made_one_that_it_takes(reason: str) -> None:
    outcome = RunOutcome(State.FAILED, failure=Failure(reason, "why"))
    status = project(record(State.FAILED, outcome=outcome), investigation(), NOW)
    item = condition(status.conditions, "Finished")
    assert item is not None and item.reason and item.message == "why"


@pytest.mark.parametrize("name", ["Deep Dive", "a" * 63, "x" * 80 + "-synthesis", "über", "--", "a.b"])
def test_stage_has_a_name_that_the_api_takes(name: str) -> None:
    status = project(record(stages=(stage(0, State.RUNNING, name),)), investigation(), NOW)
    assert status.current_stage == status.stages[0].name != ""


def told(what: InvestigationRecord, before: Any = None) -> list[tuple[str, str]]:
    return [(kind, reason) for kind, reason, _ in news(what, investigation(before).status)]


def test_each_change_of_provider_is_one_event_and_the_last_one_the_reason_while_the_run_goes_on() -> None:
    one = ProviderChange(3, "RateLimited", "look/a: Provider first is given up.")
    two = ProviderChange(5, "ModelNotFound", "look/b: Provider first is given up.")
    what = record(provider_changes=(one, two))

    assert told(what) == [("Warning", "ProviderFallback")] * 2
    assert [text for _, _, text in news(what, investigation({"recordRevision": 3}).status)] == [two.message]
    assert told(what, {"recordRevision": 5}) == []
    items = project(what, investigation(), NOW).conditions
    assert {item.type: item.reason for item in items if item.status != "True"} == {
        "Finished": "Running",
        "Succeeded": "ProviderFallback",
        "EvidenceDegraded": "AllServersAvailable",
        "BudgetExceeded": "WithinBudget",
    }
    succeeded = condition(items, "Succeeded")
    assert succeeded is not None and succeeded.message == two.message
    ended = condition(
        project(record(State.COMPLETED, provider_changes=(one,)), investigation(), NOW).conditions, "Succeeded"
    )
    assert ended is not None and ended.reason == "Succeeded"


def test_acceptance_and_stages_are_no_events() -> None:
    failed = stage(0, State.FAILED, failure=Failure("AllAgentsFailed", "no"))
    what = record(stages=(failed, stage(1, State.COMPLETED, kind=StageKind.SYNTHESIS), stage(2, State.RUNNING)))
    assert told(what) == []


def test_resumed_run_is_told_once_for_each_attempt() -> None:
    what = record(attempt=2)
    assert told(what, {"attempt": 1}) == [("Warning", "Resumed")]
    assert told(what, {"attempt": 2}) == []


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (State.COMPLETED, ("Normal", "Succeeded")),
        (State.FAILED, ("Warning", "Failed")),
        (State.CANCELLED, ("Warning", "Cancelled")),
        (State.TIMED_OUT, ("Warning", "TimedOut")),
    ],
)
def test_end_is_told_once(state: State, event: tuple[str, str]) -> None:
    what = record(state)
    assert told(what) == [event]
    assert told(what, project(what, investigation(), NOW).to_dict()) == []


@pytest.mark.parametrize(
    ("missing", "uncalled", "reason"),
    [
        ((), False, "AllServersAvailable"),
        ((), True, "NoToolCalled"),
        (("kube",), False, "ToolServersMissing"),
        (("kube",), True, "ToolServersMissing"),
    ],
)
def test_a_run_that_called_no_tool_says_so_beside_its_success(
    missing: tuple[str, ...], uncalled: bool, reason: str
) -> None:
    outcome = RunOutcome(State.COMPLETED, finding=Finding(summary="s", no_tool_called=uncalled))
    status = project(record(State.COMPLETED, outcome=outcome, evidence_missing=missing), investigation(), NOW)

    item, succeeded = (condition(status.conditions, kind) for kind in ("EvidenceDegraded", "Succeeded"))

    assert item is not None and item.reason == reason
    assert ("No tool was called" in item.message) == uncalled
    assert succeeded is not None and succeeded.status == "True"
