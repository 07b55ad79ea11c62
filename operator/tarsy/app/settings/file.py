"""Reads the configuration file of a process (`kind: OperatorConfiguration`) and reports every error in it at once.

A file holds the topics of all processes, so operator and workers may share one; a process uses its own topics and
checks all of them.
"""

from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from tarsy.app.errors import StartError
from tarsy.app.settings.processes import TOPICS, topics_of
from tarsy.app.settings.topic import SettingsTopic, flag_of
from tarsy.app.strict_yaml import StrictLoader

CONFIGURATION_VERSION: Final = "tarsy.dev/v1alpha1"
CONFIGURATION_KIND: Final = "OperatorConfiguration"

_TYPES: Final = {
    "bool_type": "true or false",
    "float_type": "a number",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "path_type": "a path",
    "string_type": "a string",
    "tuple_type": "a list",
}
_BOUNDS: Final = {"greater_than_equal": ("at least", "ge"), "less_than_equal": ("at most", "le")}


class ConfigurationFileError(StartError):
    """The configuration file has errors; the message lists all of them, each with its field and remedy."""


def read_configuration(path: Path, process: type[BaseModel]) -> dict[str, dict[str, Any]]:
    """Reads a configuration file.

    Args:
        path: the file.
        process: the settings of the process that uses it.

    Returns:
        The values of the file by topic and field, as the file names both; only topics of the process.

    Raises:
        ConfigurationFileError: the file cannot be read, is not YAML or has wrong fields.
    """
    document = _document(path)
    problems = [*_header_problems(document)]
    spec = document.get("spec") or {}
    if isinstance(spec, Mapping):
        own = {to_camel(name): topic for name, topic in topics_of(process).items()}
        problems += _spec_problems(spec, {**TOPICS, **own})
    else:
        own = {}
        problems.append("spec: is not a mapping of topics; write spec: {execution: {...}}")
    if problems:
        raise ConfigurationFileError(_report(path, problems))
    return {name: dict(spec[name] or {}) for name in own if name in spec}


def describe(error: ErrorDetails, topic: type[SettingsTopic] | None) -> str:
    """Returns what is wrong with a value and how to correct it.

    Args:
        error: one error of a validation.
        topic: the topic of the field, which knows its other fields; None: unknown.
    """
    kind, value = error["type"], error["input"]
    if kind == "extra_forbidden" and topic is not None:
        return _unknown("field", str(error["loc"][-1]), [field.alias or "" for field in _visible(topic)])
    if kind == "missing":
        return "is required; set it"
    if kind in _TYPES:
        return f"is {_shown(value)}; it must be {_TYPES[kind]}"
    if kind in _BOUNDS:
        words, bound = _BOUNDS[kind]
        return f"is {value}; it must be {words} {error['ctx'][bound]:g}"
    if kind == "literal_error":
        return f"is {_shown(value)}; it must be one of {error['ctx']['expected']}"
    return error["msg"].removeprefix("Value error, ")


def _document(path: Path) -> Mapping[str, Any]:
    try:
        documents = [one for one in yaml.load_all(path.read_text(encoding="utf-8"), StrictLoader) if one is not None]
    except OSError as error:
        raise ConfigurationFileError(
            f"configuration file {path}: cannot be read: {error.strerror}; name a readable file with --config"
        ) from None
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = f"line {mark.line + 1}: " if mark is not None else ""
        why = getattr(error, "problem", None) or "it cannot be parsed"
        raise ConfigurationFileError(f"configuration file {path}: {line}is not YAML: {why}; correct it") from None
    if len(documents) != 1 or not isinstance(documents[0], Mapping):
        found = "is empty" if not documents else "holds several documents" if len(documents) > 1 else "is not a mapping"
        raise ConfigurationFileError(
            f"configuration file {path}: {found}; write one object with apiVersion: {CONFIGURATION_VERSION}, "
            f"kind: {CONFIGURATION_KIND} and spec"
        )
    return documents[0]


def _header_problems(document: Mapping[str, Any]) -> Iterator[str]:
    for field, wanted in (("apiVersion", CONFIGURATION_VERSION), ("kind", CONFIGURATION_KIND)):
        if field not in document:
            yield f"{field}: is required; set it to {wanted}"
        elif document[field] != wanted:
            yield f"{field}: is {_shown(document[field])}; this version of tarsy reads {wanted}"
    for field in document:
        if field not in ("apiVersion", "kind", "spec"):
            yield f"{field}: {_unknown('field', str(field), ['apiVersion', 'kind', 'spec'])}"


def _spec_problems(spec: Mapping[str, Any], topics: Mapping[str, type[SettingsTopic]]) -> Iterator[str]:
    variables = {"passwords_go_to": _password_variables()}
    for name, values in spec.items():
        topic = topics.get(name)
        if topic is None:
            yield f"spec.{name}: {_unknown('topic', str(name), topics)}"
            continue
        if not isinstance(values, Mapping) and values is not None:
            yield f"spec.{name}: is {_shown(values)}; it must be a mapping of fields"
            continue
        try:
            topic.model_validate(dict(values or {}), context=variables, by_name=False)
        except ValidationError as error:
            for one in error.errors(include_url=False):
                if one["type"] != "missing":  # it may be given by a flag or the environment
                    yield f"spec.{name}.{_path(one['loc'])}: {describe(one, topic)}"


def _password_variables() -> Mapping[str, str]:
    fields = TOPICS["database"].model_fields
    flags = {name: flag_of(field) for name, field in fields.items()}
    return {name: flag.environment or flag.name for name, flag in flags.items() if flag is not None}


def _visible(topic: type[SettingsTopic]) -> list[Any]:
    return [field for field in topic.model_fields.values() if (flag := flag_of(field)) is None or not flag.hidden]


def _unknown(what: str, name: str, known: Iterable[str]) -> str:
    names = sorted(known)
    close = get_close_matches(name, names, n=1)
    return f"unknown {what}; " + (f"did you mean {close[0]}?" if close else f"use one of {', '.join(names)}")


def _path(location: tuple[int | str, ...]) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return "".join(parts).removeprefix(".")


def _shown(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) or value is None else repr(value)


def _report(path: Path, problems: list[str]) -> str:
    count = f"{len(problems)} error" + ("s" if len(problems) > 1 else "")
    return f"configuration file {path} has {count}:\n" + "\n".join(f"  {problem}" for problem in problems)
