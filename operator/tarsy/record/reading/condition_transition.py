"""Defines the change of the status of a condition of a configuration object."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from tarsy.record.reading.object_history import ObjectIdentity

ABSENT: Final = "Absent"
"""Status of a condition that the object has no longer."""


@dataclass(frozen=True, slots=True)
class ConditionHead:
    """The last change of a condition that is recorded, or will be."""

    status: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ConditionTransition:
    """A change of the status of a condition.

    Attributes:
        object: that has the condition.
        type: of the condition.
        at: its lastTransitionTime; of `ABSENT` the time at which the controller missed it.
        status: True, False, Unknown or `ABSENT`.
        was: the status before; None: this is the first one that is known.
        reason: of the condition after the change.
        message: of the condition after the change, masked.
        address: scheme, host and port that the object was reached by.
        omitted: changes just before this one that came too fast to be recorded.
        id: grows in the order of recording; 0 before that.
    """

    object: ObjectIdentity
    type: str
    at: datetime
    status: str
    was: str | None
    reason: str
    message: str
    address: str | None = None
    omitted: int = 0
    id: int = 0
