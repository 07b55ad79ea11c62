"""`tarsy mcp-gateway`, the command of containers that hold a tool server."""

from pathlib import Path
from typing import Annotated

import typer

from tarsy.cli.commands.options import JsonLogs, LogLevel
from tarsy.cli.running import go


def mcp_gateway(
    command: Annotated[list[str], typer.Argument(help="The tool server and its arguments, after --.")],
    token_file: Annotated[Path, typer.Option(help="File with the bearer token that every request must bring.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "0.0.0.0",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Its port; 0: a free one.")] = 8080,
    env: Annotated[
        list[str] | None,
        typer.Option(
            help="The tool server gets this variable of the gateway; may be repeated. Else it gets PATH only."
        ),
    ] = None,
    max_sessions: Annotated[int, typer.Option(min=1, help="Sessions, so processes, at once.")] = 64,
    max_message_mib: Annotated[int, typer.Option(min=1, max=1024, help="Size of one message, in MiB.")] = 64,
    idle_seconds: Annotated[float, typer.Option(min=1, help="A session that nobody asks ends after this.")] = 600,
    json_logs: JsonLogs = False,
    log_level: LogLevel = "INFO",
) -> None:
    """Serve a tool server that speaks stdio over streamable HTTP: a process for each session."""
    from tarsy.app.gateway import serve
    from tarsy.mcp.gateway import GatewayLimits
    from tarsy.observe.logs import configure

    configure(json=json_logs, level=log_level)
    limits = GatewayLimits(
        sessions=max_sessions, message_bytes=max_message_mib * 1024 * 1024, idle_seconds=idle_seconds
    )
    go(serve(command, env or (), token_file, limits, host, port), service=True)
