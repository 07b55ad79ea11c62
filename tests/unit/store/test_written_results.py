"""Results that the only writer of a run keeps: who is told them, and when they must be read from the record."""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from tarsy.record import ids
from tarsy.record.approvals.provenance import RESULTS_A_PAGE
from tarsy.record.boundaries import ToolCallResult, ToolCallStart
from tarsy.record.integrity import EvidenceMarks, Integrity
from tarsy.record.messages import Message, Role, ToolCall
from tarsy.record.run import ExecutionStart, LoopState, StageKind, StageStart
from tarsy.store.runs.written_results import WrittenResults

RUN = uuid4()
AGENT = ids.execution_id(ids.stage_id(RUN, 0), 0)


def begun(most: int = 1_000) -> WrittenResults:
    results = WrittenResults(most=most)
    begin(results, 0, 0)
    return results


def begin(results: WrittenResults, at: int, index: int, parent: UUID | None = None) -> UUID:
    stage = StageStart(ids.stage_id(RUN, at), at, f"stage-{at}", StageKind.INVESTIGATION, 1)
    agent = ExecutionStart(
        ids.execution_id(stage.id, index),
        stage.id,
        index,
        "agent",
        "agent",
        "react",
        "model",
        "scripted",
        parent=parent,
    )
    results.stage_begun(stage)
    results.execution_begun(agent)
    return agent.id


def start(of: UUID = AGENT, index: int = 0) -> ToolCallStart:
    return ToolCallStart(
        id=ids.tool_call_id(of, 2, index, 0),
        execution=of,
        message_seq=2,
        index=index,
        attempt=0,
        call=ToolCall("c1", "kubernetes.get", '{"kind": "Pod"}'),
        server="kubernetes",
        tool="get",
        idempotency_key=ids.idempotency_key(of, 2, index),
    )


def end(call: ToolCallStart, text: str = "a pod", marks: EvidenceMarks | None = None) -> ToolCallResult:
    message = Message(Role.TOOL, text)
    return ToolCallResult(call.id, call.execution, 3, message, text, False, 3, LoopState(), marks=marks)


def called(results: WrittenResults, call: ToolCallStart, text: str = "a pod") -> None:
    results.call_begun(call)
    results.call_ended(end(call, text))


def texts(results: WrittenResults, of: UUID = AGENT, known: Sequence[UUID] = ()) -> list[str] | None:
    found = results.told(of, known, sensitive=False)
    return None if found is None else [one.text for one in found]


def test_a_result_is_told_as_the_record_gives_it_back() -> None:
    results, call = begun(), replace(start(), server="", tool="g\x00et")
    results.call_begun(call)
    assert texts(results) == []
    results.call_ended(end(call, "a\x07 pod"))
    found = results.told(AGENT, (), sensitive=False)
    assert found is not None
    (one,) = found
    assert (one.id, one.tool, one.text, one.arguments) == (call.id, "get", "a pod", '{"kind": "Pod"}')
    assert (one.ref, one.marks, one.place) == (ids.call_ref(call.idempotency_key), EvidenceMarks(), (-1, 0, 0, 2, 0))
    assert texts(results, known=[call.id]) == []


def test_sub_agents_know_what_their_parent_knows_agents_beside_it_do_not_and_later_stages_do() -> None:
    results = begun()
    child, beside, later = begin(results, 0, 7, AGENT), begin(results, 0, 1), begin(results, 1, 0)
    called(results, start(), "of the agent")
    called(results, start(child), "of the child")
    called(results, start(later), "of the later one")
    both = {"of the agent", "of the child"}
    assert [set(texts(results, one) or ()) for one in (AGENT, child, beside)] == [both, both, set()]
    assert set(texts(results, later) or ()) == {*both, "of the later one"}


def test_results_come_in_pages_in_the_order_of_their_ids() -> None:
    results = begun()
    for index in range(RESULTS_A_PAGE + 1):
        called(results, start(index=index))
    first = results.told(AGENT, (), sensitive=False) or ()
    rest = results.told(AGENT, [one.id for one in first], sensitive=False) or ()
    assert (len(first), len(rest)) == (RESULTS_A_PAGE, 1)
    assert [one.id for one in (*first, *rest)] == sorted(start(index=i).id for i in range(RESULTS_A_PAGE + 1))


def test_only_sensitive_results_are_told_where_they_are_asked_for() -> None:
    results, plain, hidden = begun(), start(), start(index=1)
    marks = EvidenceMarks(Integrity.A, sensitive=True)
    called(results, plain)
    results.call_begun(hidden)
    results.call_ended(end(hidden, marks=marks))
    found = results.told(AGENT, (), sensitive=True)
    assert found is not None and [(one.id, one.marks) for one in found] == [(hidden.id, marks)]


def test_calls_that_were_not_made_or_were_cut_have_no_result() -> None:
    results = begun()
    called(results, replace(start(), made=False))
    cut = start(index=1)
    results.call_begun(cut)
    results.call_ended(replace(end(cut), interrupted=True))
    assert texts(results) == []


@pytest.mark.parametrize(("size", "kept"), [(9, True), (10, True), (11, False)])
def test_more_text_than_is_kept_must_be_read(size: int, kept: bool) -> None:
    results = begun(most=10)
    called(results, start(), "x" * size)
    assert texts(results) == (["x" * size] if kept else None)


def test_results_are_read_where_the_record_may_have_others() -> None:
    of_another_writer, resumed, unsure, elsewhere = WrittenResults(complete=False), begun(), begun(), begun()
    begin(of_another_writer, 0, 0)
    called(of_another_writer, start())
    resumed.call_ended(end(start()))
    unsure.unknown()
    called(unsure, start())
    assert [texts(one) for one in (of_another_writer, resumed, unsure)] == [None, None, None]
    assert texts(elsewhere, uuid4()) is None
