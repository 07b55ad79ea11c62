"""The machine under test: a Kubernetes API of either kind, a real Postgres, and the operator as a process of its own.

There is one for all tests of a session, and one operator at a time on it, because both cost seconds. A test says with
which arguments it wants the operator; it is started anew only where they differ from those of the last one.
"""

import asyncio
import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import asyncpg

from apis import START_SECONDS, ApiKind, LocalApi, find_kubectl, new_api
from e2e.forked import ForkedProcess, Zygote
from tarsy.kube.client import KubeClient
from tarsy.store.database import open_pool
from tarsy.store.migrate import migrate
from tarsy_dev.apiserver.process import free_port
from tarsy_dev.objects import install_crds, put
from tarsy_dev.operator_process import ON_THIS_MACHINE
from tarsy_dev.postgres import LocalPostgres
from tarsy_dev.record_api import http_arguments, install_record_api
from tarsy_dev.stack import LIBRARY, SYSTEM

SOON = ("--server-check-seconds", "1")
"""A tool server that cannot be reached counts as away after three checks."""
LONG_LEASE = ("--lease-seconds", "60")
"""How slow the machine is decides nothing; where a worker was killed, `Machine.lapse` says when it is over."""


class Machine:
    """Everything but the operator runs as long as this exists; see `running_machine`."""

    def __init__(self, folder: Path, api: LocalApi, postgres: LocalPostgres) -> None:
        self.folder = folder
        self.api = api
        self.kubectl = find_kubectl()
        self.postgres = postgres
        self.zygote = Zygote(self.log, folder / "ended")
        self.http_port, self.record_port = free_port(), free_port()
        self._operator: ForkedProcess | None = None
        self._arguments: tuple[str, ...] = ()

    @property
    def log(self) -> Path:
        """The operators' output, one after the other."""
        return self.folder / "operator.log"

    def new_operator(self, *arguments: str) -> ForkedProcess:
        """Starts an operator beside all others, its API at ports of its own; the caller stops it."""
        return self._new("run", *http_arguments(0, 0), *SOON, *arguments)

    def new_worker(self, *arguments: str) -> ForkedProcess:
        """Starts a worker beside all others; the caller stops it."""
        return self._new("worker", "--processes", "1", *arguments)

    def _at_the_ports(self, *arguments: str) -> ForkedProcess:
        return self._new("run", *http_arguments(self.http_port, self.record_port), *SOON, *arguments)

    def _new(self, command: str, *arguments: str) -> ForkedProcess:
        fixed = [
            "--kubeconfig",
            str(self.api.kubeconfig),
            *ON_THIS_MACHINE,
            "--drain-seconds",
            "0",
            *LONG_LEASE,
        ]
        settings = {"TARSY_DATABASE_URL": self.postgres.dsn}
        return ForkedProcess(self.zygote, [*fixed, *arguments], settings, self.log, command=command)

    async def operator(self, *arguments: str) -> ForkedProcess:
        """The operator with these arguments, running."""
        if self._operator is not None and self._arguments == arguments:
            self._operator.start()
            return self._operator
        await self.stop_operator()
        self._operator, self._arguments = self._at_the_ports(*arguments), arguments
        return self._operator

    async def stop_operator(self) -> None:
        """Ends the operator in order, where there is one."""
        operator, self._operator = self._operator, None
        if operator is not None:
            await operator.stop()

    async def lapse(self) -> None:
        """Lets the time of all leases be over, which is all that a test waits for once a worker was killed."""
        connection = await asyncpg.connect(self.postgres.dsn, server_settings={"search_path": "tarsy"})
        try:
            await connection.execute("UPDATE worker SET expires_at = now() - interval '1 second'")
        finally:
            await connection.close()

    async def lapse_of_all(self) -> None:
        """Lets the time of the active controller's Lease be over as well, where every operator was killed."""
        await self.lapse()
        async with await KubeClient.load(self.api.kubeconfig) as client:
            await client.delete("Lease", SYSTEM, "tarsy-controller")

    async def install(self) -> None:
        """The CRDs, the two namespaces every installation has, and the schema of the record."""
        pool = await open_pool(self.postgres.dsn)
        try:
            await migrate(pool)
        finally:
            await pool.close()
        async with await KubeClient.load(self.api.kubeconfig) as client:
            await install_crds(client)
            for name in (SYSTEM, LIBRARY):
                await put(client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            await install_record_api(client, self.record_port)


@contextlib.contextmanager
def running_machine(kind: ApiKind) -> Iterator[Machine]:
    """A machine with this kind of Kubernetes API, in a temporary folder, gone at the end."""
    with tempfile.TemporaryDirectory(prefix="tarsy-e2e-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        if os.geteuid() == 0:
            folder.chmod(0o711)  # Postgres runs as another user then, and must reach its own folder below
        # Its own server, whatever the environment offers: some tests stop it.
        with LocalPostgres(folder / "postgres", fsync=False, environ={}, start_timeout=START_SECONDS) as postgres:
            with new_api(kind, folder / "kubernetes") as api:
                machine = Machine(folder, api, postgres)
                asyncio.run(machine.install())
                try:
                    yield machine
                finally:
                    asyncio.run(machine.stop_operator())
                    machine.zygote.close()
