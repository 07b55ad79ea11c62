"""Finds later results of the calls that a finding cites, so that a claim about a state that is gone can be marked.

Decision: only results that their server's object declares to be a state (`MCPServer.spec.evidence.stateTools`) are
compared. A log that has moved on, or another time range, contradicts nothing. The mark changes no confidence: a state
that changed during the investigation is often what it is about. What a stage of kind Action reads is left out: it
changed the state itself.
"""

from collections.abc import Mapping
from dataclasses import replace

from tarsy.engine.ports import Recorder
from tarsy.engine.tool_calls.loop_guard import canonical
from tarsy.record.finding import Evidence
from tarsy.record.history import PastCall


async def with_later_results(evidence: Mapping[str, Evidence], recorder: Recorder) -> Mapping[str, Evidence]:
    """Returns the evidence, each state with the latest result of the same call that came after it.

    Args:
        evidence: the cited calls, by the id that citations use.
        recorder: of the run.
    """
    if not any(found.marks.state for found in evidence.values()):
        return evidence
    latest: dict[tuple[str, str, str], PastCall] = {}
    order: dict[str, int] = {}
    for place, call in enumerate((await recorder.history()).calls):
        order[str(call.id)] = place
        if call.answered and not call.acts:
            latest[_key(call)] = call
    wanted: dict[str, str] = {}
    for ref, found in evidence.items():
        server, _, tool = found.tool.partition(".")
        later = latest.get((server, tool, canonical(found.arguments)))
        mine = order.get(str(found.interaction))
        if found.marks.state and later is not None and mine is not None and order[str(later.id)] > mine:
            wanted[ref] = str(later.id)
    results = await recorder.evidence(wanted.values())
    return {
        ref: replace(found, later=results[wanted[ref]].result) if wanted.get(ref) in results else found
        for ref, found in evidence.items()
    }


def _key(call: PastCall) -> tuple[str, str, str]:
    return call.server, call.tool, canonical(call.arguments)
