"""Defines the results of the check of a sealed record."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID


class FlawKind(StrEnum):
    """Lists the flaws of a sealed record."""

    CHANGED = "Changed"
    MISSING = "Missing"
    NOT_SEALED = "NotSealed"
    BROKEN = "Broken"
    CUT = "Cut"


@dataclass(frozen=True, slots=True)
class Flaw:
    """One difference between a record and its seals; `where` names the row, such as `tool-call/<id>/answer`."""

    kind: FlawKind
    where: str
    sentence: str


@dataclass(frozen=True, slots=True)
class PublishedSeal:
    """The head of the chain as the status of the object has it; `revision` is that of the record then."""

    revision: int
    head: str


@dataclass(frozen=True, slots=True)
class SealReport:
    """The result of checking the record of one run.

    `steps` and `rows` are numbers of what is sealed; `unpublished` is the number of steps after the published head,
    which whoever can write to the database could have sealed anew; `left_open` is the number of rows that the end of
    the run or of an attempt closed, whose content was never complete.
    """

    run: UUID
    namespace: str
    name: str
    question: bool
    steps: int
    rows: int
    revision: int
    head: str
    left_open: int = 0
    unpublished: int = 0
    published: PublishedSeal | None = None
    flaws: Sequence[Flaw] = ()


@dataclass(frozen=True, slots=True)
class ErasedRun:
    """Holds the remains of a record that was deleted."""

    run: UUID
    namespace: str
    name: str
    finished_at: datetime | None
    erased_at: datetime
    head: str | None
