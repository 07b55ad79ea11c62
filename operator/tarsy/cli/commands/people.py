"""Commands for those who investigate: with their own kubeconfig, or a token, through the API.

Decision: the words are kubectl's (`-n`, `-o`, `--context`, `--kubeconfig`), and each means the same here. Where an
administrator names the database, `timeline` and `usage` read the record itself.
"""

import re
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tarsy.cli.commands.options import span
from tarsy.cli.running import go

if TYPE_CHECKING:
    from tarsy.client.aggregated import AggregatedClient
    from tarsy.client.direct import DirectClient

    AnyDoor = AggregatedClient | DirectClient

_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
_PREFIX = re.compile(r"(inv|investigations?(\.tarsy\.dev)?)/")


def _object_name(value: str | None) -> str | None:
    if value is None:
        return None
    name = _PREFIX.sub("", value, count=1)
    if not _NAME.fullmatch(name):
        raise typer.BadParameter("a name has lower case letters, digits, '-' and '.' only")
    return name


def _text(value: str) -> str:
    if not value.strip():
        raise typer.BadParameter("ask something")
    return value


Name = Annotated[str, typer.Argument(help="inv/NAME, or NAME.", callback=_object_name)]
Namespace = Annotated[
    str | None,
    typer.Option("--namespace", "-n", help="Else that of the kubeconfig's context.", callback=_object_name),
]
ClusterContext = Annotated[str | None, typer.Option(help="Context of the kubeconfig.")]
KubeconfigFile = Annotated[str | None, typer.Option(help="Else KUBECONFIG, else the one in the home directory.")]
Server = Annotated[
    str | None, typer.Option(envvar="TARSY_SERVER", help="URL of TARSy's own HTTP API, instead of the Kubernetes API.")
]
TokenFile = Annotated[
    Path | None,
    typer.Option(
        envvar="TARSY_TOKEN_FILE", help="With --server: the bearer token; else TARSY_TOKEN, else the kubeconfig's."
    ),
]
Authority = Annotated[
    str | None,
    typer.Option("--certificate-authority", help="With --server: certificates that its own is checked against."),
]
OptionalDatabaseUrl = Annotated[
    str | None,
    typer.Option(
        envvar="TARSY_DATABASE_URL",
        metavar="URL",
        help="For administrators: read the record from this database, not through the API.",
        show_envvar=True,
    ),
]
OutputOption = Annotated[
    Literal["text", "wide", "json", "yaml"], typer.Option("--output", "-o", help="For people, or for programs.")
]


def timeline(
    name: Name,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the investigation ends.")] = False,
    namespace: Namespace = None,
    output: OutputOption = "text",
    context: ClusterContext = None,
    kubeconfig: KubeconfigFile = None,
    server: Server = None,
    token_file: TokenFile = None,
    certificate_authority: Authority = None,
    database_url: OptionalDatabaseUrl = None,
) -> None:
    """Print the timeline of an investigation, and of the questions about it."""
    if database_url is not None:
        from tarsy.cli.database_timeline import show_recorded_timeline

        go(show_recorded_timeline(database_url, namespace or "default", name, output, following=follow))

    async def work(door: "AnyDoor") -> int:
        from tarsy.cli.timeline import ApiTimeline, show_timeline

        return await show_timeline(ApiTimeline(door, door.namespace, name), output, following=follow)

    _through(work, kubeconfig, context, namespace, server, token_file, certificate_authority)


def chat(
    name: Name,
    question: Annotated[str, typer.Argument(help="What to ask.", callback=_text)],
    namespace: Namespace = None,
    output: OutputOption = "text",
    context: ClusterContext = None,
    kubeconfig: KubeconfigFile = None,
    server: Server = None,
    token_file: TokenFile = None,
    certificate_authority: Authority = None,
) -> None:
    """Ask about an investigation that has ended; ends 0 only when there is an answer."""

    async def work(door: "AnyDoor") -> int:
        from tarsy.cli.chat import ask_and_follow as ask

        return await ask(door, door.namespace, name, question, output)

    _through(work, kubeconfig, context, namespace, server, token_file, certificate_authority)


def trace(
    name: Name,
    llm: Annotated[str | None, typer.Option(metavar="ID", help="This model call: all that was sent and said.")] = None,
    mcp: Annotated[str | None, typer.Option(metavar="ID", help="This tool call: arguments and result.")] = None,
    question: Annotated[
        str | None, typer.Option(metavar="NAME", help="The calls for this question.", callback=_object_name)
    ] = None,
    namespace: Namespace = None,
    output: OutputOption = "text",
    context: ClusterContext = None,
    kubeconfig: KubeconfigFile = None,
    server: Server = None,
    token_file: TokenFile = None,
    certificate_authority: Authority = None,
) -> None:
    """Print the calls of models and tools, or one of them; needs the role tarsy-tracer."""
    if sum(given is not None for given in (llm, mcp, question)) > 1:
        raise typer.BadParameter("give one of --llm, --mcp and --question")

    async def work(door: "AnyDoor") -> int:
        from tarsy.cli.trace import show_call, show_trace

        if llm is not None:
            return await show_call(door, door.namespace, name, "llm", llm, output)
        if mcp is not None:
            return await show_call(door, door.namespace, name, "mcp", mcp, output)
        return await show_trace(door, door.namespace, name, question, output)

    _through(work, kubeconfig, context, namespace, server, token_file, certificate_authority)


def why(
    name: Name,
    namespace: Namespace = None,
    output: OutputOption = "text",
    context: ClusterContext = None,
    kubeconfig: KubeconfigFile = None,
    server: Server = None,
    token_file: TokenFile = None,
    certificate_authority: Authority = None,
) -> None:
    """Print what was found, and what each claim rests on."""

    async def work(door: "AnyDoor") -> int:
        from tarsy.cli.why import explain_finding

        return await explain_finding(door, door.namespace, name, output)

    _through(work, kubeconfig, context, namespace, server, token_file, certificate_authority)


def cancel(
    name: Name,
    namespace: Namespace = None,
    output: OutputOption = "text",
    context: ClusterContext = None,
    kubeconfig: KubeconfigFile = None,
    server: Server = None,
    token_file: TokenFile = None,
    certificate_authority: Authority = None,
) -> None:
    """Stop an investigation at once, or, when it has ended, the questions about it."""
    _through(
        _wanting(name, "Cancelled", output), kubeconfig, context, namespace, server, token_file, certificate_authority
    )


def conclude(
    name: Name,
    namespace: Namespace = None,
    output: OutputOption = "text",
    context: ClusterContext = None,
    kubeconfig: KubeconfigFile = None,
    server: Server = None,
    token_file: TokenFile = None,
    certificate_authority: Authority = None,
) -> None:
    """Stop an investigation now and have it sum up what it has."""
    _through(
        _wanting(name, "Concluded", output), kubeconfig, context, namespace, server, token_file, certificate_authority
    )


def submit(
    file: Annotated[str, typer.Option("--file", "-f", help="File with an Alert, or -; with --type: with its text.")],
    alert_type: Annotated[
        str | None, typer.Option("--type", help="The file is no Alert: its text is, and this is the alert's type.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the Alert.", callback=_object_name)] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Follow the investigation; end 0 only when it has succeeded.")
    ] = False,
    namespace: Namespace = None,
    output: OutputOption = "text",
    context: ClusterContext = None,
    kubeconfig: KubeconfigFile = None,
    server: Server = None,
    token_file: TokenFile = None,
    certificate_authority: Authority = None,
) -> None:
    """Hand an alert in, and print the investigation that takes it."""

    async def work(door: "AnyDoor") -> int:
        from tarsy.cli.submit import namespace_of, read_alert
        from tarsy.cli.submit import submit_alert as hand_in

        alert = read_alert(file, alert_type, name)
        return await hand_in(door, namespace_of(alert, namespace, door.namespace), alert, output, wait=wait)

    _through(work, kubeconfig, context, namespace, server, token_file, certificate_authority)


def usage(
    since: Annotated[str, typer.Option(help="How far back: a number with s, m, h, d or w.")] = "7d",
    by: Annotated[
        Literal["model", "provider", "chain", "alertType", "namespace", "day"] | None,
        typer.Option(help="What to sum by; model, provider and day need --server or --database-url."),
    ] = None,
    namespace: Namespace = None,
    all_namespaces: Annotated[bool, typer.Option("--all-namespaces", "-A", help="Of all namespaces.")] = False,
    output: OutputOption = "text",
    context: ClusterContext = None,
    kubeconfig: KubeconfigFile = None,
    server: Server = None,
    token_file: TokenFile = None,
    certificate_authority: Authority = None,
    database_url: OptionalDatabaseUrl = None,
) -> None:
    """Print what the models used and cost."""
    from tarsy.app.durations import seconds_of

    seconds = span(since, "--since", seconds_of)
    if database_url is not None:
        from tarsy.cli.usage import usage_of_database

        go(usage_of_database(database_url, seconds, since, by or "model", output))

    async def work(door: "AnyDoor") -> int:
        from tarsy.cli.usage import usage_of_objects, usage_of_record
        from tarsy.client.aggregated import AggregatedClient

        where = None if all_namespaces else door.namespace
        if isinstance(door, AggregatedClient):
            assert by in (None, "chain", "alertType", "namespace")
            return await usage_of_objects(door, where, seconds, since, by or "chain", output)
        return await usage_of_record(door, where, max(1, round(seconds / 86_400)), by or "model", output)

    if server is None and by in ("model", "provider", "day"):
        raise typer.BadParameter(f"{by} needs --server or --database-url", param_hint="--by")
    _through(work, kubeconfig, context, namespace, server, token_file, certificate_authority)


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="Which shell.")]) -> None:
    """Print a shell's completion script, as in: source <(tarsy completion bash)."""
    from tarsy.cli.completion import script

    sys.stdout.write(script(shell, Path(sys.argv[0]).name if "kubectl" in Path(sys.argv[0]).name else "tarsy"))


def _wanting(name: str, desired: str, output: Any) -> "Callable[[AnyDoor], Coroutine[Any, Any, int]]":
    async def work(door: "AnyDoor") -> int:
        from tarsy.cli.desired_state import want

        return await want(door, door.namespace, name, desired, output)

    return work


def _through(
    work: "Callable[[AnyDoor], Coroutine[Any, Any, int]]",
    kubeconfig: str | None,
    context: str | None,
    namespace: str | None,
    server: str | None,
    token_file: Path | None,
    certificate_authority: str | None,
) -> None:
    """Runs a command through the door that its options name."""
    from tarsy.client.opening import ConnectionOptions, open_client

    async def through() -> int:
        access = ConnectionOptions(kubeconfig, context, namespace, server, token_file, certificate_authority)
        async with open_client(access) as door:
            return await work(door)

    go(through())
