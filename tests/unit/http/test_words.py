"""Tests that people read states in the words of kubectl."""

import pytest

from tarsy.http.routes.investigations import InvestigationsQuery
from tarsy.record.run import DesiredState, InteractionState, State
from tarsy.record.timeline import EventStatus
from tarsy.record.words import phase_of, word


def test_every_state_has_a_word_of_kubectl() -> None:
    phases = ["Queued", "Running", "Parked", "Succeeded", "Failed", "Cancelled", "TimedOut"]
    assert [phase_of(state) for state in State] == phases
    assert phase_of(State.RUNNING, DesiredState.CONCLUDED) == "Concluding"
    for state in (*State, *InteractionState, *EventStatus):
        assert word(state)[0].isupper() and "_" not in word(state), state


@pytest.mark.parametrize("state", list(State))
def test_a_list_is_asked_for_by_phase_or_by_state(state: State) -> None:
    for told in (phase_of(state), state.value):
        assert InvestigationsQuery.model_validate({"state": [told]}).state == (state,)
    with pytest.raises(ValueError):
        InvestigationsQuery.model_validate({"state": ["succeeded"]})
