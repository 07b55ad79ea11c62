"""Where a follower is: the revision of an investigation, and of each question about it, up to which all was told.

Decision: the record is the event log, so a cursor is nothing but revisions; nothing is kept for a follower who is away.
Written it is the revision, as long as there are no questions: `57`, then `57,1:12,2:3`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

CURSOR_PATTERN = r"^[0-9]{1,18}(,[0-9]{1,6}:[0-9]{1,18})*$"
MAX_LENGTH = 4_096
_WRITTEN = re.compile(CURSOR_PATTERN)


@dataclass(frozen=True, slots=True)
class Cursor:
    """Revisions by place: 0 is the investigation, from 1 on its questions; places that are not there were not begun."""

    revisions: Mapping[int, int] = field(default_factory=dict)

    def of(self, place: int) -> int:
        """The revision up to which a run was told."""
        return self.revisions.get(place, 0)

    def at(self, place: int, revision: int) -> "Cursor":
        """The cursor when a run was told up to `revision`."""
        return Cursor({**self.revisions, place: revision})

    def __str__(self) -> str:
        others = (f"{place}:{revision}" for place, revision in sorted(self.revisions.items()) if place)
        return ",".join((str(self.of(0)), *others))


def read_cursor(text: str) -> Cursor:
    """A cursor as it was written.

    Raises:
        ValueError: it is none; the message says how one looks.
    """
    if len(text) > MAX_LENGTH or not _WRITTEN.fullmatch(text):
        raise ValueError("must be the id of a message, such as 57 or 57,1:12")
    first, *others = text.split(",")
    pairs = (other.split(":") for other in others)
    return Cursor({0: int(first), **{int(place): int(revision) for place, revision in pairs}})
