"""SIGKILL of a worker at twelve named points, for every strategy that has the point; all of it must come out exact.

One investigation a strategy, and one kill for all of them: each round, every investigation is brought to its next
point, all stand still there, and the worker that runs them is killed. What is compared is what the models were asked
and the tool server was called, as they noted it themselves, with what the record says about it.
"""

import base64
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import yaml

from chaos.exactness import assert_record_is_whole, turns
from chaos.fleet import Fleet
from chaos.points import Gate, Points
from e2e.tenant import ANSWER, KEY, SUMMARY, Tenant, condition
from e2e.waiting import until
from extras import needs
from tarsy.kube.credentials import LABEL
from tarsy_dev.objects import put
from wire import gemini
from wire.server import StandIn, standing_in

pytestmark = [
    needs("google.genai"),
    pytest.mark.timeout(1800),
    pytest.mark.once("the API takes no part in what is shown"),
]

WITH_TOOLS = ("react", "langchain", "native-thinking")
WITHOUT = ("single-call", "synthesis", "synthesis-native-thinking")
STRATEGIES = WITH_TOOLS + WITHOUT
ANSWERING = json.loads(ANSWER)


@dataclass(frozen=True, slots=True)
class Point:
    """Where the worker dies: at a write that stands still, which is then committed or not, or in an outside call."""

    name: str
    gate: Gate | None = None
    commit: bool = False
    tools: bool = False


POINTS = (
    Point("claimed, nothing written", Gate.BEGIN),
    Point("before a model call, unwritten", Gate.MODEL_CALL_STARTED),
    Point("before a model call, written and not sent", Gate.MODEL_CALL_STARTED, commit=True),
    Point("in a model's stream"),
    Point("answered by the model, unwritten with the tool call", Gate.MODEL_CALL_FINISHED),
    Point("answered by the model, written with the tool call", Gate.MODEL_CALL_FINISHED, commit=True),
    Point("before a tool call, unwritten", Gate.TOOL_CALL_STARTED, tools=True),
    Point("before a tool call, written and not sent", Gate.TOOL_CALL_STARTED, commit=True, tools=True),
    Point("in a tool call", tools=True),
    Point("answered by the tool, unwritten with the model call", Gate.TOOL_CALL_FINISHED, tools=True),
    Point("answered by the tool, written with the model call", Gate.TOOL_CALL_FINISHED, commit=True, tools=True),
    Point("concluded, unwritten", Gate.END),
)

HANG = {"hang": {"after": 2, "times": 1}}
SCRIPT = {
    "agents": {
        "react": [
            {"text": 'Thought: I wait for it.\nAction: tools.wait\nAction Input: {"what": "react"}', **HANG},
            {"text": f"Thought: I know.\nFinal Answer: {ANSWERING}"},
        ],
        "langchain": [
            {"text": "I wait for it.", "calls": [{"name": "tools.wait", "arguments": {"what": "langchain"}}], **HANG},
            {"text": ANSWERING},
        ],
        "single-call": [{"text": ANSWERING, **HANG}],
        "synthesis": [{"text": ANSWERING, **HANG}],
        "left": [{"text": "Left is done."}],
        "right": [{"text": "Right is done."}],
    }
}


def points_of(strategy: str) -> list[Point]:
    """The points that a strategy has, in the order in which a run comes to them."""
    return [point for point in POINTS if strategy in WITH_TOOLS or not point.tools]


@pytest.fixture
async def points(bare_tenant: Tenant) -> AsyncIterator[Points]:
    connection = await asyncpg.connect(bare_tenant.machine.postgres.dsn, server_settings={"search_path": "tarsy"})
    gates = Points(connection)
    await gates.install(STRATEGIES)
    try:
        yield gates
    finally:
        await gates.remove()
        await connection.close()


async def use_gemini(tenant: Tenant, name: str, server: StandIn) -> None:
    server.known = {"name": "models/gemini-3-pro"}
    secret = {"name": name, "namespace": tenant.namespace, "labels": {LABEL: "true"}}
    data = {"api-key": base64.b64encode(KEY.encode()).decode()}
    await put(tenant.client, {"apiVersion": "v1", "kind": "Secret", "metadata": secret, "data": data})
    spec = {"type": "google", "model": "gemini-3-pro", "baseURL": server.url}
    await tenant.put("LLMProvider", name, {**spec, "apiKeySecretRef": {"name": name, "key": "api-key"}})


async def build(tenant: Tenant, servers: dict[str, StandIn]) -> None:
    """A chain for each strategy, named after it; each has the agent that is tried, named after it too."""
    await tenant.use_model(yaml.safe_dump(SCRIPT))
    await tenant.use_tools(tools={"readOnly": ["wait"]})
    hanging = gemini.stream(gemini.piece(gemini.text("I ")), hang=True)
    called = gemini.stream(gemini.last(gemini.call("tools__wait", {"what": "native"})))
    final = gemini.stream(gemini.piece(gemini.text(ANSWERING)), gemini.last())
    servers["native-thinking"].answers = [hanging, called, called, final]
    servers["synthesis-native-thinking"].answers = [hanging, final, final]
    for strategy in STRATEGIES:
        provider = "model"
        if strategy in servers:
            provider = strategy
            await use_gemini(tenant, strategy, servers[strategy])
        if strategy.startswith("synthesis"):
            synthesis = {"agent": strategy, "strategy": strategy, "llmProvider": provider}
            stage: dict[str, Any] = {"agents": [{"name": "left"}, {"name": "right"}], "synthesis": synthesis}
        else:
            stage = {"agents": [{"name": strategy, "llmProvider": provider}]}
        await tenant.use_agent(strategy, *(["tools"] if strategy in WITH_TOOLS else []), strategy=strategy)
        spec = {"llmProvider": "model", "stages": [{"name": "work", **stage}], "executiveSummary": {"enabled": False}}
        await tenant.put("Chain", strategy, spec)
    for agent in ("left", "right"):
        await tenant.use_agent(agent, strategy="single-call")


async def test_kill_at_twelve_points_of_every_strategy_repeats_no_finished_step(
    bare_tenant: Tenant, points: Points, fleet: Fleet
) -> None:
    tenant, rounds, covered = bare_tenant, len(POINTS), 0
    async with AsyncExitStack() as stack:
        native = [strategy for strategy in STRATEGIES if "native" in strategy]
        servers = {strategy: await stack.enter_async_context(standing_in()) for strategy in native}
        await build(tenant, servers)
        fleet.controller()
        runs = {strategy: await tenant.investigate(strategy, chain=strategy) for strategy in STRATEGIES}
        left = {strategy: points_of(strategy) for strategy in STRATEGIES}

        async def reached(strategy: str, point: Point) -> bool:
            if point.gate is not None:
                return bool(await points.waiting(strategy, point.gate))
            if point.tools:
                return await in_tool_call(tenant, runs[strategy])
            if strategy in servers:
                return len(servers[strategy].requests) == 1
            return any(r.agent == strategy and r.chunks >= 2 for r in tenant.model.journal.requests)

        for _ in range(rounds):
            aims = {strategy: todo.pop(0) for strategy, todo in left.items() if todo}
            for strategy, point in aims.items():
                if point.gate is not None:
                    await points.close(strategy, point.gate)
            worker = await fleet.successor()
            for strategy, point in aims.items():
                await until(f"{strategy} is at: {point.name}", lambda s=strategy, p=point: reached(s, p))  # type: ignore[misc]
            await worker.kill()
            for strategy, point in aims.items():
                if point.gate is not None:
                    await points.let_go(strategy, point.gate, commit=point.commit)
                elif point.tools:
                    (tenant.folder / "gate").touch()
            covered += len(aims)
        await fleet.successor()

        exact, repeated = 0, 0
        for strategy, identity in runs.items():
            inv = await tenant.finished(strategy)
            assert condition(inv, "Succeeded") == "True", inv["status"]
            assert inv["status"]["attempt"] == len(points_of(strategy)) + 1
            exact += inv["status"]["finding"]["summary"] == SUMMARY
            asked = len(servers[strategy].requests) if strategy in servers else asked_by(tenant, strategy)
            repeated += await repeated_steps(tenant, identity, strategy, asked)
            await assert_record_is_whole(tenant, identity, agents={strategy})
    print(
        f"\nkills {rounds}, points times strategies {covered}, repeated finished steps {repeated}, "
        f"exact final answers {exact} of {len(runs)}"
    )
    assert (repeated, exact) == (0, len(runs))


def asked_by(tenant: Tenant, agent: str) -> int:
    """How often the scripted model was asked by an agent."""
    return sum(times for (name, _), times in turns(tenant).items() if name == agent)


async def in_tool_call(tenant: Tenant, identity: UUID) -> bool:
    """Whether the tool server was asked, and the record has no answer."""
    file = tenant.folder / "calls"
    keys = {line.split()[1] for line in file.read_text().splitlines()} if file.exists() else set()
    return any(row["idempotency_key"] in keys for row in await tenant.mcp_calls(identity))


async def repeated_steps(tenant: Tenant, identity: UUID, strategy: str, asked: int) -> int:
    """Steps done once more although the record had them as finished; what was never sent was never done.

    Of each, one was written and not sent. Where there are tools, so was one more of each: the tool call that is written
    with the answer that asks for it, and the model call that is written with the tool's answer. A step in flight may
    have been done once more for each time the record lists it as interrupted; the tries of a tool call are its rows.
    """
    rows = [row for row in await tenant.model_calls(identity) if row["strategy"] == strategy]
    calls = await tenant.mcp_calls(identity)
    made = sum(
        line.split()[1] in {row["idempotency_key"] for row in calls}
        for line in ((tenant.folder / "calls").read_text().splitlines() if calls else ())
    )
    unsent = 2 if strategy in WITH_TOOLS else 1
    assert sum(row["state"] == "interrupted" for row in rows) == unsent + 2, "unsent, in its stream, unwritten"
    assert [row["state"] for row in calls].count("completed") == (strategy in WITH_TOOLS)
    return asked - (len(rows) - unsent) + (made - (len(calls) - unsent) if calls else 0)
