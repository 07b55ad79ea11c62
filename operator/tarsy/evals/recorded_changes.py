"""Answers stages of kind Changes from a cassette: a replay reads no object of the cluster."""

from collections.abc import Callable
from typing import Final

import orjson

from tarsy.evals.cassette import Cassette, RecordedCall
from tarsy.evals.divergence import canonical_arguments
from tarsy.record.judging.replay import KnownAnswer, KnownChanges, KnownClaim, ReplayedFrom, Rung

SERVER: Final = "tarsy"
"""Server of the tool calls that a stage of kind Changes makes itself."""

TOOLS: Final = ("triage", "changes")
_WHO_READS: Final = ("serviceAccountName", "reader")
"""Arguments that say with whose rights objects were read: a replay reads none."""

_NOTHING = "The record has no evidence of this stage for this alert and window."


def recorded_changes(cassette: Cassette) -> Callable[[str], KnownChanges]:
    """Returns the function that answers the calls of a stage, given their arguments.

    Args:
        cassette: the record.
    """
    calls = {
        call.tool: (cassette.line(index), call)
        for index, call in reversed(list(enumerate(cassette.calls)))
        if call.server == SERVER and call.tool in TOOLS
    }

    def known(arguments: str) -> KnownChanges:
        concluded = cassette.header.changes
        if concluded is not None and not calls:
            return KnownChanges(concluded.summary, concluded.confidence)
        answers = {tool: _answer(*calls[tool], arguments) if tool in calls else _missing() for tool in TOOLS}
        if concluded is None or any(answer.source.rung is Rung.MISS for answer in answers.values()):
            return KnownChanges(f"Nothing could be read: {_NOTHING}", "Inconclusive", answers=answers)
        claims = tuple(KnownClaim(one.text, one.tool, one.quote) for one in concluded.statements if one.tool in TOOLS)
        return KnownChanges(concluded.summary, concluded.confidence, claims, answers)

    return known


def _answer(line: int, call: RecordedCall, arguments: str) -> KnownAnswer:
    recorded, asked = canonical_arguments(call.arguments_text), canonical_arguments(arguments)
    rung = Rung.EXACT if recorded == asked else Rung.NORMALISED
    if rung is Rung.NORMALISED and _subject(recorded) != _subject(asked):
        return _missing()
    shown = call.result if call.shown is None else call.shown
    return KnownAnswer(call.result, call.is_error, shown, ReplayedFrom(rung, line), call.marks)


def _missing() -> KnownAnswer:
    return KnownAnswer(_NOTHING, True, _NOTHING, ReplayedFrom(Rung.MISS))


def _subject(arguments: str) -> object:
    """Returns what the evidence is about: the arguments without those that say who reads."""
    found = orjson.loads(arguments) if arguments.startswith("{") else arguments
    return {key: found[key] for key in found if key not in _WHO_READS} if isinstance(found, dict) else found
