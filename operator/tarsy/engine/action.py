"""Compares the actions of a stage of kind Action, as its model states them, with the record.

The record wins (`tarsy.record.approvals.acted`): a stage acted if a call was sent that people had approved. The text of
the stage is told to later stages, and is never the finding of the run.
"""

from uuid import UUID

from tarsy.engine.run_context import RunContext
from tarsy.record.approvals.acted import ACTED, StageActed, read_word
from tarsy.record.ids import event_id
from tarsy.record.timeline import Event, EventStatus, EventType


async def weigh_action(stage: UUID, text: str, world: RunContext) -> tuple[StageActed, str]:
    """Returns what a stage did, and the answer of its model without the last line that says so.

    Args:
        stage: its id.
        text: the answer; empty: there is none.
        world: the run's ports.
    """
    word, text = read_word(text)
    return StageActed(word, tuple(await world.recorder.actions(stage)), replay=world.replay), text


def action_event(stage: UUID, acted: StageActed) -> Event:
    """Returns the timeline event of what a stage did.

    Args:
        stage: its id.
        acted: what it did.
    """
    contradiction = acted.contradiction
    return Event(
        id=event_id(stage, "acted"),
        type=EventType.NOTICE if contradiction is None else EventType.ERROR,
        status=EventStatus.COMPLETED,
        content=acted.whole_sentence,
        metadata={
            "reason": ACTED,
            "acted": acted.acted,
            "word": acted.word.value,
            "calls": [call.ref for call in acted.calls],
            **({} if contradiction is None else {"contradiction": contradiction}),
        },
        stage=stage,
    )
