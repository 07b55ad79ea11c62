"""A worker whose model's words are times: `python live_worker.py DSN`. It claims what waits, and ends when killed.

The words come from `stamp_server`, by a real client; each gets a space, since words are told when they have ended, and
loses the digits that do not change, since a word of 20 digits might be part of a key.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from stamp_server import DIGITS, MICROSECONDS

from tarsy.llm.protocol import Chunk, GenerateRequest, LLMClient, TextChunk
from tarsy.llm.registry import build_client
from tarsy.plan.model import ProviderPlan
from tarsy.runtime.run import Runner, RunnerOptions
from tarsy.runtime.settings import WorkerSettings
from tarsy.runtime.worker import Worker
from tarsy.store.database import open_pool
from tarsy.store.runs.claims import Claims
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.runs.wakeups import FOLLOW_CHANNEL
from tarsy.stream.deltas import Deltas
from tarsy.stream.listener import Listener
from tarsy.stream.notifier import Notifier
from unit.engine.build import FakeToolboxes


class Words:
    """A client whose tokens become words."""

    def __init__(self, client: LLMClient) -> None:
        self._client = client

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        async with aclosing(self._client.generate(request)) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, TextChunk):
                    stamps = (chunk.text[at : at + DIGITS] for at in range(0, len(chunk.text), DIGITS))
                    yield TextChunk("".join(f"{int(stamp) // 1000 % MICROSECONDS} " for stamp in stamps))
                else:
                    yield chunk

    async def aclose(self) -> None:
        await self._client.aclose()


class Models:
    """A client for each call."""

    @asynccontextmanager
    async def client(self, provider: ProviderPlan) -> AsyncIterator[LLMClient]:
        client = Words(build_client(provider, "key"))
        try:
            yield client
        finally:
            await client.aclose()


async def main(dsn: str) -> None:
    """Works until it is killed."""
    pool = await open_pool(dsn)
    notifier = Notifier(pool)
    listener = Listener(dsn, (FOLLOW_CHANNEL,))
    deltas = Deltas(pool, listener.hear)
    runner = Runner(
        pool, Runs(pool, notifier.notify), Models(), FakeToolboxes(), notifier.notify, RunnerOptions(deltas=deltas)
    )
    worker = Worker(Claims(pool, notifier.notify), runner, WorkerSettings(poll_seconds=0.5), asyncio.Event())
    async with asyncio.TaskGroup() as group:
        for service in (notifier, listener, deltas, worker):
            group.create_task(service.run())


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
