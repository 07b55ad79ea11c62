"""Writes the output of a command: with rich for people, as JSON or YAML for programs.

Decision: programs get the response of the API unchanged, as OpenAPI describes it; only characters that a terminal would
interpret are escaped.
"""

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar

import yaml
from pydantic import BaseModel
from rich.console import Console, RenderableType

from tarsy.cli.console import new_console
from tarsy.client.plain_text import TURNING

Output = Literal["text", "wide", "json", "yaml"]
_Item = TypeVar("_Item", bound=BaseModel)


def for_programs(output: Output) -> bool:
    """Returns whether the output is JSON or YAML."""
    return output in ("json", "yaml")


def write_output(value: BaseModel | dict[str, Any] | list[Any], output: Output, *, one_of_many: bool = False) -> None:
    """Writes a document.

    Args:
        value: the document.
        output: json or yaml.
        one_of_many: as one line of JSON, or with a document separator of YAML.
    """
    plain = value.model_dump(mode="json", by_alias=True) if isinstance(value, BaseModel) else value
    text = json.dumps(plain, indent=None if one_of_many else 2, ensure_ascii=False)
    if output == "yaml":
        sys.stdout.write("---\n" if one_of_many else "")
        sys.stdout.write(yaml.safe_dump(plain, sort_keys=False, allow_unicode=TURNING.search(text) is None))
    else:
        sys.stdout.write(TURNING.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")


def write_items(items: Sequence[BaseModel], output: Output) -> None:
    """Writes a list, as the API has it: an object with `items`.

    Args:
        items: of the list.
        output: json or yaml.
    """
    write_output({"items": [one.model_dump(mode="json", by_alias=True) for one in items]}, output)


def write_list(
    items: Sequence[_Item], output: Output, table: Callable[[Sequence[_Item]], RenderableType], empty: str
) -> None:
    """Writes a list: for programs as the API has it, for people as a table or as a sentence.

    Args:
        items: of the list.
        output: for people, or the format for programs.
        table: renders the items for people.
        empty: the sentence for a list without items.
    """
    if for_programs(output):
        write_items(items, output)
    elif not items:
        printer().print(empty, markup=False)
    else:
        printer().print(table(items))


def place_of_list(namespace: str | None) -> str:
    """Names the place that a list was read from; None: all namespaces."""
    return "any namespace" if namespace is None else f"namespace {namespace}"


def print_lines(lines: Iterable[str]) -> None:
    """Prints lines for people; a terminal breaks them where they end."""
    for line in lines:
        printer().print(line, soft_wrap=True)


def printer() -> Console:
    """Returns the console for people; text is never interpreted as markup."""
    return new_console(markup=False, emoji=False)


def beside() -> Console:
    """Returns the console for progress and remarks, on standard error; standard output contains only the answer."""
    return new_console(sys.stderr, markup=False, emoji=False)
