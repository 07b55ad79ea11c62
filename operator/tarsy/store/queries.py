"""Loads named SQL statements from the `.sql` files beside this module.

A file is a sequence of `-- name: NAME` blocks. A block whose name begins with an underscore is a fragment, and
`{_fragment}` in a later block stands for its text, so that the fence and the timeline are written once. Fragments of
`fragments.sql` can be put into the blocks of every file. Nothing else is put into a statement: values are parameters.

Decision: a statement names its parameters (`:attempt`), because a step of a run has up to thirty of them and a wrong
position is a wrong column. Postgres and asyncpg number them (`$2`), so names are translated once, when a file is read.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.resources import files
from typing import Any, Self

_BLOCK = re.compile(r"^-- name: (\w+)[ \t]*\n", re.MULTILINE)
_COMMENT = re.compile(r"^--.*\n?", re.MULTILINE)
_TOKEN = re.compile(
    r"""
    (?<!\w)[eE]'(?:[^'\\]|\\.|'')*'                     # a string with backslash escapes
    | '(?:[^']|'')*'                                    # a string
    | "(?:[^"]|"")*"                                    # a quoted identifier
    | \$(?P<tag>(?:[a-zA-Z_]\w*)?)\$.*?\$(?P=tag)\$     # a dollar-quoted string
    | --[^\n]*                                          # a comment
    | /\*.*?\*/                                         # a comment
    | ::                                                # a cast
    | :(?P<name>[a-zA-Z_]\w*)
    | (?P<number>\$(?:\d+|\?))
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL as Postgres takes it, and the names of its parameters in the order of their numbers."""

    sql: str
    parameters: tuple[str, ...]
    names: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", frozenset(self.parameters))

    @classmethod
    def of(cls, text: str) -> Self:
        """Translates the named parameters of a statement into numbers; a repeated name has one number.

        Raises:
            ValueError: the statement numbers a parameter itself.
        """
        numbers: dict[str, int] = {}

        def translated(token: re.Match[str]) -> str:
            if token["number"] is not None:
                raise ValueError(f"Parameter {token['number']} has no name, in: {text}")
            if (name := token["name"]) is None:
                return token[0]
            return f"${numbers.setdefault(name, len(numbers) + 1)}"

        return cls(_TOKEN.sub(translated, text), tuple(numbers))

    def __call__(self, /, **values: Any) -> tuple[Any, ...]:
        """Returns the arguments of a method of an asyncpg connection: the SQL, then the values in order.

        Raises:
            TypeError: a parameter has no value, or a value is of no parameter.
        """
        if values.keys() != self.names:
            missing = [name for name in self.parameters if name not in values]
            unknown = [name for name in values if name not in self.parameters]
            raise TypeError(f"Missing parameters: {missing}, unknown parameters: {unknown}, in: {self.sql}")
        return self.sql, *(values[name] for name in self.parameters)


@cache
def load(name: str) -> Mapping[str, Statement]:
    """Returns the statements of `sql/<name>.sql` by name."""
    return {key: Statement.of(text) for key, text in load_blocks(name).items()}


@cache
def load_blocks(name: str) -> Mapping[str, str]:
    """Returns the blocks of `sql/<name>.sql` by name, fragments put in, parameters still named."""
    return {key: text for key, text in _read(name, _shared()).items() if not key.startswith("_")}


@cache
def _shared() -> Mapping[str, str]:
    return _read("fragments", {})


def _read(name: str, before: Mapping[str, str]) -> Mapping[str, str]:
    """Returns the blocks of a file after those `before`, whose text is put into them."""
    parts = _BLOCK.split(files("tarsy.store").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8"))
    blocks = dict(before)
    for key, text in zip(parts[1::2], parts[2::2], strict=True):
        statement = _COMMENT.sub("", text).strip()
        for fragment, body in blocks.items():
            statement = statement.replace(f"{{{fragment}}}", body)
        blocks[key] = statement
    return blocks


@lru_cache(maxsize=256)
def assembled(text: str) -> Statement:
    """Translates a statement that was put together from blocks; the last few hundred are kept."""
    return Statement.of(text)
