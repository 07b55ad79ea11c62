"""Runs a worker in a process of its own, whose model streams the words that arrive on standard input."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tarsy.llm.protocol import Chunk, EndChunk, GenerateRequest, LLMClient, TextChunk, ThinkingChunk
from tarsy.plan.model import ProviderPlan
from tarsy.runtime.run import Runner, RunnerOptions
from tarsy.runtime.settings import WorkerSettings
from tarsy.runtime.worker import Worker, WorkerWakeups
from tarsy.store.database import open_pool
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.runs.wakeups import FOLLOW_CHANNEL
from tarsy.stream.deltas import Deltas
from tarsy.stream.listener import Listener
from tarsy.stream.notifier import Notifier
from unit.engine.build import FakeToolboxes


class Spoken:
    """Says what it is told to."""

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        while (said := json.loads(await asyncio.to_thread(sys.stdin.readline))) is not None:
            kind, text = said
            yield ThinkingChunk(text) if kind == "thinking" else TextChunk(text)
        yield EndChunk(finish_reason="stop")

    async def aclose(self) -> None:
        pass


class Models:
    """Every provider is that one."""

    @asynccontextmanager
    async def client(self, provider: ProviderPlan) -> AsyncIterator[LLMClient]:
        yield Spoken()


async def main(dsn: str) -> None:
    """Works until it is killed."""
    pool = await open_pool(dsn)
    notifier, wake = Notifier(pool), WorkerWakeups()
    listener = Listener(dsn, (FOLLOW_CHANNEL,))
    deltas = Deltas(pool, listener.hear)
    runner = Runner(
        pool, Runs(pool, notifier.notify), Models(), FakeToolboxes(), notifier.notify, RunnerOptions(deltas=deltas)
    )
    worker = Worker(Claims(pool, notifier.notify), runner, WorkerSettings(), wake)
    async with asyncio.TaskGroup() as group:
        for service in (notifier, listener, deltas, worker):
            group.create_task(service.run())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
