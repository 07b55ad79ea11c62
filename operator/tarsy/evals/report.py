"""Reports how closely a replay followed its record: coverage, unused calls and the first divergence."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Final

from tarsy.evals.cassette import Cassette
from tarsy.evals.divergence import ToolStep, canonical_arguments, find_divergence
from tarsy.record.judging.recorded_run import AskedCalls
from tarsy.record.judging.replay import FLOOR, ReplayDivergence, ReplayReport, ReplayStep, Rung, covered_calls

MOST_ARGUMENTS: Final = 300
"""Characters of arguments in a report, which is part of a status of bounded size."""
MOST_TOOL: Final = 200

_Steps = Mapping[tuple[int, int], Sequence[ToolStep]]


def replay_report(cassette: Cassette, asked: AskedCalls) -> ReplayReport:
    """Returns the report of a replay.

    Args:
        cassette: the record.
        asked: the calls of the replay, in the order of their places.
    """
    rungs = Counter(call.rung for call in asked.calls if call.rung is not None)
    if asked.native:
        rungs[Rung.MISS.value] += asked.native
    used = {call.line for call in asked.calls if call.line is not None}
    unused = sum(cassette.line(index) not in used for index in range(len(cassette.calls)))
    return ReplayReport(rungs=dict(sorted(rungs.items())), unused=unused, divergence=_divergence(cassette, asked))


def too_little_covered(report: ReplayReport) -> str | None:
    """Returns why nothing can be concluded from a replay; None: enough of its calls were recorded."""
    if report.coverage >= FLOOR:
        return None
    covered = covered_calls(report.rungs)
    return (
        f"The record answered {covered} of {report.calls} tool calls of this replay; below {FLOOR:.0%} nothing can be "
        "concluded from it."
    )


def _divergence(cassette: Cassette, asked: AskedCalls) -> ReplayDivergence | None:
    recorded, replayed = _recorded(cassette), _replayed(asked, by_agent=_has_places(cassette))
    for key in sorted(recorded.keys() | replayed.keys()):
        apart = find_divergence(recorded.get(key, ()), replayed.get(key, ()))
        if apart is not None:
            return ReplayDivergence(
                stage=key[0],
                agent=key[1],
                index=apart.index,
                recorded=_step(apart.first),
                replayed=_step(apart.second),
            )
    return None


def _has_places(cassette: Cassette) -> bool:
    return all(call.place is not None for call in cassette.calls)


def _recorded(cassette: Cassette) -> _Steps:
    by_agent = _has_places(cassette)
    found: defaultdict[tuple[int, int], list[tuple[tuple[int, int], ToolStep]]] = defaultdict(list)
    for index, call in enumerate(cassette.calls):
        place = call.place if by_agent else None
        key, order = ((place.stage, place.agent), (place.message, place.index)) if place else ((0, 0), (0, index))
        step = ToolStep(f"{call.server}.{call.tool}", canonical_arguments(call.arguments_text))
        found[key].append((order, step))
    return {key: [step for _, step in sorted(steps, key=lambda one: one[0])] for key, steps in found.items()}


def _replayed(asked: AskedCalls, *, by_agent: bool) -> _Steps:
    found: defaultdict[tuple[int, int], list[ToolStep]] = defaultdict(list)
    for call in asked.calls:
        key = call.place[:2] if by_agent else (0, 0)
        found[key].append(ToolStep(call.tool, canonical_arguments(call.arguments)))
    return found


def _step(step: ToolStep | None) -> ReplayStep | None:
    if step is None:
        return None
    return ReplayStep(tool=step.tool[:MOST_TOOL], arguments=step.arguments[:MOST_ARGUMENTS])
