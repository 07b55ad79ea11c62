"""The toolbox of a replay: what it offers, refuses and answers, and that it opens nothing."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from tarsy.evals.cassette import Cassette
from tarsy.evals.toolbox import OF_NOW, ReplayOptions, ReplayToolbox, ReplayToolboxes
from tarsy.plan.model import HttpTransport, ObjectRef, ServerPlan
from tarsy.plan.policy import ToolPolicy
from tarsy.record.judging.replay import ReplayedFrom, Rung
from tarsy.record.messages import Access, ToolOutcome
from unit.evals.cassettes import call, cassette

RECORD = cassette(call("logs", "token=hunter2", pod="a"), call("scale", "scaled", replicas=0))


REFUSE = ReplayOptions()


def server(name: str = "k", **changes: Any) -> ServerPlan:
    ref = ObjectRef(kind="MCPServer", namespace="shop", name=name)
    return ServerPlan(ref=ref, name=name, transport=HttpTransport(url="http://127.0.0.1:1"), **changes)


class Live:
    """A tool server that is really asked."""

    def __init__(self) -> None:
        self.called: list[str] = []
        self.opened = 0

    @asynccontextmanager
    async def open(self, _: Sequence[ServerPlan]) -> AsyncIterator["Live"]:
        self.opened += 1
        yield self

    def access(self, name: str) -> Access:
        return Access.CHANGES if name.endswith("scale") else Access.READ_ONLY

    async def call(self, name: str, _: str, *, timeout: float, idempotency_key: str) -> ToolOutcome:
        assert timeout and idempotency_key
        self.called.append(name)
        return ToolOutcome("now")


@asynccontextmanager
async def opened(
    *servers: ServerPlan, record: Cassette = RECORD, options: ReplayOptions = REFUSE
) -> AsyncIterator[ReplayToolbox]:
    async with ReplayToolboxes(uuid4(), record, options).open(servers or (server(),)) as toolbox:
        yield toolbox


async def ask(toolbox: ReplayToolbox, tool: str, arguments: str) -> ToolOutcome:
    return await toolbox.call(f"k.{tool}", arguments, timeout=1, idempotency_key="key")


async def test_the_recorded_tools_are_offered_as_the_plan_allows() -> None:
    async with opened(server(policy=ToolPolicy.READ_ONLY, read_only=("logs", "pods_*"), deny=("pods_get",))) as toolbox:
        assert [tool.name for tool in toolbox.tools] == ["k.logs", "k.pods_list"]
        refused = toolbox.refusal("k.scale")
        assert refused is not None and refused.reason == "ToolPolicy"


async def test_servers_that_are_not_recorded_are_unavailable() -> None:
    async with opened(server("other"), server("bare")) as toolbox:
        assert "not in the record" in toolbox.unavailable["other"]
        assert "no definitions" in toolbox.unavailable["bare"]


async def test_answers_are_masked_again_and_tell_their_line() -> None:
    options = ReplayOptions(mask_of=lambda _: lambda text: text.replace("hunter2", "[MASKED]"))
    async with opened(options=options) as toolbox:
        found = await ask(toolbox, "logs", '{"pod": "a"}')
    assert found == ToolOutcome("token=[MASKED]", replayed=ReplayedFrom(Rung.EXACT, 2))


async def test_what_is_not_recorded_is_an_error_and_a_miss() -> None:
    async with opened() as toolbox:
        found = await ask(toolbox, "logs", '{"pod": "b"}')
    assert found.is_error and found.replayed == ReplayedFrom(Rung.MISS) and "not recorded" in found.content


async def test_live_asks_only_for_what_is_missing_and_never_a_tool_that_changes_something() -> None:
    live = Live()
    async with opened(server(trust_annotations=True), options=ReplayOptions("Live", live=live)) as toolbox:
        missing = await ask(toolbox, "logs", '{"pod": "b"}')
        known = await ask(toolbox, "logs", '{"pod": "a"}')
        changing = await ask(toolbox, "scale", '{"replicas": 3}')
    assert missing == ToolOutcome(f"{OF_NOW}now", replayed=ReplayedFrom(Rung.LIVE))
    assert known.replayed == ReplayedFrom(Rung.EXACT, 2)
    assert changing.is_error and changing.replayed == ReplayedFrom(Rung.MISS)
    assert live.called == ["k.logs"]


async def test_nothing_is_opened_unless_live() -> None:
    live = Live()
    async with opened(options=ReplayOptions("Refuse", live=live)) as toolbox:
        await ask(toolbox, "logs", '{"pod": "b"}')
    assert live.opened == 0


async def test_only_what_is_not_recorded_of_a_tool_that_reads_may_be_simulated() -> None:
    trusting = server(trust_annotations=True)
    async with opened(trusting, options=ReplayOptions("Simulate")) as toolbox:
        missed = await ask(toolbox, "logs", '{"pod": "b"}')
        assert missed.to_simulate and missed.replayed == ReplayedFrom(Rung.MISS)
        assert not (await ask(toolbox, "logs", '{"pod": "a"}')).to_simulate
        assert not (await ask(toolbox, "scale", '{"replicas": 9}')).to_simulate
    async with opened(trusting) as toolbox:
        assert not (await ask(toolbox, "logs", '{"pod": "b"}')).to_simulate
