"""Starts the stack: a Kubernetes API, Postgres, a model, the shipped library, and the operator.

A stack lives in one folder, temporary unless one is given, and leaves nothing behind when it is left. The model is the
scripted one unless a real one is configured; its provider is then called `scripted`, so that whoever looks at a chain,
an investigation or a timeline sees that no model was asked.
"""

import asyncio
import base64
import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import yaml

from embedded_kubeapi.server import EmbeddedApi
from tarsy.kube.client import KubeClient
from tarsy.kube.credentials import LABEL
from tarsy.plan.library import LIBRARY_NAMESPACE
from tarsy.resources.meta import API_VERSION
from tarsy_dev.admission import install_admission
from tarsy_dev.apiserver.binaries import find_binaries
from tarsy_dev.apiserver.errors import LocalKubernetesError
from tarsy_dev.apiserver.extensions_server import ExtensionsApi
from tarsy_dev.apiserver.process import Spawner, end, free_port
from tarsy_dev.apiserver.server import ApiServer
from tarsy_dev.model import Script, ScriptedModel, demo_script
from tarsy_dev.objects import install_crds, manifest, put, put_all
from tarsy_dev.operator_process import ON_THIS_MACHINE, OperatorProcess
from tarsy_dev.person import let_work, name_of_person, user
from tarsy_dev.postgres import LocalPostgres
from tarsy_dev.record_api import HOST, http_arguments, install_record_api

LIBRARY = LIBRARY_NAMESPACE
SYSTEM = "tarsy-system"
SCRIPTED = "scripted"
TOOLS = "kubernetes-tools"
TOOLS_SECONDS = 60.0
_METRICS = "library.tarsy.dev/metrics"
"""Label of the library's agents that the component `library-metrics` gives the server `prometheus`."""

OPERATOR = "tarsy-operator"
RIGHTS = (
    "base/serviceaccount.yaml",
    "base/clusterrole.yaml",
    "base/role.yaml",
    "base/secret-reader.yaml",
    "base/evidence-reader.yaml",
    "base/run-secrets.yaml",
    "base/record-access.yaml",
    "base/people.yaml",
    "library/secrets.yaml",
    "library/users.yaml",
    "library/tools-access.yaml",
)
"""The shipped manifests with the rights of the operator and the tools."""


LocalApi = ApiServer | EmbeddedApi
ApiChoice = Literal["auto", "real", "embedded", "newer"]
"""Which Kubernetes API: a real one, the embedded one, the embedded one with Kubernetes 1.36's own machinery for the
kinds of TARSy, or (auto) a real one if its binaries exist."""


@dataclass(frozen=True, slots=True)
class RealModel:
    """A model to use instead of the scripted one; `api_key` may be empty for servers that ask for none.

    Its calls may take `seconds`, each wait in them included (None: as long as an LLMProvider's calls by default).
    """

    model: str
    base_url: str | None = None
    api_key: str = ""
    seconds: int | None = None


class Stack:
    """A running stack. Make one with `running_stack`."""

    def __init__(self, folder: Path, api: LocalApi, database_url: str, client: KubeClient) -> None:
        self.folder = folder
        self.api = api
        self.database_url = database_url
        self.client = client
        self.model: ScriptedModel | None = None
        self.http_port, self.record_port, self.admission_port = free_port(), free_port(), free_port()
        self.person = name_of_person()
        self.admits = False
        self._operator: OperatorProcess | None = None
        self._spawner = Spawner()
        self._tools: list[subprocess.Popen[bytes]] = []

    @property
    def api_sentence(self) -> str:
        """Describes the Kubernetes API for people."""
        version = ".".join(map(str, self.api.version))
        if isinstance(self.api, ExtensionsApi):
            return (
                f"EMBEDDED Kubernetes API (runs no pods), with tarsy.dev served by Kubernetes {version}'s own API "
                "extensions server"
            )
        if isinstance(self.api, EmbeddedApi):
            return f"EMBEDDED Kubernetes API (behaves like Kubernetes {version}; runs no pods)"
        return f"Kubernetes API {version}"

    @property
    def kubectl(self) -> Path | None:
        """The kubectl to use, or None."""
        binaries = self.api.binaries if isinstance(self.api, ApiServer) else find_binaries()
        found = binaries.kubectl if binaries is not None else None
        path = shutil.which("kubectl")
        return found or (Path(path) if path else None)

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, which the stack uses to install itself."""
        return self.api.kubeconfig

    @cached_property
    def person_kubeconfig(self) -> Path:
        """The kubeconfig of the local user (`person.py`), for their kubectl."""
        return self.api.kubeconfig_for(self.person)

    @property
    def http_url(self) -> str:
        """The URL of the HTTP API, for callers with a bearer token."""
        return f"http://{HOST}:{self.http_port}"

    @property
    def operator_log(self) -> Path:
        """The file with the operator's output."""
        return self.folder / "operator.log"

    def operator(self, *arguments: str, **environment: str) -> OperatorProcess:
        """Starts an operator for this stack, with the rights that the shipped manifests give it.

        The stack's ports are its own while it runs; another one beside it takes free ones.
        """
        groups = ["system:serviceaccounts", f"system:serviceaccounts:{SYSTEM}"]
        kubeconfig = self.api.kubeconfig_for(f"system:serviceaccount:{SYSTEM}:{OPERATOR}", groups)
        # Who stops a stack wants it to end now; what was under way goes on at the next start.
        settings = {"TARSY_DATABASE_URL": self.database_url, **environment}
        defaults = [
            "--kubeconfig",
            str(kubeconfig),
            *ON_THIS_MACHINE,
            "--drain-seconds",
            "0",
            *(("--require-author",) if self.admits else ()),
        ]
        if self._operator is not None and self._operator.alive:
            return OperatorProcess([*defaults, *http_arguments(0, 0), *arguments], settings, self.operator_log)
        doors = http_arguments(self.http_port, self.record_port)
        if self.admits:
            doors += ["--admission-host", HOST, "--admission-port", str(self.admission_port)]
        self._operator = OperatorProcess([*defaults, *doors, *arguments], settings, self.operator_log)
        return self._operator

    async def install(self, *, admission: bool = True) -> None:
        """Installs CRDs, namespaces, the rights of operator, tools and the person here, library and admission.

        Args:
            admission: False where objects are created before an operator serves the webhook, such as in benchmarks.
        """
        await install_crds(self.client)
        for name in (SYSTEM, LIBRARY):
            await put(self.client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name in RIGHTS:
            await put_all(self.client, manifest(name))
        await let_work(self.client, "tarsy-person-of-this-machine", user(self.person))
        await install_record_api(self.client, self.record_port)
        if admission:
            await install_admission(self.client, self.admission_port, self.api.version)
            self.admits = True
        url = await self._start_tools("kubernetes_tools", KUBECONFIG=str(await self._tools_kubeconfig()))
        for obj in _library():
            await put(self.client, _local_server(obj, url) if obj["kind"] == "MCPServer" else obj)

    async def use_model(self, model: RealModel | Script | None) -> str:
        """Sets the model of the library's provider (None: the demo's script), and returns a sentence that names it."""
        if isinstance(model, RealModel):
            await self._provider(model, real=True)
            return f"model {model.model}" + (f" at {model.base_url}" if model.base_url else "")
        if self.model is not None:
            await self.model.stop()
        self.model = ScriptedModel(model or demo_script())
        base_url = await self.model.start()
        await self._provider(RealModel("scripted-demo", base_url), real=False)
        return "SCRIPTED model (no API key is configured: a script gives the answers, no model is called)"

    async def _provider(self, model: RealModel, *, real: bool) -> None:
        spec: dict[str, Any] = {"type": "openai", "model": model.model, "allowedNamespaces": {"from": "All"}}
        if model.base_url:
            spec["baseURL"] = model.base_url
        if model.seconds is not None:
            limits = ("silenceSeconds", "firstTokenSeconds", "stallSeconds", "callSeconds")
            spec["timeouts"] = dict.fromkeys(limits, model.seconds)
        if model.api_key:
            secret = {"name": "model-credentials", "namespace": LIBRARY, "labels": {LABEL: "true"}}
            data = {"api-key": base64.b64encode(model.api_key.encode()).decode()}
            await put(self.client, {"apiVersion": "v1", "kind": "Secret", "metadata": secret, "data": data})
            spec["apiKeySecretRef"] = {"name": "model-credentials", "key": "api-key"}
        name = "default" if real else SCRIPTED
        await put(self.client, _object("LLMProvider", name, spec))
        if not real:
            # The library names its provider `default`; here that name must not hide that there is no model.
            for obj in _library():
                if obj["kind"] in ("Chain", "InvestigationDefaults") and "llmProvider" in obj["spec"]:
                    await put(self.client, {**obj, "spec": {**obj["spec"], "llmProvider": SCRIPTED}})

    async def add_prometheus(self, prometheus: str) -> None:
        """Adds the components `prometheus-tools` and `library-metrics`: PromQL for agents of the library.

        Args:
            prometheus: URL of the Prometheus.
        """
        url = await self._start_tools("prometheus_tools", PROMETHEUS_URL=prometheus)
        for obj in manifest("components/prometheus-tools/mcpserver.yaml"):
            await put(self.client, _local_server(obj, url))
        for obj in _library():
            if obj["kind"] == "Agent" and _METRICS in obj["metadata"]["labels"]:
                servers = [*obj["spec"]["mcpServers"], {"name": "prometheus"}]
                await put(self.client, {**obj, "spec": {**obj["spec"], "mcpServers": servers}})

    async def _start_tools(self, package: str, **environment: str) -> str:
        """Starts a tool server of `tarsy` as a process of its own, which all agents share; returns its URL."""
        port = free_port()
        command = [sys.executable, "-m", f"tarsy.{package}", "--http", "--bound", LIBRARY, "--port", str(port)]
        variables = {"PATH": os.environ.get("PATH", ""), "HOME": str(self.folder), **environment}
        log = self.folder / ("tools.log" if package == "kubernetes_tools" else f"{package}.log")
        process = await asyncio.to_thread(self._spawner.spawn, command, log, variables)
        self._tools.append(process)
        try:
            async with asyncio.timeout(TOOLS_SECONDS):
                while not await _listens(port):
                    if process.poll() is not None:
                        raise LocalKubernetesError(f"the tool server {package} ended: {log.read_text()[-1000:]}")
                    await asyncio.sleep(0.05)
        except TimeoutError:
            raise LocalKubernetesError(f"the tool server {package} did not start in {TOOLS_SECONDS:g} s") from None
        return f"http://127.0.0.1:{port}/mcp"

    def close(self) -> None:
        """Ends the tool servers."""
        for process in self._tools:
            end(process, grace_seconds=2.0)
        self._spawner.close()

    async def _tools_kubeconfig(self) -> Path:
        """Writes a kubeconfig for the Kubernetes tool server, with a token of its ServiceAccount."""
        token = await self.client.create_token(LIBRARY, TOOLS, seconds=86_400)
        ca = base64.b64encode(self.api.ca_file.read_bytes()).decode()
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "tools",
            "clusters": [{"name": "tools", "cluster": {"server": self.api.url, "certificate-authority-data": ca}}],
            "users": [{"name": "tools", "user": {"token": token}}],
            "contexts": [{"name": "tools", "context": {"cluster": "tools", "user": "tools"}}],
        }
        path = self.folder / "tools.kubeconfig"
        path.touch(mode=0o600)
        path.write_text(yaml.safe_dump(config))
        return path


async def bind_secret_role(client: KubeClient, namespace: str) -> None:
    """Lets TARSy read the labelled Secrets of a namespace, as the component `tenant` does."""
    for binding in manifest("components/tenant/rolebinding.yaml"):
        await put(client, {**binding, "metadata": {**binding["metadata"], "namespace": namespace}})


@contextlib.asynccontextmanager
async def running_stack(
    folder: Path | None = None,
    *,
    durable: bool = True,
    api: ApiChoice = "real",
    database_settings: Mapping[str, str] | None = None,
) -> AsyncIterator[Stack]:
    """Starts Kubernetes API and Postgres; stops them, and removes a temporary folder, at the end.

    Args:
        folder: where all state goes and stays; None for a temporary one.
        durable: False for tests: Postgres does not wait for the disk.
        api: which Kubernetes API.
        database_settings: further settings of the Postgres server.

    Raises:
        LocalKubernetesError, PostgresError: one of them cannot be started; the message says what to do.
    """
    temporary = folder is None
    folder = folder or Path(tempfile.mkdtemp(prefix="tarsy-"))
    folder.mkdir(parents=True, exist_ok=True)
    if temporary and os.geteuid() == 0:
        folder.chmod(0o711)  # Postgres runs as another user then, and must reach its own folder below
    server = _api(api, folder, keep=not temporary)
    postgres = LocalPostgres(folder / "postgres", fsync=durable, settings=database_settings)
    stack: Stack | None = None
    starts = [asyncio.create_task(asyncio.to_thread(start)) for start in (server.start, postgres.start)]
    try:
        await asyncio.shield(asyncio.gather(*starts))
        database_url = postgres.dsn
        async with await KubeClient.load(server.kubeconfig) as client:
            stack = Stack(folder, server, database_url, client)
            yield stack
    finally:
        # A thread cannot be cancelled: what it starts is waited for, so that it can be stopped and its files removed.
        await asyncio.wait(starts)
        if stack and stack.model:
            await stack.model.stop()
        if stack:
            await asyncio.to_thread(stack.close)
        await asyncio.gather(asyncio.to_thread(server.stop), asyncio.to_thread(postgres.stop))
        if temporary:
            shutil.rmtree(folder, ignore_errors=True)


def _api(choice: ApiChoice, folder: Path, *, keep: bool) -> LocalApi:
    if choice == "real" or (choice == "auto" and find_binaries()):
        return ApiServer(folder / "kubernetes")
    if choice == "newer":
        if keep:
            raise LocalKubernetesError("--api newer keeps no objects: leave --keep out, or use --api embedded")
        return ExtensionsApi(folder / "kubernetes")
    return EmbeddedApi(folder / "kubernetes", keep=folder / "kubernetes.journal" if keep else None)


def _library() -> list[dict[str, Any]]:
    """The shipped library's own kinds; its workloads are for clusters."""
    names = [d for d in manifest("library/kustomization.yaml")[0]["resources"] if d.endswith(".yaml")]
    return [obj for name in names for obj in manifest(f"library/{name}") if obj["apiVersion"] == API_VERSION]


def _local_server(obj: dict[str, Any], url: str) -> dict[str, Any]:
    """The library's tool server, as a process of this machine instead of as a workload."""
    return {**obj, "spec": {**obj["spec"], "transport": {"type": "http", "http": {"url": url}}}}


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name, "namespace": LIBRARY}, "spec": spec}
