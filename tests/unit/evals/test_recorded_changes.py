"""Stages of kind Changes of a replay: answered from the record, or not at all."""

import json

import pytest

from tarsy.evals.cassette import Cassette, ChangesRecord, KnownStatement
from tarsy.evals.recorded_changes import recorded_changes
from tarsy.record.judging.replay import KnownChanges, Rung
from unit.evals.cassettes import call, cassette

ASKED = {"namespace": "shop", "serviceAccountName": "agent", "reader": "alice", "windowSeconds": 3600}


def record(*, concluded: bool = True, tools: tuple[str, ...] = ("triage", "changes")) -> Cassette:
    made = cassette(*(call(tool, f"{tool} saw it", "tarsy", **ASKED) for tool in tools))
    statement = KnownStatement(text="It is gone.", tool="triage", quote="saw it")
    known = ChangesRecord(summary="It is gone.", confidence="High", statements=(statement,)) if concluded else None
    return Cassette(made.header.model_copy(update={"changes": known}), made.calls)


def asked(cassette_: Cassette, **changes: object) -> KnownChanges:
    return recorded_changes(cassette_)(json.dumps({**ASKED, **changes}))


def test_the_same_call_is_answered_exactly_with_the_recorded_claims() -> None:
    found = asked(record())
    assert {tool: (one.source.rung, one.result) for tool, one in found.answers.items()} == {
        "triage": (Rung.EXACT, "triage saw it"),
        "changes": (Rung.EXACT, "changes saw it"),
    }
    assert found.confidence == "High" and [claim.tool for claim in found.claims] == ["triage"]


def test_who_reads_makes_no_difference_because_a_replay_reads_nothing() -> None:
    found = asked(record(), serviceAccountName="other", reader="bob")
    assert {one.source.rung for one in found.answers.values()} == {Rung.NORMALISED}
    assert found.confidence == "High"


@pytest.mark.parametrize("change", [{"windowSeconds": 60}, {"namespace": "pay"}])
def test_another_question_is_not_answered(change: dict[str, object]) -> None:
    found = asked(record(), **change)
    assert all(one.source.rung is Rung.MISS and one.is_error for one in found.answers.values())
    assert found.confidence == "Inconclusive" and not found.claims


@pytest.mark.parametrize("kept", [record(tools=()), record(concluded=False), record(tools=("triage",))])
def test_half_a_record_concludes_nothing_of_its_own(kept: Cassette) -> None:
    found = asked(kept)
    if kept.calls:
        assert found.confidence == "Inconclusive" and not found.claims
    else:
        assert not found.answers and not found.claims, "the recorded stage made no call either"


def test_a_record_without_the_stage_has_no_evidence() -> None:
    found = asked(record(concluded=False, tools=()))
    assert {one.source.rung for one in found.answers.values()} == {Rung.MISS}
    assert found.summary.startswith("Nothing could be read")
