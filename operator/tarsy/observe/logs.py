"""Logs: one JSON object a line for machines, or coloured lines for a person at a terminal.

Libraries log through the standard library; structlog formats everything, so there is one shape. No alert text, no
prompt and no Secret is logged at any level (DESIGN section 7). What a line is about (an investigation, its attempt, the
stage, the agent) is bound to the task that does it and to those that it starts, never handed through calls.
"""

import logging
import sys
from contextlib import AbstractContextManager
from typing import TextIO

import structlog
from structlog.typing import Processor


def configure(*, json: bool, level: str = "INFO", stream: TextIO | None = None) -> None:
    """Sends all logs of this process to `stream` (standard error)."""
    shared: list[Processor] = [
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.contextvars.merge_contextvars,
    ]
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
    for chatty in ("httpx", "httpx2", "httpcore", "httpcore2", "openai", "mcp", "kopf", "aiohttp.access"):
        logging.getLogger(chatty).setLevel(max(logging.WARNING, root.level))
    # An exporter that reaches no collector says so at each batch; `tracing_export` says it once.
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)


def log_context(**words: str | int) -> AbstractContextManager[object]:
    """What is logged meanwhile by this task, and always by those that it starts meanwhile, is about `words`."""
    return structlog.contextvars.bound_contextvars(**words)


def bind(**words: str) -> None:
    """What this task logs from here on, and those that it starts, is about `words` too."""
    structlog.contextvars.bind_contextvars(**words)
