"""Models of the check of a sealed record."""

import contextlib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from pydantic import Field

from tarsy.http.models import View
from tarsy.record.reading.seal import ErasedRun, FlawKind, PublishedSeal, SealReport

MAX_FLAWS = 200
"""Maximum number of flaws in a response; their number is complete."""


class FlawView(View):
    """A difference between the record and its seals."""

    kind: FlawKind = Field(
        description="Changed, Missing or NotSealed: a row. Broken: a step of the chain. Cut: the end of the chain."
    )
    where: str = Field(description="The row or step, such as tool-call/<id>/answer.")
    message: str = Field(description="The difference in words.")


class RunSealView(View):
    """The result of checking the record of a run, or of the answer to a question about it."""

    id: UUID = Field(description="Id of the run in the database.")
    name: str = Field(description="Name of the Investigation or ChatMessage.")
    question: bool = Field(description="True for the answer to a question.")
    steps: int = Field(description="Number of sealed steps. 0: the run is of a version without seals.")
    rows: int = Field(description="Number of sealed rows and parts of rows.")
    head: str = Field(description="Head of the chain, as hex.")
    published_head: str | None = Field(default=None, description="Head in the status of the object.")
    unpublished: int = Field(description="Number of steps after the published head. Nothing vouches for them yet.")
    left_open: int = Field(description="Number of rows that the end of an attempt or of the run closed, unsealed.")
    flaw_count: int = Field(description="Number of flaws. 0: the record is as it was written.")
    flaws: list[FlawView] = Field(description=f"The first {MAX_FLAWS} flaws.")

    @classmethod
    def of(cls, report: SealReport) -> Self:
        """Converts a report."""
        return cls(
            id=report.run,
            name=report.name,
            question=report.question,
            steps=report.steps,
            rows=report.rows,
            head=report.head,
            published_head=None if report.published is None else report.published.head,
            unpublished=report.unpublished,
            left_open=report.left_open,
            flaw_count=len(report.flaws),
            flaws=[
                FlawView(kind=flaw.kind, where=flaw.where, message=flaw.sentence) for flaw in report.flaws[:MAX_FLAWS]
            ],
        )


class ErasedView(View):
    """Remains of a record that was deleted by retention or by an administrator."""

    id: UUID = Field(description="Id that the run had in the database.")
    finished_at: datetime | None = Field(default=None, description="Time at which the run ended.")
    erased_at: datetime = Field(description="Time at which its record was deleted.")
    head: str | None = Field(default=None, description="Head of its chain of seals, as hex.")

    @classmethod
    def of(cls, erased: ErasedRun) -> Self:
        """Converts what a deletion left."""
        return cls(id=erased.run, finished_at=erased.finished_at, erased_at=erased.erased_at, head=erased.head)


class SealView(View):
    """The result of checking the record of an investigation and of the answers about it."""

    runs: list[RunSealView] = Field(default=[], description="The investigation, then the answers. Empty if erased.")
    erased: ErasedView | None = Field(default=None, description="Set if the record was deleted.")


def published_seals(objects: Iterable[Mapping[str, Any]]) -> Mapping[UUID, PublishedSeal]:
    """Reads the heads that the statuses of Investigations and ChatMessages publish, by run.

    Args:
        objects: as the Kubernetes API has them.
    """
    found = {}
    for raw in objects:
        status = raw.get("status") or {}
        record, revision = status.get("record") or {}, status.get("recordRevision")
        with contextlib.suppress(ValueError):  # an id that people wrote
            if record.get("seal") and isinstance(revision, int):
                found[UUID(str(record.get("id")))] = PublishedSeal(revision, str(record["seal"]))
    return found
