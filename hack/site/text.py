"""Formats the Markdown of generated pages: table cells and tables.

Decision: text of the models is data: a pipe or an angle bracket in it is shown, never markup.
"""

from collections.abc import Iterable, Sequence


def line(text: str) -> str:
    """Text on one line, as a cell of a table shows it."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;")


def code(value: object) -> str:
    """A value as code, in a cell; truth values as YAML writes them."""
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"`{text.replace('|', chr(92) + '|')}`"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; nothing when it has no rows."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([f"| {' | '.join(headings)} |", "|" + "---|" * len(headings), *lines]) if lines else ""


def page(parts: Iterable[str]) -> str:
    """A page of its parts, without those that say nothing."""
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"
