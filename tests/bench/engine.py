"""The engine by itself: reading ReAct answers, building prompts, a model call of each strategy, a waiting agent.

No network, no Postgres: the model is `wire.scripted_client`, the record is the one of the unit tests, in memory. So
these figures are what the engine adds to what a provider's client and the store cost. Processor time, not wall time.
"""

import asyncio
import gc
import resource
import sys
from datetime import UTC, datetime
from pathlib import Path

from tests.bench.figures import Figure, Result, best_cpu

from tarsy.engine.prompts import builder
from tarsy.engine.prompts.builder import PromptTools
from tarsy.engine.prompts.react import react_section
from tarsy.engine.strategies.react import parse_react
from tarsy.engine.task import Task
from tarsy.llm.protocol import GenerateRequest
from tarsy.plan.model import AgentLimits, Plan, Strategy
from tarsy.record.messages import Role, ToolDefinition, ToolOutcome
from tarsy.record.usage import Usage
from unit.engine.build import FakeToolboxes, agent, call, plan, scene, stage, until
from wire.scripted_client import Answer

CALLS, WORDS = 10, 200
WITH_TOOLS = (Strategy.LANGCHAIN, Strategy.NATIVE_THINKING, Strategy.REACT)
WITHOUT = (Strategy.SYNTHESIS, Strategy.SYNTHESIS_NATIVE_THINKING, Strategy.SINGLE_CALL)
NOW = datetime(2026, 11, 22, 3, 0, tzinfo=UTC)


async def run(quick: bool) -> Result:
    """Measures in a thread: nothing here may wait for another loop's tasks."""
    return await asyncio.to_thread(_measure, quick)


def _measure(quick: bool) -> Result:
    size, rounds, runs, agents = (50_000, 1, 3, 20) if quick else (1_000_000, 5, 50, 500)
    figures = [*_parser(size, rounds), *_prompts(size, 20 if quick else 500, rounds)]
    figures += [_strategy(strategy, CALLS, runs, rounds) for strategy in WITH_TOOLS]
    figures += [_strategy(strategy, 1, runs * CALLS, rounds) for strategy in WITHOUT]
    figures.append(Figure("memory of an agent that waits for its model", _memory(agents), "KiB"))
    how = (
        f"best of {rounds} rounds, one core. Parser: {size:,} characters of each kind. Prompts: an alert of {size:,} "
        f"characters. A model call: {WORDS} streamed words, all but the last with one tool call; record in memory, "
        f"no provider's client. Memory: what the process grows by for {agents} agents of one stage in their first call."
    )
    return Result(how, figures)


def _parser(size: int, rounds: int) -> list[Figure]:
    tools = [ToolDefinition(f"kubernetes.tool_{i}", "", {"type": "object", "properties": {}}) for i in range(50)]
    step = "Thought: The pod restarts, I read its log.\nAction: kubernetes.tool_7\nAction Input: "
    texts = {
        "a long thought, one call": "Thought: " + _filled("The pod restarts; its log says why.\n", size) + step + "{}",
        "one call with a large input": step + '{"text": "' + _filled("a line of text, ", size) + '"}',
        "a long final answer": "Final Answer: " + _filled("The key was renamed in revision 7.\n", size),
        "hostile: Action: only": _filled("Action:", size),
    }
    found = []
    for name, text in texts.items():
        seconds = best_cpu(lambda text=text: parse_react(text, tools), rounds)
        found.append(Figure(f"ReAct parser, {name}", len(text.encode()) / 1e6 / seconds, "MB/s"))
    return found


def _prompts(size: int, tools: int, rounds: int) -> list[Figure]:
    schema = {
        "type": "object",
        "required": ["namespace"],
        "properties": {f"p{i}": {"type": "string", "description": "What it selects."} for i in range(8)},
    }
    listed = [ToolDefinition(f"kubernetes.tool_{i}", "Lists what there is. " * 5, schema) for i in range(tools)]
    task = Task("KubePodCrashLooping", _filled("pod checkout <!-- restarts -->\n", size), "", (), "triage")
    plain = best_cpu(lambda: builder.investigation_messages(agent(), task, NOW, PromptTools()), rounds)
    react = best_cpu(
        lambda: builder.investigation_messages(agent(), task, NOW, PromptTools(sections=[react_section(listed)])),
        rounds,
    )
    return [
        Figure(f"prompt, alert of {size / 1e6:g} MB", plain * 1000, "ms"),
        Figure(f"prompt, the same and {tools} tools in ReAct's list", react * 1000, "ms"),
    ]


def _strategy(strategy: Strategy, calls: int, runs: int, rounds: int) -> Figure:
    words = "the pod restarts because its variable is missing " * (WORDS // 8)
    usage = Usage(input_tokens=4_000, output_tokens=WORDS)

    def brain(request: GenerateRequest) -> Answer:
        turn = sum(message.role is Role.ASSISTANT for message in request.messages)
        if turn + 1 >= calls:
            return Answer(f"Final Answer: {words}" if strategy is Strategy.REACT else words, usage=usage)
        if strategy is Strategy.REACT:
            return Answer(f'Thought: {words}\nAction: k.get\nAction Input: {{"n": {turn}}}', usage=usage)
        return Answer(words, tool_calls=(call("k.get", f"c{turn}", f'{{"n": {turn}}}'),), usage=usage)

    async def tool(_: str) -> ToolOutcome:
        return ToolOutcome("NAME READY STATUS\n" * 50)

    async def work() -> None:
        for _ in range(runs):
            servers = ("k",) if strategy in WITH_TOOLS else ()
            of = _plan(strategy, calls + 1, servers)
            outcome = await scene(brain, toolboxes=FakeToolboxes({"k.get": tool})).run(of)
            if outcome.failure is not None:
                raise RuntimeError(f"{strategy}: {outcome.failure.message}")

    seconds = best_cpu(lambda: asyncio.run(work()), rounds)
    return Figure(f"a model call of {strategy.value}", seconds * 1000 / (runs * calls), "ms")


def _plan(strategy: Strategy, iterations: int, servers: tuple[str, ...]) -> Plan:
    one = agent(strategy=strategy, iterations=iterations, servers=servers)
    return plan(stage("look", one), limits=AgentLimits(finding_repairs=0))


def _memory(agents: int) -> float:
    """KiB by which the process grows for each agent; the most it ever had, so nothing else may have needed more."""

    async def work() -> float:
        s = scene(lambda request: Answer("x", wait=never))
        gc.collect()
        before = _resident()
        running = asyncio.create_task(s.run(plan(stage("look", *(agent(f"a{i}") for i in range(agents))))))
        await until(lambda: len(s.models.requests) == agents)
        grown = _resident() - before
        running.cancel()
        await asyncio.wait([running])
        return grown / agents

    never = asyncio.Event()
    return asyncio.run(work())


def _resident() -> float:
    """KiB of this process in memory now; what it had at most, where the kernel does not say."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1024
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most / 1024 if sys.platform == "darwin" else most


def _filled(text: str, size: int) -> str:
    return text * (size // len(text))
