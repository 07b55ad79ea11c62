"""Runs the coroutine of a command; an error that a user can correct becomes one sentence and exit status 1.

Decision: such errors are listed by their modules, so recognizing them imports no further package.
"""

import asyncio
import signal
import sys
from typing import Any, NoReturn

import typer

MENDABLE = {
    "tarsy.app.errors": "StartError",
    "tarsy.cli.errors": "CommandError",
    "tarsy.client.errors": "ApiUseError",
    "tarsy.http.admission.tls": "CertificateError",
    "tarsy.kube.client": "ApiError",
    "tarsy_dev.apiserver.errors": "LocalKubernetesError",
    "tarsy_dev.errors": "DevelopmentError",
    "tarsy_dev.model.script": "ScriptError",
    "tarsy_dev.postgres.errors": "PostgresError",
    "tarsy.observe.tracing": "TracingError",
    "tarsy.store.errors": "StoreError",
}
"""Errors that a user can correct, by module."""


def go(work: Any, *, service: bool = False) -> None:
    """Runs the coroutine of a command and exits; `service` marks a long-running process."""
    from tarsy.app.event_loop import fastest
    from tarsy.app.garbage import keep_modules

    if service:
        keep_modules()
    try:
        with asyncio.Runner(loop_factory=fastest() if service else None) as runner:
            status = runner.run(_interruptible(work))
    except KeyboardInterrupt:
        raise typer.Exit(130) from None
    except asyncio.CancelledError:
        raise typer.Exit(143) from None
    except _mendable() as error:
        fail(error)
    except BaseExceptionGroup as group:
        part: BaseException | None = group.subgroup(_mendable())
        if part is None:
            raise
        while isinstance(part, BaseExceptionGroup):
            part = part.exceptions[0]
        fail(part)
    raise typer.Exit(status or 0)


def _mendable() -> tuple[type[Exception], ...]:
    """Returns the errors of imported modules; others cannot have been raised."""
    return tuple(getattr(sys.modules[module], name) for module, name in MENDABLE.items() if module in sys.modules)


async def _interruptible(work: Any) -> Any:
    """Cancels a command on SIGTERM and SIGHUP as on Ctrl-C, so that it cleans up.

    Commands with their own handlers replace these; a signal that is ignored (nohup) stays ignored.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    for number in (signal.SIGTERM, signal.SIGHUP):
        if task is not None and signal.getsignal(number) is signal.SIG_DFL:
            loop.add_signal_handler(number, task.cancel)
    return await work


def fail(error: BaseException | None) -> NoReturn:
    typer.echo(f"tarsy: {error}", err=True)
    raise typer.Exit(1) from None
