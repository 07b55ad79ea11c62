"""Who reads along is told of the texts that are shown, and of no other."""

from collections.abc import Sequence
from uuid import UUID

import pytest

from tarsy.engine.run_context import NoFollowers
from tarsy.plan.model import AgentPlan, Strategy
from tarsy.record.timeline import EventType
from unit.engine.build import Answer, agent, plan, scene, single, stage


class Reader(NoFollowers):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.open: dict[UUID, Sequence[str]] = {}
        self.texts: dict[UUID, str] = {}
        self.grown: list[UUID] = []

    def began(self, event: UUID, pieces: Sequence[str]) -> None:
        self.open[event] = pieces

    def grew(self, event: UUID) -> None:
        assert event in self.open
        self.grown.append(event)

    def ended(self, event: UUID) -> None:
        self.texts[event] = "".join(self.open.pop(event))


@pytest.mark.parametrize("who", [agent(), single("triage", Strategy.SINGLE_CALL)], ids=["loop", "single"])
async def test_text_and_thinking_are_told_as_their_events_and_end_with_them(who: AgentPlan) -> None:
    reader, told = Reader(), scene({"triage": [Answer("The disk is full.", thinking="Let me see.")]})
    told.live = reader
    await told.run(plan(stage("look", who)))
    by_type = {event.type: event.id for event in told.record.events.values()}
    assert reader.open == {}
    assert reader.texts[by_type[EventType.LLM_THINKING]] == "Let me see."
    assert reader.texts[by_type[EventType.FINAL_ANALYSIS]] == "The disk is full."
    assert len(reader.grown) > 2


async def test_text_that_is_read_when_it_is_complete_is_not_told() -> None:
    reader, told = Reader(), scene({"triage": [Answer("Thought: easy\nFinal Answer: full")]})
    told.live = reader
    await told.run(plan(stage("look", agent(strategy=Strategy.REACT))))
    assert reader.texts == {}
