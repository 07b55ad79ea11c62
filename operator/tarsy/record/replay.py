"""Defines how an answer of a replayed run was found."""

from dataclasses import dataclass
from enum import StrEnum


class Rung(StrEnum):
    """Origin of the answer to a tool call of a replay, best first.

    `exact`: a recorded call with the same arguments. `normalised`: one whose arguments mean the same. `derived`:
    computed from a recorded answer that contains more. `miss`: not recorded. `live`: the tool server was asked during
    the replay. `simulated`: a model made the answer up.
    """

    EXACT = "exact"
    NORMALISED = "normalised"
    DERIVED = "derived"
    MISS = "miss"
    LIVE = "live"
    SIMULATED = "simulated"

    @property
    def covered(self) -> bool:
        """Whether the answer comes from the record."""
        return self in (Rung.EXACT, Rung.NORMALISED, Rung.DERIVED)


@dataclass(frozen=True, slots=True)
class ReplayedFrom:
    """Origin of one answer: its rung, and the line of the cassette that it comes from (None: from none)."""

    rung: Rung
    line: int | None = None
