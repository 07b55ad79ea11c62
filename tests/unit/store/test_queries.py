"""Tests that statements are complete, and take their values by name."""

import re
from importlib.resources import files

import pytest

from for_each import for_each
from tarsy.store.queries import Statement, load, load_blocks

SQL = files("tarsy.store").joinpath("sql")
FRAGMENTS = "fragments"
FILES = sorted(name for file in SQL.iterdir() if (name := file.name.removesuffix(".sql")) != FRAGMENTS)


@for_each("name", [name for name in FILES if name != "search"])
def test_statements_are_complete(name: str) -> None:
    statements = load(name)
    assert statements
    for statement in statements.values():
        assert re.match(r"WITH|SELECT|INSERT|UPDATE|DELETE|LOCK", statement.sql)
        assert not re.search(r"\{_|--", statement.sql)


@for_each("name", FILES)
def test_every_block_can_be_translated(name: str) -> None:
    for text in load_blocks(name).values():
        Statement.of(text)


def test_a_shared_fragment_is_in_statements_of_several_files() -> None:
    heads = [name for name in FILES if any("sha256(" in text for text in load_blocks(name).values())]
    assert heads == ["questions", "runs", "writer"]
    assert not any("sha256(" in SQL.joinpath(f"{name}.sql").read_text("utf-8") for name in heads)


def test_a_file_has_no_block_of_the_name_of_a_shared_fragment() -> None:
    names = {name: re.findall(r"(?m)^-- name: (\w+)", SQL.joinpath(f"{name}.sql").read_text("utf-8")) for name in FILES}
    shared = set(re.findall(r"(?m)^-- name: (\w+)", SQL.joinpath("fragments.sql").read_text("utf-8")))
    assert shared
    assert not {name: both for name, blocks in names.items() if (both := shared & set(blocks))}


def test_every_step_begins_with_the_fence() -> None:
    steps = {name: one.sql for name, one in load("writer").items() if "INSERT" in one.sql or "UPDATE" in one.sql}
    assert len(steps) == 19
    for statement in steps.values():
        assert re.match(r"WITH fence AS MATERIALIZED \(\s+SELECT investigation FROM lease .* FOR SHARE", statement)


def test_names_are_numbered_in_the_order_in_which_they_first_occur() -> None:
    statement = Statement.of("SELECT :second, :first, :second")
    assert statement(first=1, second=2) == ("SELECT $1, $2, $1", 2, 1)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT ':name', 'it''s :name'",
        "SELECT E'\\':name'",
        'SELECT ":name"',
        "SELECT $$:name$$, $q$ :name $1 $q$",
        "SELECT 1 -- :name\n",
        "SELECT 1 /* :name */",
        "SELECT now()::text, '{}'::jsonb, (ARRAY[1, 2])[1:2]",
    ],
)
def test_strings_identifiers_comments_and_casts_hold_no_parameter(text: str) -> None:
    assert Statement.of(text)() == (text,)


def test_a_parameter_may_be_cast() -> None:
    assert Statement.of("SELECT :ids::uuid[], x = ANY(:ids)")(ids=[]) == ("SELECT $1::uuid[], x = ANY($1)", [])


@pytest.mark.parametrize("text", ["SELECT $1", "SELECT :name, $2", "SELECT $?"])
def test_a_parameter_without_a_name_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="has no name"):
        Statement.of(text)


@pytest.mark.parametrize("values", [{"first": 1}, {"first": 1, "second": 2, "third": 3}, {"first": 1, "secnod": 2}])
def test_a_missing_or_unknown_name_is_refused(values: dict[str, int]) -> None:
    with pytest.raises(TypeError, match=r"second|third"):
        Statement.of("SELECT :first, :second")(**values)
