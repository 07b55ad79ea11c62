"""Declares `tarsy run`, `tarsy worker` and `tarsy mcp-gateway`, the long-running processes; their options are
settings."""

import sys
from typing import Annotated

import typer

from tarsy.app.settings.processes import GatewayProcessSettings, OperatorSettings, WorkerProcessSettings
from tarsy.app.settings.serving_topics import LoggingSettings
from tarsy.cli.commands.settings import settings_command
from tarsy.cli.running import fail, go


@settings_command(OperatorSettings)
def run(settings: OperatorSettings) -> None:
    """Run the operator against a cluster."""
    from tarsy.app.operator import operate

    _log(settings.logging)
    go(operate(settings), service=True)


@settings_command(WorkerProcessSettings)
def worker(settings: WorkerProcessSettings) -> None:
    """Run a worker: it executes investigations that an operator accepted. Workers scale horizontally."""
    from tarsy.app.errors import StartError
    from tarsy.app.pod import cores, memory_bytes
    from tarsy.app.worker_shares import shares_of

    _log(settings.logging)
    try:
        shares = shares_of(settings, cores(), memory_bytes())
    except StartError as error:
        fail(error)
    if len(shares) == 1:
        from tarsy.app.worker import work

        go(work(settings, shares[0]), service=True)
    else:
        from tarsy.app.supervisor import supervise

        go(supervise(settings, shares, [sys.executable, "-P", "-m", "tarsy.cli", "worker-process"]))


def worker_process(channel: Annotated[int, typer.Argument(help="Socket of the supervisor.")]) -> None:
    """Run one worker process of a pod; only the supervisor starts it."""
    import socket

    from tarsy.app.parent import end_with_parent
    from tarsy.app.worker_channel import Reporter, receive_order

    socket_of_supervisor = socket.socket(fileno=channel)
    order = receive_order(socket_of_supervisor)
    end_with_parent(order.parent)
    _log(order.settings.logging, order.share.number)
    from tarsy.app.worker import work

    go(work(order.settings, order.share, Reporter(socket_of_supervisor).serve), service=True)


@settings_command(GatewayProcessSettings)
def mcp_gateway(
    settings: GatewayProcessSettings,
    command: Annotated[
        list[str] | None, typer.Argument(help="Command of the tool server and its arguments, after --.")
    ] = None,
) -> None:
    """Serve a stdio tool server over streamable HTTP, with one process per session."""
    from tarsy.app.gateway import serve

    _log(settings.logging)
    go(serve(command or (), settings.gateway), service=True)


def _log(logging: LoggingSettings, process: int | None = None) -> None:
    from tarsy.observe.logs import configure

    configure(json=logging.json_lines, level=logging.level, process=process)
