"""A worker pod of two processes: they share the work, one that dies is replaced, all drain, and none is left behind."""

import asyncio
import os
import re
import signal
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from e2e.machine import LONG_LEASE
from e2e.tenant import ANSWER, Tenant, condition
from e2e.test_metrics import Scrape
from e2e.waiting import until
from tarsy_dev.apiserver.process import free_port
from tarsy_dev.operator_process import ON_THIS_MACHINE, OperatorProcess

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.once("the API takes no part in what is shown"),
]
SCRIPT = f"agents: {{agent: [{{text: {ANSWER}}}]}}"
HELD = f"agents: {{agent: [{{text: {ANSWER}, gate: door}}]}}"
RUNS = ("one", "two")
"""One for each process: together they have two places."""
COMPLETED = 'tarsy_investigations_terminal_total{kind="investigation",state="completed"}'
CLAIMED = 'tarsy_investigations_claimed_total{attempt="first",kind="investigation"}'


class Pod:
    """A `tarsy worker --processes 2`, a program of its own as in a pod."""

    def __init__(self, tenant: Tenant, *arguments: str) -> None:
        self.health, metrics = free_port(), free_port()
        self.scrape = Scrape(metrics)
        self.log = tenant.folder / "pod.log"
        local = [word for word in ON_THIS_MACHINE if not word.startswith("--health-port")]
        fixed = ["--kubeconfig", str(tenant.machine.api.kubeconfig), *local, *LONG_LEASE, "--processes", "2"]
        ports = ["--health-port", str(self.health), "--metrics-port", str(metrics)]
        environment = {"TARSY_DATABASE_URL": tenant.machine.postgres.dsn}
        self.process = OperatorProcess([*fixed, *ports, *arguments], environment, self.log, command="worker")

    @property
    def children(self) -> list[int]:
        """Process ids of the worker processes."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split()] if path.exists() else []

    @property
    def draining(self) -> set[str]:
        """Numbers of the worker processes that have begun to drain."""
        lines = self.log.read_text().splitlines()
        return {number for line in lines if "stopping: " in line for number in re.findall(r"\bprocess=(\d+)", line)}

    async def told(self, path: str) -> tuple[int, str]:
        """Status and text at the health port; 0: it does not answer."""
        try:
            async with aiohttp.ClientSession() as http:
                async with http.get(f"http://127.0.0.1:{self.health}{path}") as answer:
                    return answer.status, await answer.text()
        except aiohttp.ClientError as error:
            return 0, str(error)

    async def is_ready(self) -> None:
        """Waits until all processes are ready."""

        async def look() -> bool:
            return await self.told("/readyz") == (200, "ready")

        try:
            await until("the pod is ready", look, 240)
        except AssertionError as error:
            raise AssertionError(f"{error}: {await self.told('/readyz')}\n{self.log.read_text()[-4000:]}") from None


@pytest.fixture
async def held(bare_tenant: Tenant) -> Tenant:
    """A tenant whose model keeps every run waiting, beside an operator that runs none."""
    await bare_tenant.simple(HELD)
    await bare_tenant.machine.operator("--places", "0")
    return bare_tenant


@pytest.fixture
async def pod(held: Tenant) -> AsyncIterator[Pod]:
    """A ready pod with a place in each process."""
    pod = Pod(held, "--places", "2", "--drain-seconds", "60")
    try:
        await pod.is_ready()
        yield pod
    finally:
        await pod.process.stop()


async def start_both(tenant: Tenant) -> None:
    """Starts two runs, which wait for the model, and waits until both have asked it."""
    for name in RUNS:
        await tenant.investigate(name)
    await tenant.asked(2)


async def workers(tenant: Tenant) -> dict[str, Any]:
    """The name of each live worker with a run, by the run's name."""
    rows = await tenant.rows(
        "SELECT i.name, w.host FROM lease l JOIN worker w ON w.id = l.worker "
        "JOIN investigation i ON i.id = l.investigation WHERE i.namespace = $1",
        tenant.namespace,
    )
    return {row["name"]: row["host"] for row in rows}


async def both_finish(tenant: Tenant) -> list[dict[str, Any]]:
    found = [await tenant.finished(name) for name in RUNS]
    assert [condition(inv, "Succeeded") for inv in found] == ["True", "True"]
    return found


async def test_the_processes_of_a_pod_share_its_places_and_one_that_is_killed_is_replaced(
    held: Tenant, pod: Pod
) -> None:
    tenant = held
    await start_both(tenant)
    running = await workers(tenant)
    assert sorted(name.rsplit("/")[-1] for name in running.values()) == ["1", "2"], "one place each"
    before = await pod.scrape.when("both claims are counted", **{CLAIMED: 2.0})
    assert (before["tarsy_worker_places"], before["tarsy_worker_processes"]) == (2.0, 2.0)
    children = pod.children
    assert len(children) == 2

    os.kill(children[0], signal.SIGKILL)
    await until("it is noticed", lambda: asyncio.sleep(0, len(pod.children) < 2 or pod.children != children))
    assert (await pod.told("/healthz"))[0] == 200
    await tenant.machine.lapse()  # of both: the other one registers anew and goes on as well
    await pod.is_ready()
    assert len(pod.children) == 2 and pod.children != children
    tenant.model.open_gate("door")
    found = await both_finish(tenant)
    assert max(inv["status"]["attempt"] for inv in found) > 1, "what the dead one ran was recovered"

    ended = await pod.scrape.when("both ends are counted", **{COMPLETED: 2.0})
    assert ended["tarsy_worker_process_restarts_total"] == 1.0
    fallen = [name for name, value in counters(before).items() if ended[name] < value]
    assert fallen == [], "what the dead process counted is still part of the totals"
    assert ended["tarsy_worker_processes"] == 2.0

    log = pod.log.read_text()
    assert "was ended by SIGKILL" in log
    assert "process=1" in log and "process=2" in log
    assert tenant.machine.postgres.dsn not in log


def counters(told: Counter[str]) -> dict[str, float]:
    """The samples that never decrease."""
    return {n: v for n, v in told.items() if n.partition("{")[0].endswith(("_total", "_count", "_sum", "_bucket"))}


async def test_a_pod_that_is_told_to_end_drains_all_processes(held: Tenant, pod: Pod) -> None:
    tenant = held
    await start_both(tenant)
    pod.process.terminate()
    await until("the pod is stopping", lambda: stopping(pod))
    assert (await pod.told("/healthz"))[0] == 200, "or it would be killed while it drains"
    # The pod says so before its processes know; one that the model answers before that finishes its run.
    await until("both processes drain", lambda: asyncio.sleep(0, pod.draining == {"1", "2"}))
    tenant.model.open_gate("door")
    assert await pod.process.wait(120) == 0
    assert await workers(tenant) == {}
    next_worker = tenant.machine.new_worker()
    try:
        found = await both_finish(tenant)
    finally:
        await next_worker.stop()
    assert [inv["status"]["attempt"] for inv in found] == [2, 2]
    assert len(tenant.model.journal.requests) == 2, "what was under way was waited for, and nothing is repeated"


async def stopping(pod: Pod) -> bool:
    return await pod.told("/readyz") == (503, "stopping")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="reads /proc")
async def test_processes_finish_each_investigation_once_and_do_not_outlive_their_supervisor(
    bare_tenant: Tenant,
) -> None:
    tenant = bare_tenant
    await tenant.simple(SCRIPT)
    await tenant.machine.operator("--places", "0")
    pod = Pod(tenant)
    try:
        names = [f"run-{number}" for number in range(6)]
        for name in names:
            await tenant.investigate(name)
        found = [await tenant.finished(name) for name in names]
        assert {condition(inv, "Succeeded") for inv in found} == {"True"}
        assert {inv["status"]["attempt"] for inv in found} == {1}
        await pod.scrape.when("all are counted once", **{COMPLETED: 6.0})
        await outlives_nothing(tenant, pod)
    finally:
        await pod.process.stop()


async def outlives_nothing(tenant: Tenant, pod: Pod) -> None:
    """Kills the supervisor, and waits until its processes have ended; they have its environment and no more."""
    children = pod.children
    assert len(children) == 2
    for pid in children:
        assert environment(pid) == environment(pod.process.pid), "nothing is added to it"
        assert tenant.machine.postgres.dsn.encode() not in proc(pid, "cmdline")
    pod.process.kill()
    await pod.process.wait(60)
    await until("all have ended", lambda: asyncio.sleep(0, not any(map(runs, children))))


def proc(pid: int, file: str) -> bytes:
    return Path(f"/proc/{pid}/{file}").read_bytes()


def environment(pid: int) -> set[bytes]:
    """The environment of a process, but for what Python adds to the plain locale."""
    return {entry for entry in proc(pid, "environ").split(b"\0") if not entry.startswith(b"LC_CTYPE=")}


def runs(pid: int) -> bool:
    """Whether a process runs; one that waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


async def test_a_pod_whose_first_process_cannot_start_ends_with_the_reason(bare_tenant: Tenant) -> None:
    pod = Pod(bare_tenant, "--context", "nowhere")
    try:
        assert await pod.process.wait(240) == 1
    finally:
        await pod.process.stop()
    log = pod.log.read_text()
    assert "nowhere" in log and "before it was ready" in log and "Traceback" not in log
