"""Tells agents about precedents: a fenced line each, with how it ended.

The line is made of the frozen precedent alone, so that an attempt that resumes and a replay send the same text.
"""

from collections.abc import Sequence

from tarsy.engine.prompts.fence import fence, inline
from tarsy.engine.prompts.template import template
from tarsy.record.judging.precedent import (
    LONGEST_PRECEDENT,
    LONGEST_REVIEWER,
    MOST_PRECEDENTS,
    Precedent,
    PrecedentEnding,
    PrecedentMatch,
)

_MATCHED = {
    PrecedentMatch.INCIDENT: "same incident key",
    PrecedentMatch.WORKLOAD: "same workload and alert type",
    PrecedentMatch.CHANGED_OBJECT: "same changed object",
    PrecedentMatch.WORDS: "words in common",
}
_ENDED = {
    PrecedentEnding.CONFIRMED: "confirmed",
    PrecedentEnding.PARTLY: "partly confirmed",
    PrecedentEnding.UNKNOWN: "unknown",
    PrecedentEnding.REFUTED: "REFUTED, its conclusion was wrong",
}
_NAME = 340


def precedent_line(one: Precedent) -> str:
    """Returns the line that agents are told about a precedent."""
    reviewed = f", reviewed by {inline(one.reviewer, LONGEST_REVIEWER)}" if one.reviewer else ""
    outcome = f", incident {inline(one.outcome, LONGEST_REVIEWER)}" if one.outcome else ""
    named = f"{inline(one.namespace)}/{inline(one.name, _NAME)}"
    return (
        f"On {one.finished_at:%Y-%m-%d}, {named} ({_MATCHED[one.match]}) concluded: "
        f"{inline(one.summary, LONGEST_PRECEDENT)} Confidence then: {one.confidence.value}. "
        f"How it ended: {_ENDED[one.ending]}{reviewed}{outcome}."
    )


def precedent_lines(found: Sequence[Precedent]) -> str:
    """Returns the lines about precedents, at most `MOST_PRECEDENTS`; empty without any."""
    return "\n".join(f"- {precedent_line(one)}" for one in found[:MOST_PRECEDENTS])


def precedents_section(lines: str) -> str:
    """Returns the section of a prompt with the lines about precedents."""
    return template("precedents").substitute(lines=fence("EARLIER_INVESTIGATIONS", lines))
