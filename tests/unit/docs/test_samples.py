"""Checks the samples in the pages: objects are valid, JSON parses, and commands know their options and their files."""

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml
from hack.site.pages import written
from typer.main import get_command

from tarsy.cli.main import app
from tarsy.cli.plugin import new_app
from tarsy.resources.meta import API_VERSION
from tarsy.resources.parse import InvalidResource, parse_as
from tarsy.resources.v1alpha1 import KINDS

CHECKOUT = Path(__file__).parents[3]
_BLOCK = re.compile(r"^( *)```(\w*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
_PROGRAMS = {"tarsy": get_command(app), "kubectl tarsy": get_command(new_app())}
_COMMAND = re.compile(r"^(?:\$ )?(kubectl tarsy|tarsy) (.*)$")
_TARGET = re.compile(r"^(?:\$ )?make ([a-z][a-z-]*)", re.MULTILINE)


def blocks(*languages: str) -> Iterator[tuple[str, str]]:
    """The blocks of code of these languages, without their indentation, each with its page."""
    for page, text in sorted(written().items()):
        for found in _BLOCK.finditer(text):
            if found[2] in languages:
                yield page, re.sub(f"^{found[1]}", "", found[3], flags=re.MULTILINE)


def objects() -> Iterator[tuple[str, dict[str, Any]]]:
    """The whole objects of our kinds, each with its page."""
    for page, text in blocks("yaml"):
        try:
            documents = list(yaml.safe_load_all(text))
        except yaml.YAMLError as error:
            pytest.fail(f"{page}: {error}")
        for document in documents:
            if isinstance(document, dict) and document.get("apiVersion") == API_VERSION:
                yield page, document


def command_lines() -> Iterator[tuple[str, str, list[str]]]:
    """The commands of our programs, each with its page: the program, and its words."""
    for page, text in blocks("", "sh", "console", "text"):
        for line in text.replace("\\\n", " ").splitlines():
            if (found := _COMMAND.match(line)) and not re.search(r"\s{3,}[a-z]|\.\.\.", found[2].split(" #")[0]):
                words = shlex.split(re.split(r" [|#&>]| && ", found[2])[0])
                yield page, found[1], words


def test_every_object_in_the_pages_is_valid() -> None:
    found = [(page, one) for page, one in objects() if "spec" in one and "name" in one.get("metadata", {})]
    assert len(found) > 20
    for page, one in found:
        whole = {**one, "metadata": {"namespace": "docs", "uid": "u", "resourceVersion": "1", **one["metadata"]}}
        try:
            parse_as(KINDS[one["kind"]], whole)
        except InvalidResource as error:
            wrong = [one for one in error.errors if one.message != "is required"]  # some samples show a part
            assert not wrong, f"{page}: {error}"


def test_every_json_in_the_pages_can_be_read() -> None:
    for page, text in blocks("json"):
        assert json.loads(text), page


def test_every_command_in_the_pages_has_the_options_that_it_shows() -> None:
    seen = 0
    for page, program, words in command_lines():
        command: Any = _PROGRAMS[program]
        rest = words
        while isinstance(command, click.Group) and rest and rest[0] in command.commands:
            command, rest = command.commands[rest[0]], rest[1:]
        assert not isinstance(command, click.Group) or rest[:1] == ["--help"], f"{page}: {program} {' '.join(words)}"
        try:
            command.make_parser(click.Context(command)).parse_args(list(rest))
        except click.UsageError as error:
            pytest.fail(f"{page}: {program} {' '.join(words)}: {error.format_message()}")
        seen += 1
    assert seen > 50


def test_every_target_of_make_in_the_pages_exists() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    used = {(page, name) for page, text in blocks("", "sh", "console") for name in _TARGET.findall(text)}
    assert used
    assert sorted((page, name) for page, name in used if name not in targets) == []
