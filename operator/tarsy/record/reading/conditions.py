"""Derives the conditions of a run from its record, for the status of its object and for the HTTP API.

A condition depends on the record alone. Writers of a status add the transition time and the observed generation.
"""

import re
from collections.abc import Iterator

from tarsy.record.run import InvestigationRecord, State
from tarsy.record.waiting import waiting_reason
from tarsy.record.words import phase_of
from tarsy.resources.meta import Condition, ConditionStatus
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.resources.v1alpha1.investigation_status import Phase

_NO_TOOL_CALLED = "No tool was called, although agents had tool servers: the finding rests on the alert alone."
_GOES_ON = "The investigation has not ended."


def phase(record: InvestigationRecord) -> Phase:
    """Returns the phase of the object."""
    told = phase_of(record.state, record.desired_state)
    return "Running" if told == "Parked" else told


def conditions(record: InvestigationRecord) -> Iterator[Condition]:
    """Yields the conditions of an accepted investigation."""
    outcome = record.outcome
    failure = outcome.failure if outcome else None
    yield made(ConditionType.ACCEPTED, "True", "Planned", f"Chain {record.chain} is resolved and frozen.")
    if not record.state.finished:
        goes_on: tuple[str, str] = (phase(record), _GOES_ON)
        if record.held_for is not None:
            goes_on = ("WaitingForQuota", record.held_for)
        if record.parked is not None:
            goes_on = (waiting_reason(record.parked.reason), record.parked.sentence)
        yield made(ConditionType.FINISHED, "False", *goes_on)
        changed = record.provider_changes[-1] if record.provider_changes else None
        reason, text = ("ProviderFallback", changed.message) if changed and not record.parked else goes_on
        yield made(ConditionType.SUCCEEDED, "Unknown", reason, text)
    else:
        reason = failure.reason if failure else phase(record)
        message = failure.message if failure else f"The investigation has ended: {phase(record)}."
        yield made(ConditionType.FINISHED, "True", reason, message)
        succeeded: ConditionStatus = "True" if record.state is State.COMPLETED else "False"
        yield made(ConditionType.SUCCEEDED, succeeded, reason, message)
    if flaws := list(_missing_evidence(record)):
        sentences = " ".join(sentence for _, sentence in flaws)
        yield made(ConditionType.EVIDENCE_DEGRADED, "True", flaws[0][0], sentences)
    else:
        yield made(ConditionType.EVIDENCE_DEGRADED, "False", "AllServersAvailable", "No tool server was missing.")
    if exceeded := record.budget_exceeded:
        yield made(ConditionType.BUDGET_EXCEEDED, "True", str(exceeded.limit), exceeded.message)
    else:
        text = "No limit of the run's budget was reached."
        yield made(ConditionType.BUDGET_EXCEEDED, "False", "WithinBudget", text)


def _missing_evidence(record: InvestigationRecord) -> Iterator[tuple[str, str]]:
    """Yields missing evidence as reason and sentence, the most serious first."""
    if record.evidence_missing:
        missing = ", ".join(record.evidence_missing)
        yield (
            "ToolServersMissing",
            f"Tool servers were missing: {missing}. Their data is not in the finding.",
        )
    if record.alert_cut:
        yield "AlertCut", f"The alert is cut: {record.alert_cut}."
    if record.outcome is not None and record.outcome.finding is not None and record.outcome.finding.no_tool_called:
        yield "NoToolCalled", _NO_TOOL_CALLED


def made(kind: ConditionType, status: ConditionStatus, reason: str, message: str) -> Condition:
    """Returns a condition without times.

    Args:
        kind: its type.
        status: True, False or Unknown.
        reason: for programs; characters that the API rejects are removed, so that they do not fail the whole status.
        message: for people.
    """
    word = re.sub(r"[^A-Za-z0-9_]", "", reason)[:64]
    return Condition(type=kind, status=status, reason=word if word[:1].isalpha() else "Unknown", message=message)
