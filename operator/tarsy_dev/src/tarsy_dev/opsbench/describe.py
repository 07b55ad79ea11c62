"""Parses the text of `kubectl describe` and of `kubectl get` into fields and rows, without trusting it.

`describe` is written for people: keys with values, nested by indentation, and tables. What fits no form is left out.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

MOST_CHARACTERS = 262_144
"""Maximum length of a text; the rest is left out."""

_FIELD = re.compile(r"( *)([^\s:][^:]*):(?: +(.*?))? *")
_COLUMNS = re.compile(r" {2,}")
_NONE = ("<none>", "<unset>", "<nil>")
_TABLES = ("Events", "Conditions")


@dataclass(slots=True)
class Field:
    """A line `KEY: VALUE` with what is indented below it.

    Attributes:
        key: the text before the colon; empty at the root.
        value: the text behind it; empty for `<none>`.
        lines: lines below that are no fields: further values, rows of a table.
        fields: fields below.
    """

    key: str
    value: str = ""
    lines: list[str] = field(default_factory=list)
    fields: list["Field"] = field(default_factory=list)

    def find(self, *path: str) -> "Field":
        """Returns the first field at a path; an empty one where there is none."""
        found = self
        for key in path:
            found = next((one for one in found.fields if one.key == key), Field(""))
        return found

    def get(self, *path: str) -> str:
        """Returns the value at a path; an empty text where there is none."""
        return self.find(*path).value

    def pairs(self, *path: str) -> dict[str, str]:
        """Returns the `NAME=VALUE` of a field and its further lines, or those in one line with commas."""
        found = self.find(*path)
        texts = [part for text in (found.value, *found.lines) for part in text.split(",")]
        split = (text.strip().partition("=") for text in texts)
        return {name: value for name, equals, value in split if equals}

    def rows(self, *path: str) -> Sequence[Sequence[str]]:
        """Returns the rows of a table, without its header and rule; the last column has the rest of the line."""
        lines = self.find(*path).lines
        width = len(_COLUMNS.split(lines[0])) if lines else 0
        rows = [_COLUMNS.split(line, max(0, width - 1)) for line in lines[1:]]
        return [row for row in rows if set("".join(row)) != {"-"}]


def parse_description(text: str) -> Field:
    """Returns the fields of a text of `kubectl describe`."""
    root = Field("")
    open_fields: list[tuple[int, Field]] = [(-1, root)]
    for line in text[:MOST_CHARACTERS].splitlines():
        bare = line.strip()
        if not bare:
            continue
        indent = len(line) - len(line.lstrip(" "))
        while indent <= open_fields[-1][0]:
            open_fields.pop()
        above = open_fields[-1][1]
        found = _FIELD.fullmatch(line)
        if above.key in _TABLES or found is None:
            above.lines.append(bare)
            continue
        value = found[3] or ""
        below = Field(found[2], "" if value in _NONE else value)
        above.fields.append(below)
        open_fields.append((indent, below))
    return root


def parse_table(text: str) -> Iterator[dict[str, str]]:
    """Yields the rows of a table of `kubectl get` by the names of its columns."""
    lines = text[:MOST_CHARACTERS].splitlines()
    if not lines or not lines[0].startswith(("NAME", "NAMESPACE")):
        return
    names = _COLUMNS.split(lines[0].strip())
    for line in lines[1:]:
        values = _COLUMNS.split(line.strip())
        if len(values) == len(names):
            yield dict(zip(names, values, strict=True))
