"""The test bed: one stack for all benchmarks, and a tenant for each, with a model and a tool server of its own.

Whether a run has ended is read from the record, not from the API server, so that waiting costs the operator nothing;
times of its end are Postgres' own, on the same clock as everything else here.
"""

import asyncio
import contextlib
import sys
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import aiohttp
import asyncpg
import yaml
from tests.bench.children import START_SECONDS, listening

from tarsy.resources.meta import API_VERSION
from tarsy.store.database import open_pool
from tarsy.store.migrate import migrate
from tarsy_dev.apiserver.process import Spawner, end, free_port
from tarsy_dev.objects import put
from tarsy_dev.operator_process import OperatorProcess
from tarsy_dev.stack import Stack, running_stack

AGENT = "investigator"
RUN_SECONDS = 600.0
POLL_SECONDS = 0.1
_OF_PREFIX = "FROM investigation WHERE namespace = $1 AND name LIKE $2 || '%'"
_SETTLED = f"SELECT count(*) {_OF_PREFIX} AND settled"  # no row is read in full: its cost would be the operator's
_ROWS = f"SELECT * {_OF_PREFIX}"
TOOL_SERVER = Path(__file__).with_name("tool_server.py")


class Bed:
    """The stack with a connection to its Postgres; the CRDs and the library are installed."""

    def __init__(self, stack: Stack, pool: asyncpg.Pool, http: aiohttp.ClientSession) -> None:
        self.stack = stack
        self.pool = pool
        self.http = http

    @contextlib.asynccontextmanager
    async def tenant(self, name: str, script: dict[str, Any], *operator: str) -> AsyncIterator["Tenant"]:
        """A namespace with model, tools, and a fresh operator that has run one investigation already.

        Args:
            name: of the namespace, and the alert type of its chain.
            script: of the model; its agents are called `investigator` (or as the chain of the benchmark says).
            operator: further arguments of `tarsy run`.
        """
        folder = self.stack.folder / name
        folder.mkdir()
        (folder / "script.yaml").write_text(yaml.safe_dump(script))
        model_port, tools_port = free_port(), free_port()
        spawner = Spawner()
        model = [sys.executable, "-m", "tarsy_dev.model", "--script", folder / "script.yaml", "--port", model_port]
        commands = {model_port: model, tools_port: [sys.executable, TOOL_SERVER, tools_port]}
        children = [
            spawner.spawn([str(part) for part in command], folder / f"{port}.log") for port, command in commands.items()
        ]
        try:
            for port in commands:
                await listening(port)
            process = self.stack.operator(*operator)
            try:
                tenant = Tenant(self, name, process, f"http://127.0.0.1:{model_port}", f"http://127.0.0.1:{tools_port}")
                await tenant.prepare()
                yield tenant
            finally:
                await process.stop()
        finally:
            for child in children:
                await asyncio.to_thread(end, child, 2.0)
            spawner.close()


class Tenant:
    """One benchmark's namespace and its processes."""

    def __init__(self, bed: Bed, name: str, operator: OperatorProcess, model: str, tools: str) -> None:
        self.bed = bed
        self.name = name
        self.operator = operator
        self.base_url = f"{model}/v1"
        self.tools_url = f"{tools}/mcp"
        self._requests = f"{model}/control/requests"

    async def prepare(self) -> None:
        """Makes the objects every benchmark has."""
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": self.name}}
        await put(self.bed.stack.client, namespace)
        await self.put("LLMProvider", "model", {"type": "openai", "model": "scripted", "baseURL": self.base_url})
        transport = {"type": "http", "http": {"url": self.tools_url}}
        await self.put("MCPServer", "tools", {"transport": transport, "toolPolicy": "All"})
        await self.put("Agent", AGENT, {"mcpServers": [{"name": "tools"}], "toolPolicy": "All"})

    async def put(self, kind: str, name: str, spec: dict[str, Any]) -> None:
        """Makes an object of this project."""
        meta = {"name": name, "namespace": self.name}
        await put(self.bed.stack.client, {"apiVersion": API_VERSION, "kind": kind, "metadata": meta, "spec": spec})

    async def chain(self, *stages: Sequence[str], summary: bool = False, iterations: int = 20) -> None:
        """Makes the chain for the namespace's alerts (a stage is the names of its agents) and warms all up with one."""
        body = [{"name": f"stage-{i}", "agents": [{"name": a} for a in stage]} for i, stage in enumerate(stages, 1)]
        spec: dict[str, Any] = {
            "alertTypes": [self.name],
            "llmProvider": "model",
            "stages": body,
            "maxIterations": iterations,
        }
        spec["loop"] = {"findingRepairs": 0}  # the script answers with filler, which has no finding to mend
        await self.put("Chain", "chain", {**spec, "executiveSummary": {"enabled": summary}})
        await self.create("warm-up")
        await self.settled("warm-up", 1)

    def alert(self, name: str) -> dict[str, Any]:
        """An alert that is investigated by the chain."""
        data = f"{name}: pods of Deployment checkout in namespace shop are crash looping"
        meta = {"name": name, "namespace": self.name}
        spec = {"alertType": self.name, "data": data}
        return {"apiVersion": API_VERSION, "kind": "Alert", "metadata": meta, "spec": spec}

    async def create(self, name: str) -> None:
        """Creates an alert."""
        await self.bed.stack.client.create(self.alert(name))

    async def create_many(self, prefix: str, count: int) -> None:
        """Creates alerts side by side."""
        async with asyncio.TaskGroup() as group:
            for number in range(count):
                group.create_task(self.create(f"{prefix}-{number}"))

    async def settled(self, prefix: str, count: int) -> list[asyncpg.Record]:
        """Waits until so many investigations of alerts with this prefix have ended and been published; their rows.

        Raises RuntimeError: one did not succeed. TimeoutError: not in time.
        """
        async with asyncio.timeout(RUN_SECONDS):
            while await self.bed.pool.fetchval(_SETTLED, self.name, prefix) < count:  # noqa: ASYNC110 (another process)
                await asyncio.sleep(POLL_SECONDS)
        rows: list[asyncpg.Record] = await self.bed.pool.fetch(_ROWS, self.name, prefix)
        for row in rows:
            if row["state"] != "completed":
                raise RuntimeError(f"{self.name}/{row['name']}: {row['state']}, {row['failure_message']}")
        return rows

    async def one_by_one(self, prefix: str, count: int) -> list[asyncpg.Record]:
        """Runs investigations, each after the one before has settled."""
        rows = []
        for number in range(count):
            await self.create(f"{prefix}-{number}-only")
            rows += await self.settled(f"{prefix}-{number}-", 1)
        return rows

    async def asked(self, count: int = 1) -> list[dict[str, Any]]:
        """Waits until the model was asked so many times since `forget`; what it was asked."""
        query = {"wait": str(count), "seconds": str(START_SECONDS)}
        async with self.bed.http.get(self._requests, params=query, raise_for_status=True) as answer:
            found: list[dict[str, Any]] = await answer.json()
            return found

    async def forget(self) -> None:
        """Empties the model's journal."""
        async with self.bed.http.delete(self._requests, raise_for_status=True):
            return


@contextlib.asynccontextmanager
async def running_bed(database_settings: Mapping[str, str] | None = None) -> AsyncIterator[Bed]:
    """A stack in a temporary folder, with everything in it that benchmarks share.

    Args:
        database_settings: further settings of its Postgres.
    """
    async with running_stack(database_settings=database_settings) as stack:
        await stack.install(admission=False)
        pool = await open_pool(stack.database_url, min_size=1, max_size=4, application="tarsy bench")
        try:
            await migrate(pool)
            async with aiohttp.ClientSession() as http:
                yield Bed(stack, pool, http)
        finally:
            await pool.close()


def loop_script(calls: int, *, tokens: int, first_ms: float = 0, per_ms: float = 0, **others: Any) -> dict[str, Any]:
    """A model whose agent makes `calls` model calls of so many tokens; all but the last ask for one tool call.

    Args:
        calls: model calls of a loop.
        tokens: chunks of text of each answer.
        first_ms: milliseconds to the first of them.
        per_ms: milliseconds between two.
        others: entries of other agents by name.
    """
    turns: list[dict[str, Any]] = [
        {"tokens": tokens, "calls": [{"name": "tools.look_up", "arguments": {"name": f"checkout-{turn}"}}]}
        for turn in range(calls - 1)
    ]
    agents = {AGENT: [*turns, {"tokens": tokens}], **{name.replace("_", "-"): e for name, e in others.items()}}
    return {"first_token_ms": first_ms, "per_token_ms": per_ms, "agents": agents}


def now() -> float:
    """Seconds since the epoch, as the model's journal and Postgres count them."""
    return time.time()
