"""Runs the active controller in this process, with a namespace, a database and workers that tests play by hand."""

import asyncio
import contextlib
import ssl
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from uuid import UUID, uuid4

import asyncpg

from apis import configuration_of
from tarsy.controllers.machinery.active import ActiveController, PeriodicWork
from tarsy.controllers.machinery.cache import Cache
from tarsy.controllers.machinery.context import (
    ControllerSettings,
    KubernetesPorts,
    OutboundPorts,
    ReadinessChecks,
    ReconcileContext,
    StorePorts,
)
from tarsy.controllers.machinery.relist import learn
from tarsy.controllers.readiness.server_checks import ServerChecks
from tarsy.controllers.readiness.transitions import TransitionRecorder
from tarsy.controllers.tool_workloads.pod_rules import PodSettings
from tarsy.controllers.tool_workloads.pod_users import PodUsers
from tarsy.engine.ports import Models
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.credentials import Secrets
from tarsy.kube.events import Events
from tarsy.kube.lease import LeaderElection
from tarsy.kube.values import Values
from tarsy.masking import default_masker
from tarsy.mcp.connection import Policy
from tarsy.observe.metrics import Metrics
from tarsy.plan.workload import WorkloadAddress, service_address
from tarsy.record.finding import Confidence, Finding
from tarsy.record.run import InvestigationRecord, RunOutcome, State
from tarsy.resources.meta import API_VERSION
from tarsy.resources.v1alpha1 import KINDS
from tarsy.runbook.fetch import Fetcher
from tarsy.runtime.git_files import ReadGitFile
from tarsy.store.approvals import ApprovalStore
from tarsy.store.git_texts import GitTextStore
from tarsy.store.history.condition_transitions import ConditionTransitions
from tarsy.store.intake import Intake
from tarsy.store.judging.calibration import Verdicts
from tarsy.store.judging.evals import Evals
from tarsy.store.judging.judge_calls import JudgeCalls
from tarsy.store.judging.outcomes import Outcomes
from tarsy.store.judging.replays import Replays
from tarsy.store.judging.reviews import Reviews
from tarsy.store.judging.scores import Scores
from tarsy.store.questions import Questions
from tarsy.store.reading.precedents import PrecedentSearch
from tarsy.store.reading.reads import Reads
from tarsy.store.retention import Retention
from tarsy.store.runs.calls import Calls
from tarsy.store.runs.claims import ClaimedRun, Claims
from tarsy.store.runs.lifecycle import Runs
from tarsy.store.runs.revisions import Revisions
from tarsy.store.runs.workloads import Workloads
from tarsy.store.tool_definitions import ToolDefinitions
from unit.controllers.builders import reconcile_context

T = TypeVar("T")


async def eventually(look: Callable[[], Awaitable[T]], seconds: float = 60.0) -> T:
    """What `look` finds as soon as it is something; AssertionErrors of `look` count as nothing yet."""
    until = time.monotonic() + seconds
    while True:
        try:
            found = await look()
            if found:
                return found
            problem: object = f"found {found!r}"
        except (AssertionError, ApiError) as error:
            problem = error
        if time.monotonic() > until:
            raise AssertionError(f"not so within {seconds:g} s: {problem}")
        await asyncio.sleep(0.05)


class CountingClient(KubeClient):
    """Counts the writes and the lists that it sends."""

    writes: Counter[str]
    lists: Counter[str]

    async def request(self, method: str, target: str, **rest: Any) -> dict[str, Any]:
        if method != "GET":
            kind = target.split("/namespaces/", 1)[-1].split("/", 1)[-1]
            parts = kind.split("/")
            name = f"{method} {parts[0]}" + (f"/{parts[2]}" if len(parts) > 2 else "")
            if parts[0] != "leases":
                self.writes[name] += 1
        elif "/" not in target.rsplit("/namespaces/", 1)[-1].split("/", 1)[-1]:
            self.lists[target.rsplit("/", 1)[-1]] += 1
        return await super().request(method, target, **rest)


class Chosen(LeaderElection):
    """Believes that it is the one, whatever the Lease says."""

    async def run(self) -> None:
        self.passive.clear()
        self.active.set()
        await asyncio.Event().wait()


class Desk:
    """A namespace, a database, and controllers for them."""

    def __init__(self, kube: KubeClient, namespace: str, pool: asyncpg.Pool, kubeconfig: Path) -> None:
        self.kube = kube
        self.namespace = namespace
        self.pool = pool
        self.kubeconfig = kubeconfig
        self.reads = Reads(pool)
        self.intake = Intake(pool)
        self.evals = Evals(pool)
        self.revisions = Revisions(pool)
        self.approvals = ApprovalStore(pool)
        self.definitions = ToolDefinitions(pool)
        self.reviews = Reviews(pool)
        self.transitions = ConditionTransitions(pool)
        self.changed = asyncio.Event()
        self.lists: Counter[str] = Counter()
        self.runs = Runs(pool, self._notify)
        self.claims = Claims(pool, self._notify)

    def _notify(self, channel: str, payload: str) -> None:
        self.changed.set()

    async def _namespace_uid(self, name: str) -> str:
        return str((await self.kube.get("Namespace", None, name))["metadata"]["uid"])

    async def listed(self) -> ReconcileContext:
        """The context of a controller whose watch tells it nothing more than there is now."""
        cache = Cache()
        await learn(self.kube, cache, (self.namespace,), seen=lambda raw, instead_of=None: cache.put(raw))
        plain = reconcile_context(self.kube, self.reads, cache)
        ports = KubernetesPorts(self.kube, Events(self.kube), plain.kubernetes.read_secret)
        return replace(plain, kubernetes=ports, settings=ControllerSettings(self.namespace))

    @contextlib.asynccontextmanager
    async def controller(
        self,
        *,
        kubeconfig: Path | None = None,
        everywhere: bool = False,
        relist_seconds: float = 300.0,
        library: str | None = None,
        runbook_hosts: tuple[str, ...] = (),
        runbooks: Fetcher | None = None,
        pod_users: PodUsers = "Auto",
        gateway_image: str | None = "tarsy-operator:test",
        git_hosts: tuple[str, ...] = (),
        read_git: ReadGitFile | None = None,
        models: Models | None = None,
        retention_seconds: float | None = None,
        look_every: float | None = None,
        metrics: Metrics | None = None,
        require_author: bool = False,
        default_chain_seconds: float = 300.0,
        address: WorkloadAddress = service_address,
    ) -> AsyncIterator[Counter[str]]:
        """Runs an active controller; gives the count of its writes.

        Tool servers are looked at every `look_every` seconds; not at all when it is not given. Those that run in the
        cluster are where `address` says.
        """
        if everywhere:
            await self._alone()
        async with CountingClient(await configuration_of(kubeconfig or self.kubeconfig)) as client:
            client.writes, client.lists = Counter(), self.lists
            secrets, checks = Secrets(client), None
            if look_every is not None:
                policy = Policy(Values(client, secrets), ssl.create_default_context())
                checks = ServerChecks(policy, default_masker().mask, interval=look_every, address=address)
            controller = ActiveController(
                KubernetesPorts(client, Events(client), secrets),
                StorePorts(
                    Runs(self.pool, self._notify, metrics),
                    self.reads,
                    Questions(self.pool, self._notify),
                    self.intake,
                    replays=Replays(self.pool),
                    evals=self.evals,
                    judge_calls=JudgeCalls(self.pool, uuid4()),
                    precedents=PrecedentSearch(self.pool, metrics=metrics),
                    revisions=self.revisions,
                    approvals=self.approvals,
                    definitions=self.definitions,
                    reviews=self.reviews,
                    verdicts=Verdicts(self.pool),
                    outcomes=Outcomes(self.pool),
                    scores=Scores(self.pool, metrics),
                    git_texts=GitTextStore(self.pool),
                    changed=self.changed,
                ),
                ControllerSettings(
                    library_namespace=library or self.namespace,
                    namespaces=() if everywhere else (self.namespace,),
                    pods=PodSettings("tarsy-system", pod_users, gateway_image),
                    git_hosts=git_hosts,
                    runbook_hosts=runbook_hosts,
                    require_author=require_author,
                    default_chain_seconds=default_chain_seconds,
                    relist_seconds=relist_seconds,
                ),
                Chosen(client, self.namespace, "tarsy-controller", uuid4().hex),
                OutboundPorts(ReadinessChecks(servers=checks), runbooks, read_git, models),
                PeriodicWork(
                    purge=None if retention_seconds is None else partial(Retention(self.pool).purge, retention_seconds),
                    running=Workloads(self.pool).running,
                    calls=Calls(self.pool),
                    transitions=TransitionRecorder(self.transitions, self._namespace_uid, default_masker().mask),
                ),
                metrics,
            )
            task = asyncio.create_task(controller.run())
            try:
                yield client.writes
                assert not task.done(), task.exception()
            finally:
                task.cancel()
                await asyncio.wait([task], timeout=20)

    async def _alone(self) -> None:
        """Deletes what other tests left behind in their namespaces: who looks everywhere would work on all of it."""
        for kind, model in KINDS.items():
            there = {item["metadata"]["namespace"] for item in await self.kube.list(kind)}
            for namespace in there:
                if namespace.startswith("test-") and not namespace.startswith(self.namespace):
                    await self.kube.request("DELETE", f"/apis/{API_VERSION}/namespaces/{namespace}/{model.PLURAL}")

    async def put(self, kind: str, name: str, spec: Mapping[str, Any], **meta: Any) -> dict[str, Any]:
        metadata = {"name": name, "namespace": self.namespace, **meta}
        return await self.kube.create({"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec})

    async def core(self, kind: str, name: str, data: Mapping[str, Any], **meta: Any) -> dict[str, Any]:
        metadata = {"name": name, "namespace": self.namespace, **meta}
        return await self.kube.create({"apiVersion": "v1", "kind": kind, "metadata": metadata, **data})

    async def configure(self, *, skip: tuple[str, ...] = ()) -> None:
        """A chain for alert type PodCrash, with all that it names."""
        specs: dict[str, Mapping[str, Any]] = {
            "LLMProvider": {"type": "openai", "model": "m"},
            "Agent": {"instructions": "Look."},
            "Chain": {
                "alertTypes": ["PodCrash"],
                "llmProvider": "one",
                "stages": [{"name": "look", "agents": [{"name": "one"}]}],
            },
        }
        for kind, spec in specs.items():
            if kind not in skip:
                await self.put(kind, "one", spec)

    async def alert(self, name: str = "crash", **spec: Any) -> dict[str, Any]:
        return await self.put("Alert", name, {"alertType": "PodCrash", "data": "it crashed", **spec})

    async def get(self, kind: str, name: str) -> dict[str, Any]:
        return await self.kube.get(kind, self.namespace, name)

    async def conditions(self, kind: str, name: str) -> dict[str, tuple[str, str, str]]:
        """Status, reason and message of each condition."""
        status = (await self.get(kind, name)).get("status") or {}
        return {c["type"]: (c["status"], c["reason"], c.get("message", "")) for c in status.get("conditions", ())}

    async def reason(self, kind: str, name: str, type_: str, status: str, reason: str) -> str:
        """Waits for a condition; its message."""

        async def look() -> str:
            found = (await self.conditions(kind, name)).get(type_)
            assert found is not None and found[:2] == (status, reason), found
            return found[2] or "-"

        return await eventually(look)

    async def investigations(self) -> list[dict[str, Any]]:
        return await self.kube.list("Investigation", self.namespace)

    async def queued(self, alert: str = "crash") -> dict[str, Any]:
        """Waits until the alert's run is in the record; the Investigation."""

        async def look() -> dict[str, Any] | None:
            for found in await self.investigations():
                of_alert = (found["spec"].get("alertRef") or {}).get("name") in (alert, None)
                if of_alert and await self.reads.record(UUID(found["metadata"]["uid"])):
                    return found
            return None

        found = await eventually(look)
        assert found is not None
        return found

    async def record(self, investigation: Mapping[str, Any]) -> InvestigationRecord:
        found = await self.reads.record(UUID(investigation["metadata"]["uid"]))
        assert found is not None
        return found

    async def claim(self) -> ClaimedRun:
        """What a worker does first; a run of another test's namespace is left alone."""
        worker = uuid4()
        await self.claims.register(worker, "test", 600)
        while True:
            (claimed,) = await self.claims.claim(worker, 1, 1000)
            if claimed.namespace == self.namespace:
                return claimed

    async def claim_question(self) -> ClaimedRun | None:
        """The next question that a worker would answer, None when there is none."""
        worker = uuid4()
        await self.claims.register(worker, "test", 600)
        return next(iter(await self.claims.claim(worker, 0, 1000, questions=1)), None)

    async def finished(self, name: str, **spec: Any) -> dict[str, Any]:
        """An Investigation that has run."""
        body = {"alert": {"alertType": "PodCrash", "data": "it crashed"}, **spec}
        await self.put("Investigation", name, body)
        await self.reason("Investigation", name, "Accepted", "True", "Planned")
        await self.finish(await self.claim())
        await self.reason("Investigation", name, "Finished", "True", "Succeeded")
        return await self.get("Investigation", name)

    async def ask(self, name: str, about: str, question: str = "Why?", **spec: Any) -> dict[str, Any]:
        return await self.put("ChatMessage", name, {"investigationRef": {"name": about}, "question": question, **spec})

    async def finish(self, claimed: ClaimedRun, state: State = State.COMPLETED) -> None:
        """What a worker does last."""
        finding = Finding(summary="The image does not exist.", confidence=Confidence.HIGH)
        await self.runs.finish(claimed.id, claimed.attempt, RunOutcome(state, finding=finding))

    async def events(self) -> list[tuple[str, str]]:
        """Object and reason of every Event."""
        found = await self.kube.list("Event", self.namespace)
        return sorted((item["involvedObject"]["kind"], item["reason"]) for item in found)

    async def told(self, *wanted: tuple[str, str]) -> list[tuple[str, str]]:
        """Object and reason of every Event, once all these are there: they are written after what they tell of."""

        async def look() -> list[tuple[str, str]]:
            found = await self.events()
            assert Counter(wanted) <= Counter(found), found
            return found

        return await eventually(look)

    async def relists(self, times: int = 3) -> None:
        """Waits until the controllers have listed all objects so many times more."""
        until = self.lists["investigations"] + times

        async def look() -> bool:
            return self.lists["investigations"] >= until

        await eventually(look)

    async def still(self, kind: str, name: str, seconds: float = 1.5) -> None:
        """Waits until the object is not written any more, for so long."""

        async def look() -> bool:
            before = (await self.get(kind, name))["metadata"]["resourceVersion"]
            await asyncio.sleep(seconds)
            return bool((await self.get(kind, name))["metadata"]["resourceVersion"] == before)

        await eventually(look)
