"""Generates the reference of the commands from the Typer apps that run them."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import typer
from hack.site.text import code, line, page, table
from typer.main import get_command

from tarsy.cli.main import app
from tarsy.cli.plugin import new_app

_NAMES: Final = {int: "whole number", float: "number", Path: "path"}


def pages() -> dict[str, str]:
    """Returns the pages, by path below docs/."""
    return {
        "reference/tarsy.md": _page(
            "tarsy",
            app,
            "The program in the image. It also has [the commands of `kubectl tarsy`](kubectl-tarsy.md).",
        ),
        "reference/kubectl-tarsy.md": _page(
            "kubectl tarsy",
            new_app(),
            "The kubectl plugin: put `kubectl-tarsy` on the path, and kubectl finds it by its name. It uses your "
            "kubeconfig and your rights.",
        ),
    }


def _page(name: str, application: typer.Typer, text: str) -> str:
    command: Any = get_command(application)
    parts = [f"# {name}", text]
    for path, one in _commands(name, command):
        parts += [f"## {path}", one.help or "", f"```\n{path} {_usage(one)}\n```", _arguments(one), _options(one)]
    return page(parts)


def _commands(path: str, group: Any) -> Iterator[tuple[str, Any]]:
    for name, one in group.commands.items():
        if getattr(one, "hidden", False):
            continue
        if hasattr(one, "commands"):
            yield from _commands(f"{path} {name}", one)
        else:
            yield f"{path} {name}", one


def _usage(command: Any) -> str:
    words = ["[OPTIONS]"]
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            word = _argument(parameter) + ("..." if parameter.nargs == -1 else "")
            words.append(word if parameter.required else f"[{word}]")
    return " ".join(words)


def _arguments(command: Any) -> str:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    return table(("argument", "what it is"), ((code(_argument(one)), line(one.help or "")) for one in arguments))


def _argument(one: Any) -> str:
    return str(one.metavar or one.name.upper())


def _options(command: Any) -> str:
    return table(("option", "value", "default", "environment", "what it is"), _rows(command))


def _rows(command: Any) -> Iterator[tuple[str, ...]]:
    for one in command.params:
        if one.param_type_name != "option" or one.hidden or "--help" in one.opts:
            continue
        variables = [one.envvar] if isinstance(one.envvar, str) else list(one.envvar or ())
        yield (
            ", ".join(map(code, (*one.opts, *one.secondary_opts))),
            _kind(one),
            "required" if one.required else _default(one.default),
            ", ".join(map(code, variables)),
            line(one.help or ""),
        )


def _kind(option: Any) -> str:
    if option.is_flag:
        return "flag"
    kind = option.type_descriptor.annotation
    kind = get_args(kind)[0] if get_origin(kind) is list else kind
    if get_origin(kind) is Literal:
        return ", ".join(map(code, get_args(kind)))
    name = option.metavar or _NAMES.get(kind, "text")
    if option.max is not None:
        name += f", {option.min} to {option.max}"
    elif option.min is not None:
        name += f", at least {option.min}"
    return f"{name}; may be repeated" if option.multiple else name


def _default(value: Any) -> str:
    if value is None or value == "" or value == []:
        return ""
    return code(value)
