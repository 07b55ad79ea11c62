"""`tarsy`: the operator and its tools, one command each.

Commands import what they need when they run: the whole operator takes seconds to import, `tarsy crds` must not.
Errors that a person can do something about are one sentence on standard error and exit status 1.
"""

import asyncio
import signal
import sys
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn

import typer

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


def main() -> None:
    """The entry point of the command."""
    app()


@app.command()
def run(
    database_url: DatabaseUrl,
    listen_url: Annotated[
        str | None, typer.Option(envvar="TARSY_LISTEN_URL", help="Address for LISTEN, past a transaction pooler.")
    ] = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    namespace: Namespaces = None,
    library_namespace: Annotated[str, typer.Option(envvar="TARSY_LIBRARY_NAMESPACE")] = "tarsy-library",
    lease_namespace: Annotated[str, typer.Option(envvar="TARSY_LEASE_NAMESPACE")] = "tarsy-system",
    places: Annotated[int, typer.Option(min=1, help="Investigations of this process at once.")] = 20,
    global_limit: Annotated[int, typer.Option(min=1, help="Investigations of the installation at once.")] = 100,
    lease_seconds: Annotated[float, typer.Option(min=2, help="A silent worker's runs go to others after this.")] = 15,
    stdio_tools: Annotated[bool, typer.Option(help="Let MCPServers run commands here: on one machine only.")] = False,
    runbook_host: Annotated[
        list[str] | None,
        typer.Option(help="Runbooks may be fetched from this host, whatever its address, for every namespace."),
    ] = None,
    health_port: Annotated[int, typer.Option(help="Port of /healthz and /readyz; 0: a free one on loopback.")] = 8080,
    json_logs: Annotated[bool, typer.Option(help="One JSON object a line.")] = False,
    log_level: Annotated[str, typer.Option(envvar="TARSY_LOG_LEVEL")] = "INFO",
) -> None:
    """Run the operator against a cluster."""
    from tarsy.cli.operator import OperatorSettings, operate
    from tarsy.observe.logs import configure
    from tarsy.runtime.settings import WorkerSettings

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
        health_host="127.0.0.1" if health_port == 0 else "0.0.0.0",
        health_port=health_port,
        worker=WorkerSettings(
            places=places,
            global_limit=global_limit,
            lease_seconds=lease_seconds,
            heartbeat_seconds=lease_seconds / 3,
        ),
    )
    _go(operate(settings))


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
    from tarsy.cli.usage import seconds_of, show_usage

    try:
        seconds = seconds_of(since)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--since") from None
    _go(show_usage(database_url, seconds, since, by, output=output))


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


def _go(work: Any) -> None:
    """Runs a command's coroutine; what a person can mend becomes a sentence."""
    from tarsy.cli.errors import AskError
    from tarsy.kube.client import ApiError
    from tarsy.local.apiserver.errors import LocalKubernetesError
    from tarsy.local.model.script import ScriptError
    from tarsy.local.postgres.errors import PostgresError
    from tarsy.store.errors import StoreError

    known = (AskError, ApiError, StoreError, LocalKubernetesError, PostgresError, ScriptError)
    try:
        status = asyncio.run(_interruptible(work))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except asyncio.CancelledError:
        raise typer.Exit(143) from None
    except known as error:
        _fail(error)
    except BaseExceptionGroup as group:
        part: BaseException | None = group.subgroup(known)
        if part is None:
            raise
        while isinstance(part, BaseExceptionGroup):
            part = part.exceptions[0]
        _fail(part)
    raise typer.Exit(status or 0)


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
