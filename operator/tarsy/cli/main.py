"""`tarsy`: the operator and its tools, one command each.

Commands import what they need when they run: the whole operator takes seconds to import, `tarsy crds` must not.
Errors that a person can do something about are one sentence on standard error and exit status 1.
"""

import asyncio
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NoReturn, TypeVar

import typer

if TYPE_CHECKING:
    from tarsy.runtime.settings import WorkerSettings

S = TypeVar("S")

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="TARSy operator: alerts investigated by chains of agents.",
)

Namespaces = Annotated[
    list[str] | None, typer.Option("--namespace", "-n", help="Only this namespace; may be repeated.")
]
Kubeconfig = Annotated[
    str | None, typer.Option(help="Kubeconfig file; else the pod's ServiceAccount, else the default.")
]
Context = Annotated[str | None, typer.Option(help="Context of the kubeconfig.")]
DatabaseUrl = Annotated[
    str, typer.Option(envvar="TARSY_DATABASE_URL", help="postgresql:// address of the record.", show_envvar=True)
]
Keep = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Keep objects and record in this folder; else they end with the command."),
]
Model = Annotated[str | None, typer.Option(envvar="TARSY_MODEL", help="Name of a real model.")]
Api = Annotated[
    Literal["auto", "real", "embedded"],
    typer.Option(
        help="Kubernetes API: a real one, the embedded stand-in, or a real one where its binaries are (auto)."
    ),
]
BaseUrl = Annotated[str | None, typer.Option(envvar="TARSY_MODEL_BASE_URL", help="OpenAI-compatible server.")]
ListenUrl = Annotated[
    str | None, typer.Option(envvar="TARSY_LISTEN_URL", help="Address for LISTEN, past a transaction pooler.")
]
GlobalLimit = Annotated[int, typer.Option(min=1, help="Investigations of the installation at once.")]
LeaseSeconds = Annotated[float, typer.Option(min=2, help="A silent worker's runs go to others after this.")]
DrainSeconds = Annotated[
    float, typer.Option(min=0, help="After SIGTERM, this long for runs to reach a boundary and be handed back.")
]
StdioTools = Annotated[bool, typer.Option(help="Let MCPServers run commands here: on one machine only.")]
LentTo = Annotated[
    list[str] | None,
    typer.Option(
        "--workload-identity-for",
        help="LLMProviders of this namespace may use the pods' own Google identity (Vertex AI).",
    ),
]
HealthPort = Annotated[int, typer.Option(help="Port of /healthz, /readyz and /metrics; 0: a free one on loopback.")]
JsonLogs = Annotated[bool, typer.Option(help="One JSON object a line.")]
LogLevel = Annotated[str, typer.Option(envvar="TARSY_LOG_LEVEL")]
MENDABLE = {
    "tarsy.cli.errors": "AskError",
    "tarsy.kube.client": "ApiError",
    "tarsy.local.apiserver.errors": "LocalKubernetesError",
    "tarsy.local.model.script": "ScriptError",
    "tarsy.local.postgres.errors": "PostgresError",
    "tarsy.store.errors": "StoreError",
}
"""Errors that become a sentence, by their modules."""


def main() -> None:
    """The entry point of the command."""
    app()


@app.command()
def run(
    database_url: DatabaseUrl,
    listen_url: ListenUrl = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespaces = None,
    library_namespace: Annotated[str, typer.Option(envvar="TARSY_LIBRARY_NAMESPACE")] = "tarsy-library",
    lease_namespace: Annotated[str, typer.Option(envvar="TARSY_LEASE_NAMESPACE")] = "tarsy-system",
    places: Annotated[
        int, typer.Option(min=0, help="Investigations of this process at once; 0: workers of their own run them.")
    ] = 20,
    global_limit: GlobalLimit = 100,
    lease_seconds: LeaseSeconds = 15,
    drain_seconds: DrainSeconds = 20,
    stdio_tools: StdioTools = False,
    runbook_host: Annotated[
        list[str] | None,
        typer.Option(help="Runbooks may be fetched from this host, whatever its address, for every namespace."),
    ] = None,
    server_check_seconds: Annotated[
        float, typer.Option(min=1, help="Each MCPServer is looked at so often: does it answer, what are its tools.")
    ] = 60,
    workload_identity_for: LentTo = None,
    retention: Annotated[
        str,
        typer.Option(
            envvar="TARSY_RETENTION",
            help="Records are deleted so long after the end of their run: a number with s, m, h, d or w; or: forever.",
        ),
    ] = "90d",
    health_port: HealthPort = 8080,
    json_logs: JsonLogs = False,
    log_level: LogLevel = "INFO",
) -> None:
    """Run the operator against a cluster."""
    from tarsy.cli.operator import OperatorSettings, operate
    from tarsy.cli.spans import seconds_or_forever
    from tarsy.observe.logs import configure

    configure(json=json_logs, level=log_level)
    settings = OperatorSettings(
        database_url=database_url,
        listen_url=listen_url,
        kubeconfig=kubeconfig,
        context=context,
        library_namespace=library_namespace,
        lease_namespace=lease_namespace,
        namespaces=tuple(namespace or ()),
        stdio_tools=stdio_tools,
        runbook_hosts=tuple(runbook_host or ()),
        server_check_seconds=server_check_seconds,
        retention_seconds=_span(retention, "--retention", seconds_or_forever),
        workload_identity_for=tuple(workload_identity_for or ()),
        health_host=_health_host(health_port),
        health_port=health_port,
        worker=_worker(places, global_limit, lease_seconds, drain_seconds) if places else None,
    )
    _go(operate(settings), service=True)


@app.command()
def worker(
    database_url: DatabaseUrl,
    listen_url: ListenUrl = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    places: Annotated[int, typer.Option(min=1, help="Investigations of this process at once.")] = 20,
    global_limit: GlobalLimit = 100,
    lease_seconds: LeaseSeconds = 15,
    drain_seconds: DrainSeconds = 20,
    stdio_tools: StdioTools = False,
    workload_identity_for: LentTo = None,
    health_port: HealthPort = 8080,
    json_logs: JsonLogs = False,
    log_level: LogLevel = "INFO",
) -> None:
    """Run investigations that an operator accepted; any number of these, anywhere."""
    from tarsy.cli.worker import WorkerProcessSettings, work
    from tarsy.observe.logs import configure

    configure(json=json_logs, level=log_level)
    settings = WorkerProcessSettings(
        database_url=database_url,
        listen_url=listen_url,
        kubeconfig=kubeconfig,
        context=context,
        stdio_tools=stdio_tools,
        workload_identity_for=tuple(workload_identity_for or ()),
        health_host=_health_host(health_port),
        health_port=health_port,
        worker=_worker(places, global_limit, lease_seconds, drain_seconds),
    )
    _go(work(settings), service=True)


@app.command()
def dev(keep: Keep = None, model: Model = None, model_base_url: BaseUrl = None, api: Api = "auto") -> None:
    """Run everything on this machine until Ctrl-C; nothing stays but what --keep says."""
    from tarsy.cli.dev import develop

    _go(develop(keep, model, model_base_url, api))


@app.command()
def demo(keep: Keep = None, model: Model = None, model_base_url: BaseUrl = None, api: Api = "auto") -> None:
    """Investigate a crash-looping Deployment on this machine; ends 0 when the investigation succeeded."""
    from tarsy.cli.demo import demonstrate

    _go(demonstrate(keep, model, model_base_url, api))


@app.command()
def timeline(
    name: Annotated[str, typer.Argument(help="inv/NAME, or NAME.")],
    database_url: DatabaseUrl,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the investigation.")] = "default",
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the investigation ends.")] = False,
) -> None:
    """Print the timeline of an investigation."""
    from tarsy.cli.timeline import show_timeline

    _go(show_timeline(database_url, namespace, name.removeprefix("inv/"), follow=follow))


@app.command()
def ask(
    question: Annotated[str, typer.Argument(help="What to ask.")],
    provider: Annotated[str | None, typer.Option(help="Name of an LLMProvider of the cluster.")] = None,
    file: Annotated[
        Path | None,
        typer.Option("--file", "-f", help="File with an LLMProvider, for no cluster; the key: TARSY_MODEL_API_KEY."),
    ] = None,
    namespace: Annotated[str, typer.Option("--namespace", "-n", help="Namespace of the LLMProvider.")] = "default",
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Ask a model one question, to try its LLMProvider; the answer is streamed."""
    from tarsy.cli.ask import ask_cluster, ask_file

    if (provider is None) == (file is None):
        raise typer.BadParameter("give either --provider or --file")
    if file is not None:
        _go(ask_file(question, file, provider_namespace=namespace))
    else:
        _go(ask_cluster(question, provider or "", namespace, kubeconfig, context))


@app.command()
def usage(
    database_url: DatabaseUrl,
    since: Annotated[str, typer.Option(help="How far back: a number with s, m, h, d or w.")] = "7d",
    by: Annotated[
        Literal["model", "provider", "chain", "alertType", "namespace"], typer.Option(help="What to sum by.")
    ] = "model",
    output: Annotated[
        Literal["text", "json"], typer.Option("--output", "-o", help="For people, or for programs.")
    ] = "text",
) -> None:
    """Print what the models used and cost, out of the record."""
    from tarsy.cli.spans import seconds_of
    from tarsy.cli.usage import show_usage

    _go(show_usage(database_url, _span(since, "--since", seconds_of), since, by, output=output))


@app.command()
def purge(
    database_url: DatabaseUrl,
    older_than: Annotated[
        str, typer.Option(help="How long their runs have ended: a number with s, m, h, d or w; as in 30d.")
    ],
    namespace: Namespaces = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be deleted.")] = False,
    output: Annotated[
        Literal["text", "json"], typer.Option("--output", "-o", help="For people, or for programs.")
    ] = "text",
) -> None:
    """Delete the records of investigations that ended long ago, for good; running ones are never touched."""
    from tarsy.cli.purge import purge_records
    from tarsy.cli.spans import seconds_of

    seconds = _span(older_than, "--older-than", seconds_of)
    _go(purge_records(database_url, seconds, older_than, tuple(namespace or ()), dry_run=dry_run, output=output))


@app.command()
def plan(
    files: Annotated[
        list[Path], typer.Option("--file", "-f", help="File or folder with the configuration; may be repeated.")
    ],
    alert: Annotated[Path, typer.Option(help="File with the Alert, or Investigation, to plan for.")],
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", help="Namespace of objects that name none.")
    ] = "default",
    library_namespace: Annotated[str, typer.Option(envvar="TARSY_LIBRARY_NAMESPACE")] = "tarsy-library",
    output: Annotated[
        Literal["text", "yaml", "json"], typer.Option("--output", "-o", help="For people, or for programs.")
    ] = "text",
) -> None:
    """Print what an investigation would do, and everything that is wrong, out of files and without a cluster."""
    from tarsy.cli.plan import show_plan

    status = show_plan(files, alert, namespace=namespace, library_namespace=library_namespace, output=output)
    raise typer.Exit(status)


@app.command()
def crds(
    out: Annotated[
        Path | None, typer.Option(help="Write the files there, instead of one stream to the output.")
    ] = None,
) -> None:
    """Print the CustomResourceDefinitions of this version."""
    from tarsy.resources.crd import files, write

    if out is not None:
        write(out)
        return
    for name, text in files().items():
        if name != "kustomization.yaml":
            sys.stdout.write("---\n" + text.removeprefix("---\n"))


def _span(text: str, option: str, read: Callable[[str], S]) -> S:
    try:
        return read(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from None


def _worker(places: int, global_limit: int, lease_seconds: float, drain_seconds: float) -> "WorkerSettings":
    """A worker whose heartbeats, and looks for lapsed leases, fit its lease."""
    from tarsy.runtime.settings import WorkerSettings

    usual = WorkerSettings()
    return WorkerSettings(
        places=places,
        global_limit=global_limit,
        lease_seconds=lease_seconds,
        heartbeat_seconds=lease_seconds / 3,
        poll_seconds=min(usual.poll_seconds, lease_seconds / 3),
        drain_seconds=drain_seconds,
    )


def _health_host(port: int) -> str:
    return "127.0.0.1" if port == 0 else "0.0.0.0"


def _go(work: Any, *, service: bool = False) -> None:
    """Runs a command's coroutine (a `service` runs for long); what a person can mend becomes a sentence."""
    from tarsy.cli.loops import fastest

    try:
        with asyncio.Runner(loop_factory=fastest() if service else None) as runner:
            status = runner.run(_interruptible(work))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except asyncio.CancelledError:
        raise typer.Exit(143) from None
    except _mendable() as error:
        _fail(error)
    except BaseExceptionGroup as group:
        part: BaseException | None = group.subgroup(_mendable())
        if part is None:
            raise
        while isinstance(part, BaseExceptionGroup):
            part = part.exceptions[0]
        _fail(part)
    raise typer.Exit(status or 0)


def _mendable() -> tuple[type[Exception], ...]:
    """Errors a person can mend, of what is imported: a command cannot raise those of a room that it never needed."""
    return tuple(getattr(sys.modules[module], name) for module, name in MENDABLE.items() if module in sys.modules)


async def _interruptible(work: Any) -> Any:
    """Makes SIGTERM and a closed terminal end a command as Ctrl-C does: cancelled, so that it tidies up.

    Commands with handlers of their own replace these; a signal that is ignored (nohup) stays ignored.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if task is not None and signal.getsignal(number) is signal.SIG_DFL:
            loop.add_signal_handler(number, task.cancel)
    return await work


def _fail(error: BaseException | None) -> NoReturn:
    typer.echo(f"tarsy: {error}", err=True)
    raise typer.Exit(1) from None
