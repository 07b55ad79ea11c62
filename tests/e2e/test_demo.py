"""`tarsy demo` and `tarsy dev`: everything from one command, and nothing left when it ends, however it ends."""

import asyncio
import contextlib
import fcntl
import getpass
import os
import pty
import shlex
import shutil
import signal
import struct
import sys
import tempfile
import termios
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from apis import ApiKind, find_kubectl
from e2e.person import heed_ctrl_c
from e2e.tenant import condition
from e2e.waiting import until
from e2e.walk import walked
from tarsy.http.web_ui import is_built
from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.meta import API_VERSION
from tarsy_dev.apiserver.errors import LocalKubernetesError
from tarsy_dev.apiserver.progress import BuildProgress
from tarsy_dev.monitoring.binaries import acquire_monitoring
from tarsy_dev.objects import manifest, put

pytestmark = pytest.mark.timeout(900)
START_SECONDS = 240.0
INVESTIGATION = {
    "apiVersion": API_VERSION,
    "kind": "Investigation",
    "metadata": {"name": "kept", "namespace": "default"},
}
BEHIND = {"real": ["etcd", "kube-apiserver"], "embedded": []}
"""The processes of a Kubernetes API."""


class Command:
    """One `tarsy` command, its output and its processes."""

    def __init__(self, process: asyncio.subprocess.Process, folder: Path, log: Path) -> None:
        self.process = process
        self.folder = folder
        self.log = log

    def output(self) -> str:
        return self.log.read_text(errors="replace")

    @property
    def kubeconfig(self) -> str:
        """The file whose name it printed."""
        (line,) = [line for line in self.output().splitlines() if "export KUBECONFIG=" in line]
        return line.split("=", 1)[1]

    def commands(self, program: str) -> list[str]:
        """The commands of a program that it printed to be copied."""
        return [line.strip() for line in self.output().splitlines() if line.startswith(f"    {program}")]

    def left(self) -> list[str]:
        """What is in its temporary folder, while others may add and remove."""
        return [str(Path(at, name)) for at, folders, files in os.walk(self.folder) for name in (*folders, *files)]

    def family(self) -> set[int]:
        """The process and all its descendants."""
        children: dict[int, list[int]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
                except (OSError, IndexError):
                    continue
                children.setdefault(parent, []).append(int(entry.name))
        found, todo = {self.process.pid}, [self.process.pid]
        while todo:
            todo = [child for parent in todo for child in children.get(parent, ())]
            found.update(todo)
        return found

    async def said(self, text: str, seconds: float = START_SECONDS) -> None:
        """Waits until the output has a text."""

        async def look() -> bool:
            assert self.process.returncode is None or text in self.output(), self.output()
            return text in self.output()

        await until(f"the output says {text!r}", look, seconds)

    async def ended(self, seconds: float) -> int:
        """The exit status."""
        async with asyncio.timeout(seconds):
            return await self.process.wait()


def open_folder() -> Path:
    """Not below pytest's own folder, which other users may not enter: as root, Postgres runs as one."""
    folder = Path(tempfile.mkdtemp(prefix="tarsy-e2e-"))
    folder.chmod(0o711)
    return folder


@contextlib.contextmanager
def _terminal(log: Path) -> Iterator[int]:
    """A terminal of 80 columns; what is written to it goes to a file, until all who have it open are gone."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 80, 0, 0))

    def copy() -> None:
        with log.open("wb", buffering=0) as file, contextlib.suppress(OSError):  # EIO: nobody has it open any more
            while data := os.read(ours, 65_536):
                file.write(data)
        os.close(ours)

    threading.Thread(target=copy, daemon=True).start()
    try:
        yield theirs
    finally:
        os.close(theirs)


Start = Callable[..., Awaitable[Command]]


@pytest.fixture
async def start(api_kind: ApiKind) -> AsyncIterator[Start]:
    """Starts `tarsy ... --api KIND` with a temporary folder of its own, without a model's key."""
    commands: list[Command] = []
    outer = open_folder()

    async def begin(*arguments: str, terminal: bool = False) -> Command:
        folder, log = outer / "tmp", outer / f"output-{len(commands)}"
        folder.mkdir(mode=0o711, exist_ok=True)
        env = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "KUBEBUILDER_ASSETS", "XDG_CACHE_HOME")}
        with _terminal(log) if terminal else log.open("wb") as output:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "tarsy.cli",
                *arguments,
                "--api",
                api_kind,
                env={**env, "TMPDIR": str(folder), "COLUMNS": "80"},
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
                # A shell that starts the tests in the background has them ignore SIGINT, and children inherit that.
                preexec_fn=heed_ctrl_c,
            )
        commands.append(Command(process, folder, log))
        return commands[-1]

    yield begin
    for command in commands:
        if command.process.returncode is None:
            command.process.kill()
            await command.process.wait()
    shutil.rmtree(outer, ignore_errors=True)


def state(pid: int) -> str:
    """A process's state, such as `S`; empty when there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


async def gone(family: set[int]) -> bool:
    """Whether none of the processes is there; one that only waits for its parent to look counts as gone."""
    return all(state(pid) in ("", "Z") for pid in family)


async def test_demo_ends_well_and_shows_what_it_did(start: Start) -> None:
    demo = await start("demo")
    assert await demo.ended(600) == 0, demo.output()
    text = demo.output()
    for part in (
        "SCRIPTED model",
        'container-crash-loop: "exitCode: 1"',
        "kubectl get talert,inv -n shop",
        "investigation.tarsy.dev/",
        "kubectl describe inv",
        "restore the key PAYMENT_API_URL",
        "Finding (High)",
        "[K: only the control plane writes this]",
        "Succeeded",
        "Events:",
        f"(by {getpass.getuser()}, ",
    ):
        assert part in text, text
    evidence = text[: text.index("triage/kubernetes-agent")]
    first = evidence.partition("1. score ")[2].splitlines()[0]
    assert "Config of ConfigMap shop/checkout-config: changed" in first, "before a model is asked"
    assert 'container-crash-loop: "exitCode: 1"' in evidence
    assert "Somebody" not in text, "admission stamps authors here as in a cluster"
    assert not [line for line in text.splitlines() if line.startswith(("09:", " ")) and line != line.rstrip()]
    assert ("The demo has ended, and the web UI with it" in text) == is_built()
    assert demo.left() == []


async def test_demo_without_a_fault_says_so(start: Start) -> None:
    demo = await start("demo", "--scenario", "no-fault")
    assert await demo.ended(600) == 0, demo.output()
    text = demo.output()
    evidence = text[: text.index("triage/kubernetes-agent")]
    assert "No rule finds a fault in Pod shop/catalog-5d8f6b7c9d-p4n7m." in evidence
    assert "No fault: the pod catalog-5d8f6b7c9d-p4n7m is ready" in text
    for line in ("Claims:             2", "Supported Claims:   2", "Phase:                Succeeded"):
        assert line in text, text


@pytest.mark.real_only("a Kubernetes API without admission policies is a real and old one")
@pytest.mark.heavy("the story of an approved call (scenarios/test_approvals.py) is the smaller case")
async def test_demo_sends_no_change_on_an_api_without_policies_and_says_why(
    start: Start, kubernetes_mcp_server: Path
) -> None:
    demo = await start("demo", "--scenario", "remediation")
    status = await demo.ended(600)
    text = " ".join(demo.output().split())
    if "has no ValidatingAdmissionPolicies" not in text:
        pytest.skip("the real API server of this machine has admission policies")
    assert status == 1, demo.output()
    assert "No call that changes something was sent." in text
    assert "does not have the key PAYMENT_API_URL" in text


@pytest.mark.newer_api
@pytest.mark.heavy("the story of an approved call (scenarios/test_approvals.py) is the smaller case")
async def test_demo_proposes_each_change_that_somebody_approves_and_makes_it_with_a_real_tool_server(
    start: Start, kubernetes_mcp_server: Path
) -> None:
    """A key is restored, replicas are set, a Deployment is restarted and one is rolled back, all with one machine."""
    demo = await start("demo", "--scenario", "remediation", "--remedy", "all")
    status = await demo.ended(600)
    text = " ".join(demo.output().split())
    assert status == 0, demo.output()
    for part in (
        "supported: The ConfigMap checkout-config has the key PAYMENT_API_URL again.",
        "+ PAYMENT_API_URL: http://payments.shop.svc:8080",
        "kubernetes-remediation.resources_get class A remediate/remediation-agent",
        "ConfigMap shop/checkout-config has the key PAYMENT_API_URL.",
        "supported: The Deployment catalog has 3 replicas again.",
        "Deployment shop/catalog has 3 replicas.",
        "supported: The Deployment search is asked to restart.",
        "Deployment shop/search has the annotation kubectl.kubernetes.io/restartedAt.",
        "- - image: registry.example.com/shop/basket:2.4.0 + - image: registry.example.com/shop/basket:2.3.9",
        "/resource (destination) from K, A",
        "supported: The Deployment basket has the image of release 2.3.9 again.",
        "Deployment shop/basket has the image of release 2.3.9.",
    ):
        assert part in text, demo.output()
    assert (text.count("1 approved call sent."), text.count(" is approved.")) == (4, 2 if find_kubectl() else 4)
    if find_kubectl():
        assert text.count("--type=json") == 2 and text.count(" patched ") == 2, "plain kubectl decides as well"
    assert demo.left() == []


@pytest.mark.once("how an alert arrives has nothing to do with the API server")
@pytest.mark.heavy("starts Prometheus and Alertmanager as well")
async def test_demo_investigates_a_metric_on_which_a_real_rule_fired_until_the_alert_is_resolved(start: Start) -> None:
    try:
        await asyncio.to_thread(acquire_monitoring, BuildProgress())
    except LocalKubernetesError as error:
        pytest.skip(f"no Prometheus and Alertmanager: {error}")
    demo = await start("demo", "--scenario", "alertmanager")
    assert await demo.ended(600) == 0, demo.output()
    text = " ".join(demo.output().split())
    for part in (
        "prometheus.query_range",
        "state=firing",
        "shop/databaseconnectionshigh-",
        "Claims: 2",
        "Supported Claims: 2",
        "Phase: Succeeded",
        '"received": 2, "investigated": 1, "folded": 0, "resolved": 1, "rejected": 0',
    ):
        assert part in text, demo.output()
    claim = text[text.index("- supported: 97 database connections of catalog are in use.") :]
    assert claim.index("“now 97 at”") < claim.index("- supported: The Deployment is available.")
    assert text.index("falls to 12.") < text.index("is resolved.")
    assert demo.left() == []


async def test_dev_serves_who_is_at_the_machine_until_ctrl_c_and_leaves_nothing(
    start: Start, api_kind: ApiKind
) -> None:
    dev = await start("dev")
    await dev.said("Ctrl-C stops everything.")
    assert dev.kubeconfig.startswith(str(dev.folder))
    assert "SCRIPTED model" in dev.output()

    await has_every_object_of_the_library_ready(dev)
    await refuses_a_forged_author(dev)
    await prints_commands_that_work_as_they_are_copied(dev)
    await lets_a_reader_walk_through_the_page_is_it_better(dev)
    await starts_again_the_operator_that_died(dev)

    family = dev.family()
    processes = ["the command", "postgres", "the tools", "the operator", *BEHIND[api_kind]]
    assert len(family) >= len(processes), processes
    dev.process.send_signal(signal.SIGINT)
    assert await dev.ended(120) == 0, dev.output()
    await until("all processes are gone", lambda: gone(family))
    assert dev.left() == []
    assert "Traceback" not in dev.output()


async def has_every_object_of_the_library_ready(dev: Command) -> None:
    async with await KubeClient.load(dev.kubeconfig) as client:

        async def ready() -> bool:
            kinds = ("Agent", "Chain", "MCPServer")
            found = [obj for kind in kinds for obj in await client.list(kind, "tarsy-library")]
            return len(found) > 20 and all(condition(obj, "Ready") == "True" for obj in found)

        await until("every object of the library is Ready", ready)


async def refuses_a_forged_author(dev: Command) -> None:
    (alert,) = manifest("samples/demo/alert-kubepodcrashlooping.yaml")
    alert["metadata"].update(namespace="shop", name="stamped")
    async with await KubeClient.load(dev.kubeconfig) as client:
        made = await client.create(alert)  # dev says how when it can be done
        assert made["spec"]["author"]["username"] == getpass.getuser()
        forged = {**alert, "metadata": {**alert["metadata"], "name": "forged"}}
        forged["spec"] = {**alert["spec"], "author": {"username": "bob"}}
        with pytest.raises(ApiError, match=r"spec\.author: bob .*is not the creating user"):
            await client.create(forged)
        own = {**forged, "spec": {**alert["spec"], "author": {"username": getpass.getuser(), "groups": ["admins"]}}}
        assert "admins" not in (await client.create(own))["spec"]["author"]["groups"]


async def prints_commands_that_work_as_they_are_copied(dev: Command) -> None:
    (apply, watch) = dev.commands("kubectl ")
    environment = {"PATH": os.environ["PATH"], "KUBECONFIG": dev.kubeconfig, "HOME": str(dev.log.parent)}

    async def run(command: str, seconds: float) -> str:
        limited = ["timeout", f"{seconds:g}", *shlex.split(command)]
        process = await asyncio.create_subprocess_exec(
            *limited, env=environment, cwd="/", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT
        )
        out, _ = await process.communicate()
        return out.decode()

    assert "alert.tarsy.dev/kubepodcrashlooping created" in await run(apply, 60)
    shown = await run(watch, 10)
    assert "kubepodcrashlooping-" in shown and "error" not in shown
    assert "checkout" in await run("kubectl get deployments,pods -n shop", 60)


async def lets_a_reader_walk_through_the_page_is_it_better(dev: Command) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {"PATH": path, "KUBECONFIG": dev.kubeconfig, "HOME": str(dev.log.parent)}
    await walked("is-it-better.md", dev.log.parent / "walk", environment)


async def starts_again_the_operator_that_died(dev: Command) -> None:
    pid = int(dev.output().split("Operator: pid ")[1].split(",")[0])
    os.kill(pid, signal.SIGKILL)
    await dev.said("restarting it")


async def test_dev_keeps_objects_and_record_where_it_is_told_though_it_is_killed(start: Start) -> None:
    folder = open_folder()
    try:
        first = await start("dev", "--keep", str(folder))
        await first.said("Ctrl-C stops everything.")
        async with await KubeClient.load(first.kubeconfig) as client:
            inv = {"alert": {"alertType": "KubePodCrashLooping", "data": "checkout crash loops"}}
            await put(client, {**INVESTIGATION, "spec": {**inv, "chainRef": {"name": "kubernetes"}}})
            made = await until("the run is finished", lambda: finished(client), START_SECONDS)
        family = first.family()
        first.process.send_signal(signal.SIGKILL)
        await first.ended(120)
        await until("all processes are gone", lambda: gone(family))

        second = await start("dev", "--keep", str(folder))
        await second.said("Ctrl-C stops everything.")
        async with await KubeClient.load(second.kubeconfig) as client:
            kept = await client.get("Investigation", "default", "kept")
        assert kept["metadata"]["uid"] == made["metadata"]["uid"]
        assert kept["status"]["phase"] == made["status"]["phase"]
        second.process.send_signal(signal.SIGINT)
        assert await second.ended(120) == 0, second.output()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


async def finished(client: KubeClient) -> dict[str, Any] | None:
    """The Investigation, once it has ended."""
    inv = await client.get("Investigation", "default", "kept")
    return inv if condition(inv, "Finished") == "True" else None


async def test_demo_that_is_interrupted_leaves_nothing(start: Start) -> None:
    demo = await start("demo", terminal=True)
    await demo.said("kubectl apply")
    text = demo.output()  # on a terminal a spinner turns until everything has started
    assert text.rindex("Starting a Kubernetes API") < text.index("kubectl apply")
    family = demo.family()
    demo.process.send_signal(signal.SIGINT)
    assert await demo.ended(120) != 0
    await until("all processes are gone", lambda: gone(family))
    assert demo.left() == []
    assert "Traceback" not in demo.output()


@pytest.mark.parametrize(
    ("file", "number"),
    [
        pytest.param("kube-apiserver.log", signal.SIGINT, marks=pytest.mark.real_only("its start has steps")),
        pytest.param("ca.crt", signal.SIGTERM, marks=pytest.mark.heavy("the other moment and way")),
        ("tools.log", signal.SIGINT),
    ],
)
async def test_demo_that_is_interrupted_while_it_starts_leaves_nothing(
    start: Start, file: str, number: signal.Signals
) -> None:
    demo = await start("demo")

    async def begun() -> bool:
        return any(path.endswith(file) for path in demo.left())

    await until(f"there is {file}", begun, START_SECONDS)
    family = demo.family()
    demo.process.send_signal(number)
    status = await demo.ended(120)
    assert status == 130 if number is signal.SIGINT else status != 0, demo.output()
    await until("all processes are gone", lambda: gone(family))
    assert demo.left() == []
    assert "Traceback" not in demo.output()
