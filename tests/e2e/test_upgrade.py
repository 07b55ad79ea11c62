"""Upgrades from the previous release and rolls back, with its operator and worker beside this version's.

The code of the release is taken from the history of the repository and runs as processes of its own, with what is
installed for this one, over one record and one Kubernetes API. The kinds are those of this version, because they are
applied first; that they take every object of the release, and the command line every flag, is compared here. Whether
recorded statements of older versions still fit: `integration/store/test_upgrade.py`.
"""

import asyncio
import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import pytest
import yaml

from e2e.forked import ForkedProcess
from e2e.machine import LONG_LEASE, Machine
from e2e.tenant import ANSWER, SUMMARY, Tenant, condition
from e2e.waiting import until
from integration.databases import EMPTY, create_database
from tarsy.store.database import open_pool
from tarsy_dev.operator_process import ON_THIS_MACHINE, OperatorProcess
from tarsy_dev.record_api import http_arguments

RELEASE = "6be7c997449d2da380f6daec5fb3096da8e74fd6"
"""The commit of the release before this version; each release sets it to itself."""

ROOT = Path(__file__).parents[2]
THIS = ROOT / "operator"
SCRIPT = f"""
agents:
  agent:
    - text: I look.
      calls: [{{name: tools.look, arguments: {{what: df}}}}]
    - text: I think.
      gate: thinking
      calls: [{{name: tools.look, arguments: {{what: du}}}}]
    - text: {ANSWER}
"""

pytestmark = [
    pytest.mark.timeout(900),
    pytest.mark.heavy("four processes of two versions"),
]


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that holds the package of the previous release."""
    packed = subprocess.run(
        ["git", "-C", str(ROOT), "archive", "--format=tar", RELEASE, "operator", "controllers", "crds"],
        capture_output=True,
    )
    if packed.returncode:
        pytest.skip(
            "the history of the repository is not here (shallow clone or source archive): git fetch --unshallow"
        )
    folder = tmp_path_factory.mktemp("release")
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return folder / "operator"


Process = OperatorProcess | ForkedProcess


class Installation:
    """Processes of two versions over one record; `tenant` reads that record."""

    def __init__(self, tenant: Tenant, dsn: str) -> None:
        self.tenant = tenant
        self._dsn = dsn
        self._processes: list[Process] = []

    def start(self, code: Path, command: str, *arguments: str) -> Process:
        """Starts an operator or a worker of the version whose package is in `code`."""
        machine = self.tenant.machine
        ports = http_arguments(0, 0) if command == "run" else []
        fixed = ["--kubeconfig", str(machine.api.kubeconfig), *ON_THIS_MACHINE, "--drain-seconds", "0", *LONG_LEASE]
        words = [*fixed, *ports, *arguments]
        database = {"TARSY_DATABASE_URL": self._dsn, "TARSY_PROCESSES": "1"}
        process: Process
        if code == THIS:
            process = ForkedProcess(machine.zygote, words, database, machine.log, command=command)
        else:
            process = OperatorProcess(words, {**database, "PYTHONPATH": str(code)}, machine.log, command=command)
        self._processes.append(process)
        return process

    def pair(self, code: Path) -> tuple[Process, Process]:
        """An operator that runs nothing itself, and a worker."""
        return self.start(code, "run", "--places", "0"), self.start(code, "worker")

    async def workers(self, number: int) -> None:
        """Waits until so many workers are in the record."""

        async def look() -> bool:
            try:
                found = await self.tenant.pool.fetchval("SELECT count(*) FROM worker")
            except asyncpg.UndefinedTableError:
                return False  # the first process has not migrated yet
            return bool(found == number)

        await until(f"there are {number} workers", look, 180)

    async def kill(self, *processes: Process) -> None:
        """Ends processes as a node does that loses its power, and lets the time of their leases be over."""
        for process in processes:
            process.kill()
            await process.wait(60)
        await self.tenant.pool.execute(
            "UPDATE worker SET expires_at = now() - interval '1 second' WHERE id IN (SELECT worker FROM lease)"
        )

    async def stop(self) -> None:
        """Ends all that are left."""
        await asyncio.gather(*(process.stop() for process in self._processes))


@pytest.fixture
async def installation(bare_tenant: Tenant, machine: Machine, tmp_path: Path) -> AsyncIterator[Installation]:
    """A record without a schema, and nobody who works on it yet."""
    await machine.stop_operator()
    dsn = await create_database(machine.postgres.dsn, EMPTY)
    pool = await open_pool(dsn, min_size=0, max_size=4, application="tarsy upgrade tests")
    made = Installation(Tenant(machine, bare_tenant.namespace, bare_tenant.client, pool, tmp_path), dsn)
    try:
        yield made
    finally:
        await made.stop()
        for model in made.tenant.models:
            await model.stop()
        pool.terminate()


def test_the_release_is_run_from_its_own_code(previous: Path) -> None:
    program = "import tarsy.cli, tarsy.controllers; print(tarsy.__path__[0], tarsy.controllers.__path__[0])"
    for code in (previous, THIS):
        told = subprocess.run(
            [sys.executable, "-c", program], env={"PYTHONPATH": str(code)}, capture_output=True, text=True, check=True
        )
        assert all(path.startswith(str(code)) for path in told.stdout.split()), told.stdout


async def test_this_version_resumes_what_the_release_began_beside_it(
    installation: Installation, previous: Path
) -> None:
    tenant = installation.tenant
    old = installation.pair(previous)
    await installation.workers(1)
    await begun(tenant)
    run = UUID((await tenant.get())["metadata"]["uid"])
    new = installation.pair(THIS)
    await installation.workers(2)
    assert all(process.alive for process in (*old, *new)), "they work side by side"
    assert (await tenant.record(run)).attempt == 1, "the run stays where it is"

    await installation.kill(*old)
    await ended_once(tenant, run)
    await another(tenant)


async def test_a_rollback_resumes_what_this_version_began_or_ends_it_with_the_remedy(
    installation: Installation, previous: Path
) -> None:
    tenant = installation.tenant
    new = installation.pair(THIS)
    await installation.workers(1)
    await begun(tenant)
    run = UUID((await tenant.get())["metadata"]["uid"])
    old = installation.pair(previous)
    await installation.workers(2)
    assert all(process.alive for process in (*old, *new)), "they work side by side"

    await installation.kill(*new)
    reader, known = await tenant.pool.fetchrow(
        "SELECT i.reader, (SELECT max(schema_version) FROM worker WHERE expires_at > now()) FROM investigation i"
    )
    if reader <= known:
        await ended_once(tenant, run)
        await another(tenant)
    else:  # the plan has settings that the release does not know
        await left_and_ended(tenant, run)


async def left_and_ended(tenant: Tenant, run: UUID) -> None:
    """The release does not take the run, and ends it with the remedy when no newer worker comes for ten minutes."""
    tenant.model.open_gate("thinking")
    await another(tenant)  # which the release takes, and it does not take the other before
    assert (await tenant.record(run)).attempt == 1
    await tenant.pool.execute("UPDATE investigation SET accepted_at = accepted_at - interval '11 minutes'")
    inv = await tenant.finished()
    assert condition(inv, "Succeeded") == "False", inv["status"]
    assert condition(inv, "Succeeded", "reason") == "PlanUnreadable"
    remedy = "Run the version that accepted it, or create the investigation again."
    assert remedy in condition(inv, "Succeeded", "message")
    assert len(await tenant.reads.timeline(run)) > 0, "what was recorded stays"


COMMANDS = """
import json, typer
from tarsy.cli.main import app

def flags(command):
    own = [flag for parameter in command.params for flag in (*parameter.opts, *parameter.secondary_opts)]
    groups = getattr(command, "commands", {}).items()
    return sorted(own) + [f"{name} {flag}" for name, sub in groups for flag in flags(sub)]

root = typer.main.get_command(app)
print(json.dumps({name: flags(command) for name, command in root.commands.items()}))
"""


def run_python(code: Path, *arguments: str) -> str:
    """The output of a Python program that imports `tarsy` from `code`."""
    environment = {"PYTHONPATH": str(code), "PATH": os.environ["PATH"]}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_command_and_flag_of_the_release_is_there(previous: Path) -> None:
    old, new = (json.loads(run_python(code, "-c", COMMANDS)) for code in (previous, THIS))
    lost = {name: sorted(set(flags) - set(new.get(name, ()))) for name, flags in old.items()}
    assert len(old) > 10 and sum(map(len, old.values())) > 50
    assert {name: flags for name, flags in lost.items() if flags or name not in new} == {}


def test_tool_server_of_the_release_is_started_by_its_old_name_too() -> None:
    assert run_python(THIS, "-m", "tarsy.local.sample_server", "--help")


def test_every_custom_resource_of_the_release_is_accepted(previous: Path) -> None:
    """No field, version or value of an enum is gone, no field is newly required, no limit is tighter."""
    old, new = (
        {p.name: yaml.safe_load(p.read_text()) for p in f.glob("*s.yaml")}
        for f in (previous.parent / "crds", ROOT / "crds")
    )
    assert old and old.keys() <= new.keys()
    found = []
    for name, crd in old.items():
        versions = {version["name"]: version for version in new[name]["spec"]["versions"]}
        for version in crd["spec"]["versions"]:
            schemas = (each["schema"]["openAPIV3Schema"] for each in (version, versions[version["name"]]))
            found += refused(*schemas, name)
    assert found == []


def refused(old: dict[str, Any], new: dict[str, Any], at: str) -> Iterator[str]:
    """What an object of one schema may have and the other refuses or prunes, by field."""
    if old.get("type") != new.get("type"):
        yield f"{at}: {new.get('type')} instead of {old.get('type')}"
    if missing := set(old.get("enum", ())) - set(new.get("enum", old.get("enum", ()))):
        yield f"{at}: no {sorted(missing)}"
    if required := set(new.get("required", ())) - set(old.get("required", ())):
        yield f"{at}: requires {sorted(required)}"
    for most in ("maximum", "maxLength", "maxItems", "maxProperties"):
        if most in new and new[most] < old.get(most, float("inf")):
            yield f"{at}: {most} is {new[most]}"
    for least in ("minimum", "minLength", "minItems", "minProperties"):
        if least in new and new[least] > old.get(least, float("-inf")):
            yield f"{at}: {least} is {new[least]}"
    for name, field in old.get("properties", {}).items():
        if name in new.get("properties", {}):
            yield from refused(field, new["properties"][name], f"{at}.{name}")
        elif not new.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{at}.{name}: is gone"
    for inner in ("items", "additionalProperties"):
        if isinstance(old.get(inner), dict) and isinstance(new.get(inner), dict):
            yield from refused(old[inner], new[inner], f"{at}[]")


async def begun(tenant: Tenant) -> None:
    """Starts an investigation and waits until its model thinks for the second time."""
    await tenant.simple(SCRIPT)
    await tenant.investigate()
    await tenant.asked(2)


async def ended_once(tenant: Tenant, run: UUID) -> None:
    """The run ends well in a second attempt, and no step that was over is done again."""

    async def resumed() -> bool:
        return (await tenant.record(run)).attempt == 2

    await until("another worker resumes the run", resumed, 180)
    tenant.model.open_gate("thinking")
    inv = await tenant.finished()
    assert condition(inv, "Succeeded") == "True", inv["status"]
    assert inv["status"]["finding"]["summary"] == SUMMARY
    record = await tenant.record(run)
    assert (record.attempt, record.tool_calls, record.interrupted_model_calls) == (2, 2, 1)
    assert tenant.tool_calls("look") == 2
    assert len(tenant.model.journal.requests) == 4, "the answer that the kill cut off was asked for again, and no other"


async def another(tenant: Tenant) -> None:
    """Whoever is left takes new work."""
    await tenant.investigate("after")
    inv = await tenant.finished("after")
    assert condition(inv, "Succeeded") == "True", inv["status"]
