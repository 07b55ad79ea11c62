"""A person at a terminal: a kubeconfig with a client certificate, some roles in a namespace, and `kubectl-tarsy`.

A command that runs to its end is forked from a process that has imported it, as operators are: an import costs it half
a second of a core. One that is started, to be read or interrupted, is a program of its own.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

import rights
from e2e.forked import COMMAND_SECONDS, PLUGIN, Answer, Zygote, run_forked
from e2e.tenant import Tenant
from tarsy_dev.objects import manifest, put, put_all

RUN_PLUGIN = "from tarsy.cli.plugin import main; main()"


@dataclass(frozen=True, slots=True)
class Person:
    """See `new_person`."""

    name: str
    namespace: str
    kubeconfig: Path
    zygote: Zygote
    environment: Mapping[str, str] = field(default_factory=dict)

    async def start(self, *arguments: str, placed: bool = True) -> asyncio.subprocess.Process:
        """Starts the plugin as this person, `placed` in their namespace by -n."""
        env = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
        return await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            RUN_PLUGIN,
            *self._words(arguments, placed),
            env={**env, **self._environment()},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            preexec_fn=heed_ctrl_c,
        )

    async def tarsy(self, *arguments: str, stdin: str = "", placed: bool = True) -> Answer:
        """Runs the plugin as this person to its end."""
        return await run_forked(self.zygote, PLUGIN, self._words(arguments, placed), self._environment(), stdin)

    def _words(self, arguments: Sequence[str], placed: bool) -> list[str]:
        return [*arguments, *(("-n", self.namespace) if placed else ())]

    def _environment(self) -> dict[str, str]:
        return {"KUBECONFIG": str(self.kubeconfig), "COLUMNS": "160", **self.environment}


def heed_ctrl_c() -> None:
    """In the child: SIGINT counts again where whoever started the tests has it ignored, as a shell's `&` does."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


async def said(process: asyncio.subprocess.Process, stdin: str = "", seconds: float = COMMAND_SECONDS) -> Answer:
    """What a command says to its end."""
    try:
        async with asyncio.timeout(seconds):
            out, err = await process.communicate(stdin.encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Answer(process.returncode if process.returncode is not None else -1, out.decode(), err.decode())


async def new_person(tenant: Tenant, name: str, *roles: str) -> Person:
    """Somebody who has these of the shipped roles in the tenant's namespace, and nothing else."""
    await put_all(tenant.client, manifest("base/people.yaml"))
    for role in roles:
        await bind(tenant, name, role)
    return Person(name, tenant.namespace, tenant.machine.api.kubeconfig_for(name), tenant.machine.zygote)


async def bind(tenant: Tenant, name: str, role: str) -> None:
    """Gives somebody a role in the tenant's namespace."""
    called = f"{name.rpartition(':')[2]}-{role}"
    bound = rights.binding(called, tenant.namespace, "ClusterRole", role, rights.user(name))
    await rights.put_rights(tenant.client, [bound])


async def new_robot(tenant: Tenant, name: str, *roles: str) -> tuple[str, str]:
    """A ServiceAccount in the tenant's namespace that has these roles there: its user name and a token."""
    await put_all(tenant.client, manifest("base/people.yaml"))
    metadata = {"name": name, "namespace": tenant.namespace}
    await put(tenant.client, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    user = f"system:serviceaccount:{tenant.namespace}:{name}"
    for role in roles:
        await bind(tenant, user, role)
    return user, await tenant.client.create_token(tenant.namespace, name)


def kubeconfig_with(tenant: Tenant, user: Mapping[str, object]) -> Path:
    """A kubeconfig for the machine's API with these credentials, whose context has the tenant's namespace."""
    cluster = {"server": tenant.machine.api.url, "certificate-authority": str(tenant.machine.api.ca_file)}
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": dict(user)}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", "namespace": tenant.namespace}}],
    }
    path = tenant.folder / "user.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path
