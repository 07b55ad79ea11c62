"""Declares the commands of people who investigate: through the API, with their own kubeconfig or token.

Decision: the options are kubectl's (`-n`, `-o`, `--context`, `--kubeconfig`), and each means the same here. With
`--database-url`, for administrators, `timeline` and `usage` read the record from the database.
"""

import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tarsy.cli.commands.connection import object_name, run_with_client, with_connection
from tarsy.cli.commands.options import span
from tarsy.cli.running import go

if TYPE_CHECKING:
    from tarsy.cli.commands.connection import AnyClient
    from tarsy.cli.output import Output
    from tarsy.client.opening import ConnectionOptions
    from tarsy.record.reading.usage_report import UsageBy


def _text(value: str) -> str:
    if not value.strip():
        raise typer.BadParameter("ask something")
    return value


Name = Annotated[str, typer.Argument(help="Name of the investigation: inv/NAME or NAME.", callback=object_name)]
OptionalDatabaseUrl = Annotated[
    str | None,
    typer.Option(
        envvar="TARSY_DATABASE_URL",
        metavar="URL",
        help="postgresql:// URL of the database to read instead of the API, for administrators.",
        show_envvar=True,
    ),
]
OutputOption = Annotated[
    Literal["text", "wide", "json", "yaml"],
    typer.Option("--output", "-o", help="Output format: text or wide for a terminal, json or yaml for programs."),
]


@with_connection
def timeline(
    connection: "ConnectionOptions",
    name: Name,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Print new events until the investigation ends.")
    ] = False,
    output: OutputOption = "text",
    database_url: OptionalDatabaseUrl = None,
) -> None:
    """Print the timeline of an investigation and of the questions about it."""
    if database_url is not None:
        from tarsy.cli.runs.database_timeline import show_recorded_timeline

        go(show_recorded_timeline(database_url, connection.namespace or "default", name, output, following=follow))

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.runs.timeline import ApiTimeline, show_timeline

        return await show_timeline(ApiTimeline(client, client.namespace, name), output, following=follow)

    run_with_client(connection, work)


@with_connection
def chat(
    connection: "ConnectionOptions",
    name: Name,
    question: Annotated[str, typer.Argument(help="The question.", callback=_text)],
    output: OutputOption = "text",
) -> None:
    """Ask a question about an investigation that has ended. Exits with 0 only if it is answered."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.requests.chat import ask_and_follow as ask

        return await ask(client, client.namespace, name, question, output)

    run_with_client(connection, work)


@with_connection
def trace(
    connection: "ConnectionOptions",
    name: Name,
    llm: Annotated[
        str | None, typer.Option(metavar="ID", help="Print this model call: its full request and response.")
    ] = None,
    mcp: Annotated[
        str | None, typer.Option(metavar="ID", help="Print this tool call: its arguments and result.")
    ] = None,
    question: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Print the calls for this question (a ChatMessage).", callback=object_name),
    ] = None,
    output: OutputOption = "text",
) -> None:
    """Print the model and tool calls of an investigation, or one of them. Requires the role tarsy-tracer."""
    if sum(given is not None for given in (llm, mcp, question)) > 1:
        raise typer.BadParameter("give one of --llm, --mcp and --question")

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.runs.trace import show_call, show_trace

        if llm is not None:
            return await show_call(client, client.namespace, name, "llm", llm, output)
        if mcp is not None:
            return await show_call(client, client.namespace, name, "mcp", mcp, output)
        return await show_trace(client, client.namespace, name, question, output)

    run_with_client(connection, work)


@with_connection
def precedents(connection: "ConnectionOptions", name: Name, output: OutputOption = "text") -> None:
    """Print the earlier investigations that an investigation's agents were given as hints, and their outcomes."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.runs.precedents import print_precedents

        return await print_precedents(client, client.namespace, name, output)

    run_with_client(connection, work)


@with_connection
def verify(connection: "ConnectionOptions", name: Name, output: OutputOption = "text") -> None:
    """Check that the record of an investigation was not changed. Exits with 1 if it was, 2 if it has no seals."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.runs.verify import verify_record

        return await verify_record(client, client.namespace, name, output)

    run_with_client(connection, work)


@with_connection
def compare(
    connection: "ConnectionOptions",
    first: Name,
    second: Annotated[
        str, typer.Argument(help="Name of the other investigation: inv/NAME or NAME.", callback=object_name)
    ],
    output: OutputOption = "text",
) -> None:
    """Print two investigations side by side, up to the first tool calls that differ. Requires the role tarsy-tracer."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.runs.compare import compare_runs

        return await compare_runs(client, client.namespace, first, second, output)

    run_with_client(connection, work)


@with_connection
def replay(
    connection: "ConnectionOptions",
    name: Name,
    chain: Annotated[
        str | None, typer.Option(metavar="NAME", help="Chain to run. Default: the recorded one.", callback=object_name)
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="LLMProvider of the chain's namespace that all agents use. Default: their own.",
            callback=object_name,
        ),
    ] = None,
    on_miss: Annotated[
        Literal["Refuse", "Live", "Simulate"],
        typer.Option(
            help="Handling of calls of read-only tools that are not recorded. Live: the tool is called. Simulate: a "
            "model makes up an answer, which supports no claim."
        ),
    ] = "Refuse",
    output: OutputOption = "text",
) -> None:
    """Replay a finished investigation with its recorded tool results. Requires the role tarsy-tracer."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.requests.replay import start_replay

        return await start_replay(
            client, client.namespace, name, output, chain=chain, provider=provider, on_miss=on_miss
        )

    run_with_client(connection, work)


@with_connection
def retry(
    connection: "ConnectionOptions",
    name: Name,
    chain: Annotated[
        str | None, typer.Option(metavar="NAME", help="Chain to run. Default: the same.", callback=object_name)
    ] = None,
    provider: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="LLMProvider of the chain's namespace that all agents use. Default: as before.",
            callback=object_name,
        ),
    ] = None,
    output: OutputOption = "text",
) -> None:
    """Run a finished investigation again: investigate its alert anew, with live tools."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.requests.retry import start_retry

        return await start_retry(client, client.namespace, name, output, chain=chain, provider=provider)

    run_with_client(connection, work)


@with_connection
def why(connection: "ConnectionOptions", name: Name, output: OutputOption = "text") -> None:
    """Print the finding of an investigation and the evidence of each claim."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.runs.why import explain_finding

        return await explain_finding(client, client.namespace, name, output)

    run_with_client(connection, work)


@with_connection
def cancel(connection: "ConnectionOptions", name: Name, output: OutputOption = "text") -> None:
    """Stop an investigation immediately or, if it has ended, the pending questions about it."""
    run_with_client(connection, _wanting(name, "Cancelled", output))


@with_connection
def conclude(connection: "ConnectionOptions", name: Name, output: OutputOption = "text") -> None:
    """Stop an investigation and let it conclude from the evidence it has."""
    run_with_client(connection, _wanting(name, "Concluded", output))


@with_connection
def submit(
    connection: "ConnectionOptions",
    file: Annotated[
        str, typer.Option("--file", "-f", help="File with an Alert, or - for standard input; with --type: a text file.")
    ],
    alert_type: Annotated[
        str | None,
        typer.Option("--type", help="Type of the alert. The file then contains the alert's text, not an Alert object."),
    ] = None,
    text: Annotated[
        bool,
        typer.Option("--text", help="The file contains the alert's text, of the default type of the namespace."),
    ] = False,
    name: Annotated[str | None, typer.Option(help="Name of the Alert.", callback=object_name)] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Follow the investigation. Exits with 0 only if it succeeds.")
    ] = False,
    output: OutputOption = "text",
) -> None:
    """Submit an alert and print the investigation that handles it."""

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.requests.submit import namespace_of, read_alert, submit_and_print

        alert = read_alert(file, alert_type, name, text=text)
        namespace = namespace_of(alert, connection.namespace, client.namespace)
        return await submit_and_print(client, namespace, alert, output, wait=wait)

    run_with_client(connection, work)


@with_connection
def usage(
    connection: "ConnectionOptions",
    since: Annotated[
        str, typer.Option(help="Length of the period up to now: a number with s, m, h, d or w, such as 7d.")
    ] = "7d",
    by: Annotated[
        Literal["model", "provider", "chain", "alertType", "namespace", "author", "day"] | None,
        typer.Option(
            help="Field to group by; model, provider, author and day need --server or --database-url. Default: chain, "
            "or model with either of these and without --days."
        ),
    ] = None,
    days: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=366,
            help="Number of whole days up to today instead of --since, as in the web UI; in the time zone of TZ, or "
            "UTC. Needs --server or --database-url.",
        ),
    ] = None,
    all_namespaces: Annotated[
        bool, typer.Option("--all-namespaces", "-A", help="Include the investigations of all namespaces.")
    ] = False,
    output: OutputOption = "text",
    database_url: OptionalDatabaseUrl = None,
) -> None:
    """Print the token usage and the cost of models."""
    from tarsy.app.durations import seconds_of

    seconds = span(since, "--since", seconds_of)
    if days is not None:
        _daily_usage(connection, database_url, by, days, all_namespaces, output)
        return
    if database_url is not None:
        from tarsy.cli.reports.usage import usage_of_database

        go(usage_of_database(database_url, seconds, since, by or "model", output))

    async def work(client: "AnyClient") -> int:
        from tarsy.cli.reports.usage import usage_of_objects, usage_of_record
        from tarsy.client.aggregated import AggregatedClient

        where = None if all_namespaces else client.namespace
        if isinstance(client, AggregatedClient):
            assert by in (None, "chain", "alertType", "namespace")
            return await usage_of_objects(client, where, seconds, since, by or "chain", output)
        return await usage_of_record(client, where, max(1, round(seconds / 86_400)), by or "model", output)

    if connection.server is None and by in ("model", "provider", "author", "day"):
        raise typer.BadParameter(f"{by} needs --server or --database-url", param_hint="--by")
    run_with_client(connection, work)


def _daily_usage(
    connection: "ConnectionOptions",
    database_url: str | None,
    by: "UsageBy | None",
    days: int,
    all_namespaces: bool,
    output: "Output",
) -> None:
    from tarsy.cli.reports.daily_usage import daily_usage_of_database, daily_usage_of_record

    dimension = by or "chain"
    if dimension == "day":
        raise typer.BadParameter("with --days, group by another field; -o json contains each day", param_hint="--by")
    if database_url is not None:
        go(daily_usage_of_database(database_url, days, dimension, output))
        return
    if connection.server is None:
        raise typer.BadParameter("needs --server or --database-url", param_hint="--days")

    async def work(client: "AnyClient") -> int:
        return await daily_usage_of_record(
            client, None if all_namespaces else client.namespace, days, dimension, output
        )

    run_with_client(connection, work)


def completion(shell: Annotated[Literal["bash", "zsh", "fish"], typer.Argument(help="The shell.")]) -> None:
    """Print the completion script of a shell. Load it with: source <(tarsy completion bash)."""
    from tarsy.cli.completion import script

    sys.stdout.write(script(shell, Path(sys.argv[0]).name if "kubectl" in Path(sys.argv[0]).name else "tarsy"))


def _wanting(name: str, desired: str, output: Any) -> "Callable[[AnyClient], Coroutine[Any, Any, int]]":
    async def work(client: "AnyClient") -> int:
        from tarsy.cli.requests.desired_state import want

        return await want(client, client.namespace, name, desired, output)

    return work
