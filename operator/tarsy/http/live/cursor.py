"""Represents the position of a follower: the last sent revision of an investigation and of each question about it.

Decision: the record is the event log, so a cursor contains only revisions, and the server stores nothing for a
disconnected follower. Its text is the revision as long as there are no questions: `57`, then `57,1:12,2:3`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

CURSOR_PATTERN = r"^[0-9]{1,18}(,[0-9]{1,6}:[0-9]{1,18})*$"
MAX_LENGTH = 4_096
_WRITTEN = re.compile(CURSOR_PATTERN)


@dataclass(frozen=True, slots=True)
class Cursor:
    """Revisions by place: 0 is the investigation, 1 and up are its questions; a missing place is at revision 0."""

    revisions: Mapping[int, int] = field(default_factory=dict)

    def of(self, place: int) -> int:
        """Returns the last sent revision of a run."""
        return self.revisions.get(place, 0)

    def at(self, place: int, revision: int) -> "Cursor":
        """Returns the cursor after sending a run up to a revision."""
        return Cursor({**self.revisions, place: revision})

    def __str__(self) -> str:
        others = (f"{place}:{revision}" for place, revision in sorted(self.revisions.items()) if place)
        return ",".join((str(self.of(0)), *others))


def read_cursor(text: str) -> Cursor:
    """Parses the text of a cursor.

    Raises:
        ValueError: the text is malformed; the message describes the format.
    """
    if len(text) > MAX_LENGTH or not _WRITTEN.fullmatch(text):
        raise ValueError("must be the id of a message, such as 57 or 57,1:12")
    first, *others = text.split(",")
    pairs = (other.split(":") for other in others)
    return Cursor({0: int(first), **{int(place): int(revision) for place, revision in pairs}})
