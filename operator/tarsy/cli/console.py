"""Creates the console of commands: as wide as the terminal, of unlimited width if the output is piped.

Decision: piped lines are never wrapped, cut or padded, as with kubectl.
"""

import sys
from typing import IO, Any

from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.segment import Segment
from rich.text import Text

ENDLESS = 1_000_000
"""Columns of what is no terminal."""


def new_console(stream: IO[str] | None = None, **options: Any) -> Console:
    """Makes the console of a command; highlighting is off unless `options` says otherwise.

    Args:
        stream: the output stream; standard output by default.
        options: of `rich.console.Console`.
    """
    stream = stream or sys.stdout
    width = {} if stream.isatty() else {"width": ENDLESS}
    return Console(file=stream, **{"highlight": False, **width, **options})


class Indented:
    """Renders something some columns to the right, without trailing blanks."""

    def __init__(self, inner: RenderableType, columns: int) -> None:
        self._inner, self._columns = inner, columns

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = max(1, options.max_width - self._columns)
        for line in console.render_lines(self._inner, options.update(width=width), pad=False):
            if line:
                yield Segment(" " * self._columns)
            yield from line
            yield Segment.line()


class Hanging:
    """Renders a text with a hanging indent."""

    def __init__(self, text: Text, columns: int) -> None:
        self._text, self._columns = text, columns

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        for number, line in enumerate(self._text.wrap(console, max(1, options.max_width - self._columns))):
            line.rstrip()
            yield Text.assemble(" " * self._columns, line) if number else line
