"""Defines a known definition of a tool, for comparison by people."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class KnownDefinition:
    """A definition that a server listed, as masked JSON."""

    tool: str
    digest: str
    definition: str
    first_seen: datetime
