"""Checks the samples in the pages: objects are valid, JSON parses, and commands know their options and their files."""

import asyncio
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.main import get_command

from tarsy.cli.main import app
from tarsy.cli.plugin import new_app
from tarsy.resources.meta import API_VERSION
from tarsy.resources.parse import InvalidResource, parse_as
from tarsy.resources.v1alpha1 import KINDS
from unit.docs.printed import CHECKOUT, blocks

_PROGRAMS = {"tarsy": get_command(app), "kubectl tarsy": get_command(new_app())}
_COMMAND = re.compile(r"^(?:\$ )?(kubectl tarsy|tarsy) (\S.*)$")
_TARGET = re.compile(r"^(?:\$ )?make ([a-z][a-z-]*)", re.MULTILINE)


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


class _Started(Exception):
    """Raised where a command begins its work: it has taken its arguments."""


class _NoRunner:
    def __init__(self, **_: Any) -> None:
        raise _Started


def _filled_in(words: list[str]) -> list[str]:
    """Returns the words with a name for each placeholder and variable, without brackets around what may be left out."""
    plain = [word.strip("[]") for word in words if word not in ("|", "...")]
    return [re.sub(r"\$\{?\w[^ ]*|\b[A-Z]{2,}\b", "name", word) for word in plain]


def _why_not(program: str, words: list[str]) -> str | None:
    """Runs a command up to its work; returns why its arguments are refused."""
    try:
        _PROGRAMS[program].main(_filled_in(words), prog_name=program, standalone_mode=False)
    except _Started:
        return None
    except Exception as error:
        refusal = getattr(error, "format_message", None)  # typer has a click of its own
        return str(refusal()) if refusal is not None else None
    return None


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_every_command_in_the_pages_is_taken_as_it_is_printed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Options that need each other are refused when a command begins, so each is run up to there."""
    lines = list(command_lines())
    assert len(lines) > 50
    monkeypatch.setattr(asyncio, "Runner", _NoRunner)
    monkeypatch.chdir(tmp_path)
    refused = []
    for page, program, words in lines:
        for word in words:
            if re.fullmatch(r"\w[\w./-]*\.(yaml|json|gz|xml)", word):
                (tmp_path / word).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / word).touch()
        if why := _why_not(program, words):
            refused.append(f"{page}: {program} {shlex.join(words)}: {why}")
    capsys.readouterr()
    assert refused == []


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("why NAME -n shop", None),
        ("retry $RUN [--chain OTHER]", None),
        ("usage --by model", "needs --server"),
        ("usage --by model --server https://tarsy.example.org", None),
        ("why NAME --colour", "No such option"),
        ("because NAME", "No such command"),
    ],
)
def test_a_command_is_refused_for_what_it_does_not_take(
    monkeypatch: pytest.MonkeyPatch, command: str, why: str | None
) -> None:
    monkeypatch.setattr(asyncio, "Runner", _NoRunner)
    refusal = _why_not("kubectl tarsy", command.split())
    assert refusal is None if why is None else why in (refusal or "")


def test_every_target_of_make_in_the_pages_exists() -> None:
    targets = set(re.findall(r"^([a-z][a-z-]*):", (CHECKOUT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    used = {(page, name) for page, text in blocks("", "sh", "console") for name in _TARGET.findall(text)}
    assert used
    assert sorted((page, name) for page, name in used if name not in targets) == []
