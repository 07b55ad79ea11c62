"""Agents converse with `looping_server`: `python conversation_loop.py BASE_URL CALLS RESULT_BYTES RUNS`.

A process of its own, so that its CPU is that of the conversations alone. It prints JSON: CPU milliseconds of each
iteration, from one tool call to the next, the least of all runs: of the engine with a scripted client, of the engine
with the openai-native client, and of sending as many bytes as that has sent and reading its answer.
"""

import asyncio
import gc
import json
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import aiohttp

sys.path.insert(0, str(Path(__file__).parents[1]))

from tarsy.app.event_loop import fastest
from tarsy.llm.protocol import GenerateRequest, LLMClient
from tarsy.llm.registry import build_client
from tarsy.llm.retry import Retrying
from tarsy.plan.model import AgentLimits, Backend, Plan, ProviderPlan, Strategy, SummarizationPlan
from tarsy.record.messages import Role, ToolOutcome
from unit.engine.build import FakeToolboxes, agent, call, plan, ref, scene, stage
from wire.scripted_client import Answer, ScriptedClient

LINE = "2026-11-22T03:00:00Z checkout-7d9f {number:06d} GET /cart 200 12 ms “slow” upstream=cart-{number:06d}\n"
WINDOW = 64_000_000
BLOCK = 256 << 10
SENT_TIMES = 5


class OneClient:
    """The models of a world in which all calls have the same client, which stays open."""

    def __init__(self, client: LLMClient) -> None:
        self._client = client

    @asynccontextmanager
    async def client(self, provider: ProviderPlan) -> AsyncIterator[LLMClient]:
        """The client."""
        yield self._client


def conversation(base_url: str, calls: int) -> Plan:
    """The plan of one agent whose window holds all, so that results are sent whole and nothing is left out."""
    provider = ProviderPlan(
        ref=ref("LLMProvider", "p"),
        type="openai",
        model="m",
        base_url=base_url,
        backend=Backend.OPENAI_NATIVE,
        context_window=WINDOW,
    )
    one = agent(strategy=Strategy.LANGCHAIN, iterations=calls + 1, servers=("k",))
    whole = one.servers[0].model_copy(update={"summarization": SummarizationPlan(enabled=False)})
    one = one.model_copy(update={"provider": provider, "servers": (whole,)})
    return plan(stage("look", one), limits=AgentLimits(finding_repairs=0))


def scripted(calls: int) -> LLMClient:
    """A client that answers as the server does, without a request."""

    def answer(request: GenerateRequest) -> Answer:
        number = sum(message.role is Role.ASSISTANT for message in request.messages)
        text = "the pod restarts because its variable is missing"
        return Answer(
            text, tool_calls=() if number + 1 >= calls else (call("k.get", f"c{number}", f'{{"n": {number}}}'),)
        )

    return ScriptedClient(answer)


async def converse(of: Plan, client: LLMClient, size: int) -> list[float]:
    """CPU seconds of each iteration of one conversation but the last."""
    stamps: list[float] = []

    async def tool(_: str) -> ToolOutcome:
        stamps.append(time.process_time())
        line = LINE.format(number=len(stamps))
        return ToolOutcome(line * (size // len(line.encode())))

    s = scene(lambda request: Answer(), toolboxes=FakeToolboxes({"k.get": tool}))
    s.models = OneClient(client)  # type: ignore[assignment]
    outcome = await s.run(of)
    if outcome.failure is not None:
        raise RuntimeError(outcome.failure.message)
    return [later - earlier for earlier, later in pairwise(stamps)]


async def sent(base_url: str, numbers: Sequence[int], size: int) -> list[float]:
    """CPU seconds of a request as large as that of each iteration, in blocks that are there, and of its answer."""
    found = []
    async with aiohttp.ClientSession() as session:
        for number in numbers:
            whole = b'"role":"assistant"'.ljust(max(1, number) * size)
            blocks = [whole[start : start + BLOCK] for start in range(0, len(whole), BLOCK)]

            async def pieces(blocks: Sequence[bytes] = tuple(blocks)) -> AsyncIterator[bytes]:
                for block in blocks:
                    yield block

            start = time.process_time()
            for _ in range(SENT_TIMES):
                headers = {"Content-Length": str(len(whole))}
                async with session.post(f"{base_url}/chat/completions", data=pieces(), headers=headers) as response:
                    await response.read()
            found.append((time.process_time() - start) / SENT_TIMES)
    return found


async def main(base_url: str, calls: int, size: int, runs: int) -> None:
    """Converses and prints what it costs."""
    of = conversation(base_url, calls)
    native = Retrying(build_client(of.stages[0].agents[0].provider, "key"))
    clients = {"engine": scripted(calls), "openai-native": native}
    rounds: dict[str, list[list[float]]] = {"sent": []}
    for _ in range(runs + 1):
        for name, client in clients.items():
            gc.collect()
            rounds.setdefault(name, []).append(await converse(of, client, size))
        rounds["sent"].append(await sent(base_url, range(calls - 2), size))
    await native.aclose()
    # The first round pays for imports and connections.
    least = {name: [min(times) * 1000 for times in zip(*found[1:], strict=True)] for name, found in rounds.items()}
    print(json.dumps(least))


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=fastest()) as runner:
        runner.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
