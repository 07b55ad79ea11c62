"""What a command writes to standard output: for people by rich, for programs as JSON or YAML.

Decision: for programs the answer of the API is written as it is, so what a script reads is what OpenAPI describes; only
characters that a terminal would obey are written as JSON and YAML escape them.
"""

import json
import sys
from typing import Any, Literal

import yaml
from pydantic import BaseModel
from rich.console import Console

from tarsy.cli.console import new_console
from tarsy.client.plain_text import TURNING

Output = Literal["text", "wide", "json", "yaml"]


def for_programs(output: Output) -> bool:
    """Whether the output is JSON or YAML."""
    return output in ("json", "yaml")


def write_output(value: BaseModel | dict[str, Any] | list[Any], output: Output, *, one_of_many: bool = False) -> None:
    """Writes one document of JSON or YAML; `one_of_many` on a line of its own, or with a mark before it."""
    plain = value.model_dump(mode="json", by_alias=True) if isinstance(value, BaseModel) else value
    text = json.dumps(plain, indent=None if one_of_many else 2, ensure_ascii=False)
    if output == "yaml":
        sys.stdout.write("---\n" if one_of_many else "")
        sys.stdout.write(yaml.safe_dump(plain, sort_keys=False, allow_unicode=TURNING.search(text) is None))
    else:
        sys.stdout.write(TURNING.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n")


def printer() -> Console:
    """Where a command prints for people: nothing in a text is read as markup."""
    return new_console(markup=False, emoji=False)


def beside() -> Console:
    """Where progress and remarks go, so that standard output holds the answer alone."""
    return new_console(sys.stderr, markup=False, emoji=False)
