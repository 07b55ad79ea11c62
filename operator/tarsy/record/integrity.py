"""Defines the integrity class of evidence: who can write what a tool result says.

Decision: a result has one class, and beside it the spans that the control plane computed, as places in the text. A
quote is of class K where it stands within one such span, so a text that mixes both is never more than its own class.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from tarsy.record.newer_words import known_or_text

MOST_SPANS = 4_000
"""Maximum spans of a result; further ones are of the class of the result."""

SHORTEST_SPAN = 8
"""Characters of a span; no quote fits into a shorter one."""


class Integrity(StrEnum):
    """Lists the possible writers of a text: K the control plane, A workloads as well, X anyone outside the cluster."""

    K = "K"
    A = "A"
    X = "X"


@dataclass(frozen=True, slots=True)
class EvidenceMarks:
    """The class of a result, and the spans in it of class K, each from a place to another, in order.

    `state`: the result is the state of something at the time of the call, so that a later result of the same call
    replaces it. `sensitive`: its text must not leave.
    """

    integrity: Integrity = Integrity.A
    control: tuple[tuple[int, int], ...] = field(default=())
    state: bool = False
    sensitive: bool = False

    def pieces(self, text: str) -> Iterator[str]:
        """Yields the texts of its spans."""
        for start, end in self.control:
            yield text[start:end]

    def moved(self, before: str, after: str) -> "EvidenceMarks":
        """Returns the marks of a text that was changed, without the spans that the change concerns.

        Args:
            before: the text that these marks are of.
            after: the changed text.
        """
        if before == after or not self.control:
            return self
        spans, place = [], 0
        for piece in self.pieces(before):
            start = after.find(piece, place)
            if start >= 0:
                place = start + len(piece)
                spans.append((start, place))
        return replace(self, control=tuple(spans))

    def as_json(self) -> dict[str, Any]:
        """Returns the marks as they are stored."""
        found = {"class": self.integrity.value, "control": [list(span) for span in self.control], "state": self.state}
        return {**found, "sensitive": True} if self.sensitive else found


def read_marks(stored: Mapping[str, Any] | None) -> EvidenceMarks:
    """Returns stored marks; of a result without any, that workloads can write all of it.

    A class that only a newer version knows counts as one that anybody can write.
    """
    if stored is None:
        return EvidenceMarks()
    spans = tuple((int(start), int(end)) for start, end in stored.get("control") or ())
    labels = {"state": bool(stored.get("state")), "sensitive": bool(stored.get("sensitive"))}
    found = known_or_text(Integrity, stored["class"])
    if not isinstance(found, Integrity):
        return EvidenceMarks(Integrity.X, sensitive=labels["sensitive"])
    return EvidenceMarks(found, spans, **labels)


def checked_spans(spans: object, length: int) -> tuple[tuple[int, int], ...]:
    """Returns the spans that a server declares, without those that are none, overlap, or lie beyond the text.

    Args:
        spans: as the server sent them.
        length: characters of the text.
    """
    found: list[tuple[int, int]] = []
    if not isinstance(spans, Sequence) or isinstance(spans, str | bytes):
        return ()
    for span in spans[:MOST_SPANS]:
        match span:
            case [int() as start, int() as end] if end - start >= SHORTEST_SPAN and start >= 0 and end <= length:
                if not found or start >= found[-1][1]:
                    found.append((start, end))
            case _:
                continue
    return tuple(found)
