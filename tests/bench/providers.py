"""What a provider adds: time from the wire to the loop, and CPU, beside the SDKs alone, in the same run.

Each client reads the same streams in a process of its own, one client after the other, in rounds; medians of rounds.
"""

import asyncio
import statistics
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.bench.children import found_by, listening
from tests.bench.figures import Figure, Result, percentile

from tarsy_dev.apiserver.process import free_port

TOKENS = 200
CLIENTS = {
    "openai-native": "openai-native",
    "langchain": "langchain (openai)",
    "sdk": "openai package alone",
    "chat": "ChatOpenAI alone",
    "google-native": "google-native",
    "genai": "google-genai alone",
}
BESIDE = {"langchain": "chat", "google-native": "genai"}
"""The clients of this project that stand on an SDK, and that SDK alone."""
SERVER = Path(__file__).with_name("stamp_server.py")
LOOP = Path(__file__).with_name("provider_loop.py")


async def run(quick: bool) -> Result:
    """All clients: as fast as they can, then at the pace of a model."""
    rounds, loops = (1, 10) if quick else (5, 40)
    paces = {"no delay": ("0", loops, 1), "20 streams at once, 5 ms a token": ("5", 20 if quick else 60, 20)}
    figures: list[Figure] = []
    async with _server() as base_url:
        for pace, (apart, calls, at_once) in paces.items():
            found: dict[str, list[dict[str, Any]]] = {name: [] for name in CLIENTS}
            for _ in range(rounds):
                for name, series in found.items():
                    series.append(await found_by(LOOP, name, base_url, _model(name, apart), str(calls), str(at_once)))
            for name, series in found.items():
                cpu = [one["cpu_seconds"] * 1000 / calls for one in series]
                delays = [delay for one in series for delay in one["delays"]]
                said, per_call = f"{CLIENTS[name]}, {pace}", statistics.median(cpu)
                figures += [
                    Figure(f"{said}: CPU a call", per_call, "ms", detail=cpu),
                    Figure(f"{said}: CPU for 1,000 tokens", per_call * 1000 / TOKENS, "ms"),
                    Figure(f"{said}: wire to loop, p50", percentile(delays, 0.5), "ms"),
                    Figure(f"{said}: wire to loop, p99", percentile(delays, 0.99), "ms"),
                ]
            figures += [_ratio(found, name, bare, pace) for name, bare in BESIDE.items()]
    how = (
        f"A call is a stream of {TOKENS} tokens; {rounds} rounds of all clients in turn, each in a fresh process "
        "after calls that are not counted. CPU is user+system of the client's process. Wire to loop: from the server's "
        "write, in another process, to the consumer's loop; without delay it is mostly waiting behind earlier tokens."
    )
    return Result(how, figures)


def _model(client: str, apart: str) -> str:
    """The name by which the server knows how to answer."""
    return f"{TOKENS}-{apart}" if client in ("google-native", "genai") else f"{TOKENS}@{apart}"


def _ratio(found: dict[str, list[dict[str, Any]]], name: str, bare: str, pace: str) -> Figure:
    """How much CPU a client of this project needs, relative to its SDK alone in the same rounds."""
    mine, other = (statistics.median(one["cpu_seconds"] for one in found[client]) for client in (name, bare))
    return Figure(f"{CLIENTS[name]} over {CLIENTS[bare]}, {pace}: CPU", mine / other, "times", "at most 1.25")


@asynccontextmanager
async def _server() -> AsyncIterator[str]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(sys.executable, str(SERVER), str(port))
    try:
        await listening(port)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        await process.wait()
