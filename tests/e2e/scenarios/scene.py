"""A scenario's scene: the whole product in this process, over a real Kubernetes API and a real Postgres.

Only the models' brain and the tool servers are scripted. Controllers and worker are composed by the function that the
operator's own process uses, so what a scenario shows is what people get.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from mcp.server import MCPServer

import rights
from e2e.scenarios.brain import Brain, Gate
from e2e.scenarios.layers import check_layers
from e2e.scenarios.record import Run, read_run
from e2e.scenarios.servers import Servers
from e2e.waiting import until
from tarsy.app.lifecycle import ProcessReadiness
from tarsy.app.operator import run_product
from tarsy.app.process import ProcessContext
from tarsy.app.settings.processes import OperatorSettings
from tarsy.app.settings.work_topics import (
    DatabaseSettings,
    ExecutionSettings,
    KubernetesSettings,
    ReconcileSettings,
)
from tarsy.kube.client import KubeClient
from tarsy.kube.credentials import Secrets
from tarsy.llm.protocol import GenerateRequest
from tarsy.llm.registry import ModelRegistry
from tarsy.masking import default_masker
from tarsy.mcp.toolbox import McpToolboxes
from tarsy.observe.metrics import Metrics
from tarsy.plan.model import ServerPlan, Value
from tarsy.resources.meta import API_VERSION
from tarsy.runtime.object_reader import ClusterObjects
from tarsy.store.runs.wakeups import QUEUE_CHANNEL
from tarsy_dev.objects import documents, put_all
from wire.scripted_client import Answer

GOLDENS = Path(__file__).with_name("goldens")
WAIT_SECONDS = 90.0
STAND = Path(__file__).with_name("stand.yaml")
"""What every scenario has: a model of each backend, the two tool servers."""


class Scene:
    """A namespace, a database, and the product between them while `product` is entered."""

    def __init__(
        self, kube: KubeClient, namespace: str, pool: asyncpg.Pool, dsn: str, request: pytest.FixtureRequest
    ) -> None:
        self.kube = kube
        self.pool = pool
        self.namespace = namespace
        self._dsn = dsn
        self._request = request
        self._brain = Brain({})
        self._work: asyncio.Task[None] | None = None
        self.opened = 0
        """How often a tool server was opened."""

    @contextlib.asynccontextmanager
    async def product(
        self,
        configuration: str,
        answers: Mapping[str, Sequence[Answer]],
        *,
        tools: Mapping[str, Gate] | None = None,
        at_once: int = 4,
    ) -> AsyncIterator[None]:
        """Runs the product on a configuration.

        Args:
            configuration: YAML documents: `kind`, `name`, `spec`.
            answers: the models' script, see `Brain`.
            tools: gates that hold calls of tools, by the tool's name.
            at_once: how many runs the installation has at the same time.
        """
        await self._apply(STAND.read_text())
        await self._apply(configuration)
        self._brain = Brain(answers)
        settings = OperatorSettings(
            database=DatabaseSettings(url=self._dsn),
            kubernetes=KubernetesSettings(library_namespace=self.namespace),
            controller=ReconcileSettings(
                operator_namespace=self.namespace,
                namespaces=(self.namespace,),
                server_check_seconds=None,  # its servers are in this process, and nowhere else
                retention="forever",
            ),
            execution=ExecutionSettings(max_concurrent_total=at_once),
        )
        secrets = Secrets(self.kube)
        servers = Servers(tools or {})

        def reach(server: ServerPlan) -> MCPServer:
            self.opened += 1
            return servers.reach(server)

        toolboxes = McpToolboxes(_plain, mask=default_masker().mask, reach=reach)
        models = ModelRegistry(secrets, build=self._brain.client)
        connections = ProcessContext(
            pool=self.pool,
            client=self.kube,
            secrets=secrets,
            models=models,
            toolboxes=toolboxes,
            objects=ClusterObjects(self.kube, self.kube, default_masker().mask),
            metrics=Metrics(),
            tracing=None,
            readiness=ProcessReadiness(),
        )
        work = asyncio.create_task(run_product(settings, connections))
        self._work = work
        try:
            yield
            self._still_works()
        finally:
            work.cancel()
            await asyncio.wait([work], timeout=20)
            await models.aclose()

    async def alert(self, name: str, data: str, **spec: Any) -> None:
        """An alert of type CheckoutDown comes in."""
        await self._apply_one("Alert", name, {"alertType": "CheckoutDown", "data": data, **spec})

    async def ask(self, alert: str, name: str, question: str) -> None:
        """Asks about the alert's Investigation, which has ended."""
        about = (await self._investigation(alert))["metadata"]["name"]
        await self._apply_one("ChatMessage", name, {"investigationRef": {"name": about}, "question": question})

    async def want(self, alert: str, desired: str) -> None:
        """Sets the desired state of the alert's Investigation, and waits until its worker knows."""
        await self._want(await self._investigation(alert), desired)

    async def want_replay(self, name: str, desired: str) -> None:
        """Sets the desired state of a replay, and waits until its worker knows."""
        await self._want(await self.kube.get("Investigation", self.namespace, name), desired)

    async def want_answer(self, question: str, desired: str) -> None:
        """Sets the desired state of a question, and waits until its worker knows."""
        await self._want(await self.kube.get("ChatMessage", self.namespace, question), desired)

    async def _want(self, obj: Mapping[str, Any], desired: str) -> None:
        meta = obj["metadata"]
        await self.kube.patch(obj["kind"], self.namespace, meta["name"], {"spec": {"desiredState": desired}})

        async def written() -> Any:
            wish = "SELECT desired_state FROM investigation WHERE id = $1"
            return await self.pool.fetchval(wish, UUID(meta["uid"])) == desired

        await until(f"the record of {meta['name']} says {desired}", written, WAIT_SECONDS)
        # A heartbeat brings the wish to the run; one that follows it was begun when the first had been heard.
        for _ in range(2):
            before = await self._last_beat()

            async def beaten(before: Any = before) -> bool:
                await self.pool.execute("SELECT pg_notify($1, '')", QUEUE_CHANNEL)  # who is woken beats as well
                return bool(await self._last_beat() != before)

            await until("the worker's heart beats", beaten, WAIT_SECONDS)

    async def reached(self, gate: Gate) -> None:
        """Waits until somebody has come to a gate."""
        async with asyncio.timeout(WAIT_SECONDS):
            await gate.reached.wait()

    async def states(self, **wanted: int) -> None:
        """Waits until so many runs are in these states."""

        async def counted() -> bool:
            rows = await self.pool.fetch("SELECT state, count(*) AS runs FROM investigation GROUP BY state")
            found = {row["state"]: row["runs"] for row in rows}
            return all(found.get(state, 0) == number for state, number in wanted.items())

        await until(f"runs are {wanted}", counted, WAIT_SECONDS)

    async def run(self, alert: str) -> Run:
        """The run of an alert once it has ended and the objects show it."""

        await self._ended("Alert", alert)
        await self._published(await self._investigation(alert))
        objects = [await self._investigation(alert), await self.kube.get("Alert", self.namespace, alert)]
        return await read_run(self.pool, objects, self._brain.requests)

    async def replay(
        self, alert: str, name: str, *, meanwhile: Callable[[str], Awaitable[None]] | None = None, **replay: Any
    ) -> Run:
        """Replays the alert's Investigation, and returns the replay once it has ended and its object shows it.

        Args:
            alert: whose Investigation is the source.
            name: of the replay.
            meanwhile: is called with the name once the replay was created.
            replay: the fields of `spec.replay` beside `of`.
        """
        source = (await self._investigation(alert))["metadata"]["name"]
        await self._apply_one("Investigation", name, {"replay": {"of": {"name": source}, **replay}})
        if meanwhile is not None:
            await meanwhile(name)
        await self._ended("Investigation", name)
        await self._published(await self.kube.get("Investigation", self.namespace, name))
        objects = [await self.kube.get("Investigation", self.namespace, name)]
        return await read_run(self.pool, objects, self._brain.requests)

    async def answer(self, question: str, about: Run, *earlier: Run) -> Run:
        """The answer to a question once it has ended and its object shows it.

        Args:
            question: the name of its object.
            about: the run it was about.
            earlier: the answers before it about the same run.
        """
        await self._ended("ChatMessage", question)
        await self._published(await self.kube.get("ChatMessage", self.namespace, question))
        message = await self.kube.get("ChatMessage", self.namespace, question)
        return await read_run(self.pool, [message], self._brain.requests, about, earlier)

    async def _ended(self, kind: str, name: str) -> None:
        async def ended() -> bool:
            self._still_works()
            return _condition(await self.kube.get(kind, self.namespace, name), "Finished") == "True"

        await self._until(f"{kind} {name} is finished", ended)

    async def _published(self, obj: Mapping[str, Any]) -> None:
        async def settled() -> bool:
            self._still_works()
            uid = UUID(obj["metadata"]["uid"])
            return bool(await self.pool.fetchval("SELECT settled FROM investigation WHERE id = $1", uid))

        await self._until(f"{obj['metadata']['name']} is published", settled)

    async def _until(self, what: str, look: Callable[[], Awaitable[bool]]) -> None:
        try:
            await until(what, look, WAIT_SECONDS)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{await self._why()}") from None

    async def let(self, *rules: Mapping[str, Any]) -> None:
        """Gives the group on-call rights in the namespace; each of `rules` is one of a Role."""
        bound = rights.binding("on-call", self.namespace, "Role", "on-call", rights.group("on-call"))
        await rights.put_rights(self.kube, (rights.role("on-call", self.namespace, *rules), bound))

    async def put(self, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        """Applies an object of the namespace."""
        await self._apply_one(kind, name, spec)

    async def get(self, kind: str, name: str) -> dict[str, Any]:
        """The object of a kind and name in the namespace."""
        return await self.kube.get(kind, self.namespace, name)

    async def listed(self, kind: str) -> list[dict[str, Any]]:
        """The objects of a kind in the namespace."""
        return await self.kube.list(kind, self.namespace)

    async def investigation(self, alert: str) -> str:
        """The name of the alert's Investigation."""
        return str((await self._investigation(alert))["metadata"]["name"])

    async def reason(self, kind: str, name: str, condition: str, reason: str) -> dict[str, Any]:
        """The object once its condition has this reason."""

        async def there() -> bool:
            self._still_works()
            conditions = ((await self.get(kind, name)).get("status") or {}).get("conditions") or ()
            return any(one["type"] == condition and one["reason"] == reason for one in conditions)

        await self._until(f"{kind} {name} has {condition} with reason {reason}", there)
        return await self.get(kind, name)

    async def until(self, what: str, look: Callable[[], Awaitable[bool]]) -> None:
        """Waits until `look` says yes while the product works; a failure tells what the objects say."""
        await self._until(what, look)

    def asked(self, agent: str) -> list[GenerateRequest]:
        """The requests in the name of an agent, in order."""
        return [one for requests in self._brain.requests.values() for one in requests if one.agent == agent]

    def check(self, golden: str, run: Run, more: Mapping[str, str] | None = None) -> None:
        """Compares all layers of a run with the golden files of this name; a script that was too short is no run.

        Args:
            golden: name of the folder.
            run: the run.
            more: further texts of the scenario, by the names of their files.
        """
        failure = run.record.outcome.failure if run.record.outcome else None
        assert failure is None or failure.reason != "InternalError", failure
        check_layers(GOLDENS / golden, run, self._request, more or {})

    def _still_works(self) -> None:
        """Asserts that the product has not ended by itself."""
        assert self._work is not None
        assert not self._work.done(), repr(self._work.exception())

    async def _last_beat(self) -> Any:
        return await self.pool.fetchval("SELECT max(expires_at) FROM worker")

    async def _why(self) -> str:
        """What the objects say of themselves."""
        kinds = ("LLMProvider", "MCPServer", "Agent", "Chain", "Alert", "Investigation", "ChatMessage")
        found = [obj for kind in kinds for obj in await self.kube.list(kind, self.namespace)]
        return "\n".join(
            f"{obj['kind']} {obj['metadata']['name']}: {c['type']}={c['status']} {c['reason']}: {c['message']}"
            for obj in found
            for c in obj.get("status", {}).get("conditions", ())
        )

    async def _investigation(self, alert: str) -> dict[str, Any]:
        for found in await self.kube.list("Investigation", self.namespace):
            if found["spec"].get("alertRef", {}).get("name") == alert:
                return found
        raise AssertionError(f"alert {alert} has no Investigation")

    async def _apply(self, text: str) -> None:
        for document in documents(text):
            await self._apply_one(document["kind"], document["name"], document["spec"])

    async def _apply_one(self, kind: str, name: str, spec: Mapping[str, Any]) -> None:
        metadata = {"name": name, "namespace": self.namespace}
        await put_all(self.kube, [{"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": dict(spec)}])


async def _plain(value: Value) -> str:
    return value.value or ""


def _condition(obj: Mapping[str, Any], kind: str) -> str | None:
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((c["status"] for c in conditions if c["type"] == kind), None)
