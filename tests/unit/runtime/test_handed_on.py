"""Answers of a second attempt: from the record of the first one, or from the tool server."""

from collections.abc import Sequence
from typing import Any

import pytest

from tarsy.record.first_attempt import HandedOnCall
from tarsy.record.integrity import EvidenceMarks, Integrity
from tarsy.record.judging.replay import ReplayedFrom, Rung
from tarsy.record.messages import ToolOutcome
from tarsy.runtime.handed_on import HandedOnToolboxes
from unit.engine.build import FakeToolbox, FakeToolboxes, agent, says

SCHEMA = {"type": "object", "properties": {"n": {"type": "integer", "default": 1}, "path": {"type": "string"}}}
MARKS = EvidenceMarks(Integrity.K, ((0, 8),), state=True)
RECORDED = HandedOnCall("k", "df", '{"path": "/", "n": 1}', "recorded", MARKS)


def boxes(**more: Any) -> FakeToolboxes:
    return FakeToolboxes({"k.df": says("live"), "k.logs": says("live")}, schemas={"k.df": SCHEMA}, **more)


async def ask(live: FakeToolboxes, arguments: str, calls: Sequence[HandedOnCall] = (RECORDED,)) -> ToolOutcome:
    async with HandedOnToolboxes(live, calls).open(agent(servers=("k",)).servers) as toolbox:
        return await toolbox.call("k.df", arguments, timeout=1.0, idempotency_key="k")


@pytest.mark.parametrize(
    ("arguments", "rung"),
    [('{"path": "/", "n": 1}', Rung.EXACT), ('{"n":1,"path":"/"}', Rung.EXACT), ('{"path": "/"}', Rung.NORMALISED)],
)
async def test_the_same_call_is_answered_from_the_record_with_its_marks(arguments: str, rung: Rung) -> None:
    live = boxes()

    found = await ask(live, arguments)

    assert found == ToolOutcome("recorded", replayed=ReplayedFrom(rung, handed_on=True), marks=MARKS)
    assert live.called == []


@pytest.mark.parametrize("arguments", ['{"path": "/data"}', "{}", "not json"])
async def test_another_call_is_made(arguments: str) -> None:
    live = boxes()

    found = await ask(live, arguments)

    assert (found.content, found.replayed) == ("live", None)
    assert [one[1] for one in live.called] == [arguments]


async def test_a_call_that_needs_approval_is_made() -> None:
    found = await ask(boxes(gated=frozenset({"k.df"})), RECORDED.arguments)

    assert found.content == "live"


async def test_a_call_with_a_secret_in_its_arguments_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeToolbox, "shown", lambda self, name, arguments: "[MASKED]")

    found = await ask(boxes(), RECORDED.arguments)

    assert found.content == "live"


async def test_the_latest_result_answers_each_time() -> None:
    calls = [RECORDED, HandedOnCall("k", "df", RECORDED.arguments, "later")]

    async with HandedOnToolboxes(boxes(), calls).open(agent(servers=("k",)).servers) as toolbox:
        found = [await toolbox.call("k.df", RECORDED.arguments, timeout=1.0, idempotency_key=str(n)) for n in range(2)]

    assert [one.content for one in found] == ["later", "later"]


async def test_calls_of_servers_that_the_agent_has_not_answer_nothing() -> None:
    found = await ask(boxes(), RECORDED.arguments, [HandedOnCall("other", "df", RECORDED.arguments, "elsewhere")])

    assert found.content == "live"


async def test_everything_else_is_the_toolboxs() -> None:
    live = boxes(repeatables=frozenset({"k.df"}), unavailable={"x": "away"}, instructions={"k": "be kind"})

    async with live.open(()) as own, HandedOnToolboxes(live, ()).open(()) as toolbox:
        assert toolbox.tools == own.tools
        assert (toolbox.unavailable, toolbox.instructions) == ({"x": "away"}, {"k": "be kind"})
        assert (toolbox.digests, toolbox.unaccepted, toolbox.hold({})) == ({}, {}, {})
        assert (toolbox.split("k.df"), toolbox.access("k.df")) == (("k", "df"), own.access("k.df"))
        assert (toolbox.refusal("k.df"), toolbox.repeatable("k.df")) == (None, True)
