"""CPU of a model call as its conversation grows: what did not change must cost nothing again.

Results of 30 KB that are sent whole, in a window that holds them all. Sending a request of three megabytes costs what
the kernel takes for it, so that is measured beside it, and the ratio is also shown without it.
"""

import asyncio
import statistics
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from tests.bench.children import found_by, listening
from tests.bench.figures import Figure, Result

from tarsy_dev.apiserver.process import free_port

SERVER = Path(__file__).with_name("looping_server.py")
LOOP = Path(__file__).with_name("conversation_loop.py")
RESULT_BYTES = 30_000
AIM = "1"


async def run(quick: bool) -> Result:
    """Runs conversations in a fresh process."""
    shown, runs = ((1, 5, 10), 1) if quick else ((1, 10, 25, 50, 100), 12)
    calls = shown[-1] + 4
    async with _server(calls) as base_url:
        found = await found_by(LOOP, base_url, str(calls), str(RESULT_BYTES), str(runs))
    series = {
        "engine": found["engine"],
        "openai-native": found["openai-native"],
        "the same bytes sent alone": found["sent"],
        "openai-native, without sending": [
            whole - sent for whole, sent in zip(found["openai-native"], found["sent"], strict=True)
        ],
    }
    figures = []
    for name, times in series.items():
        values = {iteration: _at(times, iteration) for iteration in shown}
        figures += [Figure(f"{name}: iteration {iteration}", value, "ms") for iteration, value in values.items()]
        aim = "" if name.endswith("alone") else AIM
        figures.append(Figure(f"{name}: {shown[-1]} to 1", values[shown[-1]] / values[1], "times", aim, detail=times))
    how = (
        f"{runs} conversations of {calls} calls, each but the last with a tool call and its result of "
        f"{RESULT_BYTES // 1000} KB. An iteration is from one tool call to the next: result, record (in memory), next "
        "request, answer. CPU of the process (user+system), the least of all conversations, the median of five "
        "iterations around the one named. The model is another process."
    )
    return Result(how, figures)


def _at(times: Sequence[float], iteration: int) -> float:
    return statistics.median(times[max(0, iteration - 3) : iteration + 2])


@asynccontextmanager
async def _server(calls: int) -> AsyncIterator[str]:
    port = free_port()
    process = await asyncio.create_subprocess_exec(sys.executable, str(SERVER), str(port), str(calls))
    try:
        await listening(port)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        await process.wait()
