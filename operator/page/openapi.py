"""Prints the OpenAPI document, from which the types of the web UI are generated.

Decision: the document is built from the table of routes, so neither a server nor a committed copy is needed. It also
contains the words that kubectl shows for each state: the web UI's own table does not compile with other words.
"""

import json
from collections.abc import Mapping

from tarsy.http.live.messages import ClientAction, ServerMessage
from tarsy.http.openapi import document
from tarsy.http.table import all_routes
from tarsy.record.run import DesiredState, InteractionState, State
from tarsy.record.timeline import EventStatus
from tarsy.record.words import phase_of, word


def _words(words: Mapping[str, str]) -> dict[str, object]:
    """Returns the schema of an object with exactly these properties and values."""
    properties = {name: {"type": "string", "enum": [value]} for name, value in words.items()}
    return {"type": "object", "properties": properties, "required": list(words), "additionalProperties": False}


PHASES = {state.value: phase_of(state) for state in State}
CONCLUDING = {"concluding": phase_of(State.RUNNING, DesiredState.CONCLUDED)}
STEPS = {state.value: word(state) for states in (State, InteractionState, EventStatus) for state in states}

if __name__ == "__main__":
    printed = document(all_routes(), (ServerMessage, ClientAction))
    printed["components"]["schemas"] |= {"PhaseWords": _words(PHASES | CONCLUDING), "StepWords": _words(STEPS)}
    print(json.dumps(printed))
