"""Configures logging: one JSON object a line for machines, or coloured lines for a terminal.

Libraries log through the standard library; structlog formats all lines alike. No alert text, prompt or Secret is logged
at any level, because logs have other readers than the record. The context of a line (investigation, attempt, stage,
agent) is bound to the task and the tasks that it starts, and is not passed as an argument.
"""

import logging
import sys
from collections.abc import MutableMapping
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, TextIO

import structlog
from structlog.typing import Processor

QUIETER = ("httpx", "httpx2", "httpcore", "httpcore2", "openai", "mcp", "kopf", "aiohttp.access", "opentelemetry")
"""Loggers of libraries that write less than the root: a process-wide change, as that of the root."""


def configure(*, json: bool, level: str = "INFO", stream: TextIO | None = None, process: int | None = None) -> None:
    """Configures the logs of this process.

    Args:
        json: whether to write JSON; else lines for a terminal.
        level: minimum level.
        stream: output; None: standard error.
        process: number of this process in its pod, for every line; None: it is the only one.
    """
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.contextvars.merge_contextvars,
    ]
    if process is not None:
        shared.append(partial(_name_process, process))
    if json:
        renderers: list[Processor] = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    else:
        renderers = [
            structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
        ]
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[structlog.stdlib.ExtraAdder(), *shared],
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderers],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(level)
    for chatty in QUIETER:
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))
    # An exporter without a collector logs each batch; `tracing_export` logs it once.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)


def log_context(**words: str | int) -> AbstractContextManager[object]:
    """Binds context to the log lines of this task while entered, and of the tasks started meanwhile."""
    return structlog.contextvars.bound_contextvars(**words)


def bind(**words: str) -> None:
    """Binds context to all later log lines of this task, and of the tasks that it starts."""
    structlog.contextvars.bind_contextvars(**words)


def _name_process(process: int, _logger: Any, _method: str, line: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    return {**line, "process": process}
