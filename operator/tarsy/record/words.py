"""Translates states into the words that `kubectl` shows, for all output to people.

Decision: the record and the HTTP API keep the name of the state, because programs depend on it.
"""

from collections.abc import Mapping
from typing import Final, Literal

from tarsy.record.run import DesiredState, State
from tarsy.resources.v1alpha1.investigation_status import Phase

_WORDS: Final[Mapping[str, str]] = {
    "pending": "Pending",
    "started": "Running",
    "streaming": "Running",
    "running": "Running",
    "parked": "Parked",
    "completed": "Succeeded",
    "failed": "Failed",
    "cancelled": "Cancelled",
    "timed_out": "TimedOut",
    "interrupted": "Interrupted",
}


def word(state: str) -> str:
    """Returns the word for the state of a stage, an agent, a call or an event."""
    return _WORDS.get(state, str(state))


def phase_of(state: State, desired: DesiredState = DesiredState.RUNNING) -> Phase | Literal["Parked"]:
    """Returns the phase of an investigation, or of an answer, that has been accepted.

    The phase of its object is never Parked, which an older operator could not read: it is Running.
    """
    match state:
        case State.PENDING:
            return "Queued"
        case State.RUNNING:
            return "Concluding" if desired is DesiredState.CONCLUDED else "Running"
        case State.PARKED:
            return "Parked"
        case State.COMPLETED:
            return "Succeeded"
        case State.FAILED:
            return "Failed"
        case State.CANCELLED:
            return "Cancelled"
        case State.TIMED_OUT:
            return "TimedOut"


def state_of(told: str) -> str:
    """The state that a phase stands for, where it is one; else `told` as it is."""
    return next((state.value for state in State if phase_of(state) == told), told)
