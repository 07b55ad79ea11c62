"""Reports precedents in the timeline of a run, and declares their kind of text for searches.

A precedent is text of a model of another run: anybody may stand behind it (class X), and text that must not leave may
be in it. It is no tool call, so that nothing can cite it.
"""

from collections.abc import Sequence
from uuid import UUID

from tarsy.record.approvals.provenance import ToldResult
from tarsy.record.ids import event_id
from tarsy.record.integrity import EvidenceMarks, Integrity
from tarsy.record.judging.precedent import MOST_PRECEDENTS, Precedent
from tarsy.record.timeline import Event, EventStatus, EventType

PRECEDENTS_NOTICE = "Precedents"
"""Reason, in the metadata of the notice that lists the precedents of a run."""

_PART = "precedents"
_LISTED = {"id", "namespace", "name", "match", "ending"}


def told_event(run: UUID, found: Sequence[Precedent]) -> Event:
    """Returns the notice that lists what the agents of a run are told about earlier investigations.

    Args:
        run: the run.
        found: its precedents, at least one.
    """
    listed = [one.model_dump(mode="json", include=_LISTED) for one in found[:MOST_PRECEDENTS]]
    number = "1 earlier investigation" if len(listed) == 1 else f"{len(listed)} earlier investigations"
    return Event(
        id=event_id(run, _PART),
        type=EventType.NOTICE,
        status=EventStatus.COMPLETED,
        content=f"The agents are told about {number}, as history that is no evidence.",
        metadata={"reason": PRECEDENTS_NOTICE, "precedents": listed},
    )


def told_text(run: UUID, lines: str) -> ToldResult:
    """Returns the lines about precedents as a text in which arguments of calls are looked for.

    Args:
        run: the run.
        lines: as its agents are sent them.
    """
    return ToldResult(
        id=event_id(run, _PART),
        ref=_PART,
        tool="earlier investigations",
        arguments="",
        text=lines,
        marks=EvidenceMarks(Integrity.X, sensitive=True),
    )
