"""`seeds.md` is true: every test it names exists, no row is empty, and what shall cite its source does.

Names are collected from the syntax trees of the test files, so nothing is imported and nothing runs. A parameter in
brackets is looked for in the function's file, as the beginning of an id.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
NAMED = re.compile(r"`([\w/]+\.py)::(\w+)(?:\[([^`]+)\])?`")
WORDS = re.compile(r"(?:^|; )(changed|later): \S")
CITED = " (cited)"


@dataclass(frozen=True)
class Row:
    """A row of a table, with the headings it stands under."""

    line: int
    document: str
    section: str
    what: str
    held_by: str

    @property
    def tests(self) -> list[tuple[str, str, str]]:
        """File, function, parameter."""
        return NAMED.findall(self.held_by)

    def __str__(self) -> str:
        return f"seeds.md:{self.line}, {self.document}, {self.section}: {self.what!r}"


def _rows() -> Iterator[Row]:
    document = section = ""
    header = True
    for number, line in enumerate((TESTS / "seeds.md").read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("## "):
            document = line.removeprefix("## ")
        elif line.startswith("### "):
            section = line.removeprefix("### ")
        elif line.startswith("|---"):
            header = False
        elif not line.startswith("|"):
            header = True
        elif not header:
            what, held_by = re.fullmatch(r"\|(.*?)\|(.*)\|", line).groups()  # type: ignore[union-attr]
            yield Row(number, document, section, what.strip(), held_by.strip())


ROWS = list(_rows())


@cache
def _functions(name: str) -> dict[str, str]:
    """The test functions of a file with their docstrings."""
    path = TESTS / name
    if not path.is_file():
        return {}
    tree = ast.parse(path.read_text(encoding="utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name: ast.get_docstring(node) or "" for node in tree.body if isinstance(node, kinds)}


@cache
def _module_docstring(name: str) -> str:
    return ast.get_docstring(ast.parse((TESTS / name).read_text(encoding="utf-8"))) or ""


def _cites(document: str, name: str, function: str) -> bool:
    """Whether a test names the document that its row is of; outside of `unit/seeds` the head of its file may do so."""
    head = "" if name.startswith("unit/seeds/") else _module_docstring(name)
    said = f"{head} {_functions(name)[function]}".lower()
    kind, _, number = document.partition(":")[0].lower().partition(" ")
    return kind in said if kind == "reference" else re.search(rf"\bseeds?\b[^.]*\b{number}\b", said) is not None


def test_every_document_has_its_tables() -> None:
    documents = dict.fromkeys(row.document.partition(":")[0] for row in ROWS)
    assert list(documents) == ["Seed 000", "Seed 001", "Seed 002", "Seed 003", "Seed 004", "Reference"]


def test_no_row_is_empty_and_none_is_there_twice() -> None:
    nothing = [str(row) for row in ROWS if not row.what or not (row.tests or WORDS.search(row.held_by))]
    assert nothing == []
    places = [(row.document, row.section, row.what) for row in ROWS]
    assert [place for place in set(places) if places.count(place) > 1] == []


def test_every_test_that_is_named_exists() -> None:
    missing = [
        f"{row} names {name}::{function}{f'[{parameter}]' if parameter else ''}"
        for row in ROWS
        for name, function, parameter in row.tests
        if function not in _functions(name)
        or (parameter and f'"{parameter}' not in (TESTS / name).read_text(encoding="utf-8"))
    ]
    assert missing == []


def test_what_looks_like_a_test_is_one() -> None:
    """A slip in the form of a name would hide it from the checks above."""
    odd = [str(row) for row in ROWS if row.held_by.count("::") != len(row.tests)]
    assert odd == []


def test_a_change_is_not_put_off_and_a_later_one_names_its_issue() -> None:
    vague = [str(row) for row in ROWS if re.search(r"later: (?!issue \d)", row.held_by)]
    assert vague == []


@pytest.mark.parametrize("document", ["Seed 000", "Seed 001", "Seed 002", "Seed 003", "Seed 004", "Reference"])
def test_a_row_that_shall_be_cited_is(document: str) -> None:
    rows = [row for row in ROWS if row.document.startswith(document) and row.section.endswith(CITED)]
    assert rows, "a document without such a section"
    silent = [
        str(row)
        for row in rows
        if row.tests and not any(_cites(row.document, name, function) for name, function, _ in row.tests)
    ]
    assert silent == []


def test_every_test_of_the_seeds_is_named() -> None:
    named = {(name, function) for row in ROWS for name, function, _ in row.tests}
    own = [
        (str(path.relative_to(TESTS)), function)
        for path in sorted((TESTS / "unit" / "seeds").glob("test_*.py"))
        for function in _functions(str(path.relative_to(TESTS)))
        if function.startswith("test_")
    ]
    assert own
    assert [test for test in own if test not in named] == []
