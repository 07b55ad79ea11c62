"""`tarsy run`, `tarsy worker` and `tarsy mcp-gateway`: the long-running processes. Their options are their settings."""

from typing import Annotated

import typer

from tarsy.app.settings.processes import GatewayProcessSettings, OperatorSettings, WorkerProcessSettings
from tarsy.app.settings.serving_topics import LoggingSettings
from tarsy.cli.commands.settings import settings_command
from tarsy.cli.running import go


@settings_command(OperatorSettings)
def run(settings: OperatorSettings) -> None:
    """Run the operator against a cluster."""
    from tarsy.app.operator import operate

    _log(settings.logging)
    go(operate(settings), service=True)


@settings_command(WorkerProcessSettings)
def worker(settings: WorkerProcessSettings) -> None:
    """Run a worker: it executes investigations that an operator accepted. Workers scale horizontally."""
    from tarsy.app.worker import work

    _log(settings.logging)
    go(work(settings), service=True)


@settings_command(GatewayProcessSettings)
def mcp_gateway(
    settings: GatewayProcessSettings,
    command: Annotated[list[str], typer.Argument(help="Command of the tool server and its arguments, after --.")],
) -> None:
    """Serve a stdio tool server over streamable HTTP, with one process per session."""
    from tarsy.app.gateway import serve

    _log(settings.logging)
    go(serve(command, settings.gateway), service=True)


def _log(logging: LoggingSettings) -> None:
    from tarsy.observe.logs import configure

    configure(json=logging.json_lines, level=logging.level)
