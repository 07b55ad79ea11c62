"""Models of the earlier investigations that the agents of a run were given."""

from datetime import datetime
from typing import Self
from uuid import UUID

from pydantic import Field

from tarsy.http.models import View
from tarsy.record.finding import Confidence
from tarsy.record.judging.precedent import Precedent, PrecedentEnding, PrecedentMatch


class PrecedentView(View):
    """An earlier investigation, as it was when the run was accepted."""

    namespace: str
    name: str
    uid: UUID
    finished_at: datetime
    match: PrecedentMatch = Field(
        description="Why it is a precedent. Incident: same incident key. Workload: same workload and alert type. "
        "ChangedObject: it blamed an object that was changed before this alert. Words: names or words in common."
    )
    matched: str = Field(description="The key, workload or object in common. Empty for words.")
    summary: str = Field(description="Summary of its finding, written by a model.")
    confidence: Confidence
    ending: PrecedentEnding = Field(
        description="How its finding ended. Confirmed, Partly, Refuted: reviews say Right, Partly, Wrong. Unknown: no "
        "review."
    )
    reviewer: str | None = Field(description="Users whose reviews count. Null: nobody's.")
    outcome: str | None = Field(description="What happened to the incident. Null: not known.")
    on_record: bool = Field(description="Whether its record still exists.")

    @classmethod
    def of(cls, found: Precedent, on_record: bool) -> Self:
        """Converts a precedent.

        Args:
            found: as frozen with the run.
            on_record: whether its record still exists.
        """
        return cls(
            namespace=found.namespace,
            name=found.name,
            uid=found.id,
            finished_at=found.finished_at,
            match=found.match,
            matched=found.matched,
            summary=found.summary,
            confidence=found.confidence,
            ending=found.ending,
            reviewer=found.reviewer,
            outcome=found.outcome,
            on_record=on_record,
        )


class PrecedentList(View):
    """The earlier investigations that the agents of a run were told about, the closest first."""

    items: tuple[PrecedentView, ...]
    hidden: int = Field(description="Number of those in other namespaces that the caller may not read.")
