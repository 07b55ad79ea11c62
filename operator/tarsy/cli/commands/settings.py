"""Builds the options of a process from its settings: one option per setting, one `--config` for the file.

Decision: Typer reads the signature of a function, so the signature is made from the topics. An option that is given on
the command line or in the environment replaces the field of the file, which replaces the default.
"""

import inspect
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, TypeVar

import annotated_types
import typer
from pydantic import BaseModel, ValidationError
from pydantic.alias_generators import to_camel
from pydantic.fields import FieldInfo

from tarsy.app.settings.processes import topics_of
from tarsy.app.settings.topic import Flag, SettingsTopic, flag_of
from tarsy.cli.running import fail

P = TypeVar("P", bound=BaseModel)
_Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="File with settings (kind: OperatorConfiguration). Options and environment variables take precedence.",
    ),
]
_Key = tuple[str, str]


def settings_command(process: type[P]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Makes a command of a function that takes the settings of a process, and further arguments.

    Args:
        process: the topics; each of their settings becomes an option.
    """
    options = {_parameter(flag): (key, field) for key, field, flag in _flags(process)}

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        def command(invocation: typer.Context, config: Path | None, **values: Any) -> None:
            given = {
                key: tuple(values[name]) if isinstance(values[name], list) else values[name]
                for name, (key, _) in options.items()
                if _is_given(invocation, name)
            }
            rest = {name: value for name, value in values.items() if name not in options}
            function(load_settings(process, config, given), **rest)

        own = list(inspect.signature(function).parameters.values())[1:]
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters = [
            inspect.Parameter("invocation", kind, annotation=typer.Context),
            *(one.replace(kind=kind) for one in own),
            inspect.Parameter("config", kind, default=None, annotation=_Config),
            *(_option(name, _panel(process, key[0]), field) for name, (key, field) in options.items()),
        ]
        command.__name__, command.__doc__ = function.__name__, function.__doc__
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {one.name: one.annotation for one in parameters}
        return command

    return decorate


def load_settings(process: type[P], config: Path | None, given: Mapping[_Key, Any]) -> P:
    """Returns the settings of a process; a wrong file ends the command with all its errors.

    Args:
        process: the topics of the process.
        config: the configuration file; None: there is none.
        given: the settings of the command line and the environment, by topic and field (names in Python).

    Raises:
        BadParameter: an option is wrong, or a required one is missing.
    """
    from tarsy.app.settings.file import ConfigurationFileError, read_configuration

    try:
        values = read_configuration(config, process) if config is not None else {}
    except ConfigurationFileError as error:
        fail(error)
    topics = topics_of(process)
    for (topic, field), value in given.items():
        values.setdefault(to_camel(topic), {})[topics[topic].model_fields[field].alias or field] = value
    for topic in topics:
        values.setdefault(to_camel(topic), {})
    try:
        return process.model_validate(values)
    except ValidationError as error:
        raise _wrong_option(error, topics) from None


def _wrong_option(error: ValidationError, topics: Mapping[str, type[SettingsTopic]]) -> typer.BadParameter:
    """The file was checked before, so what is wrong is an option, or missing everywhere."""
    from tarsy.app.settings.file import describe

    one = error.errors(include_url=False)[0]
    by_file = {to_camel(name): topic for name, topic in topics.items()}
    topic, alias = by_file[str(one["loc"][0])], str(one["loc"][1])
    flag = next(flag_of(field) for field in topic.model_fields.values() if field.alias == alias)
    assert flag is not None
    if one["type"] == "missing":
        variable = f" (or {flag.environment} in the environment)" if flag.environment else ""
        where = f"set it{variable}, or spec.{one['loc'][0]}.{alias} in the file of --config"
        return typer.BadParameter(f"is required; {where}", param_hint=flag.name)
    return typer.BadParameter(describe(one, topic), param_hint=flag.name)


def _flags(process: type[BaseModel]) -> typing.Iterator[tuple[_Key, FieldInfo, Flag]]:
    for name, topic in topics_of(process).items():
        for field_name, field in topic.model_fields.items():
            flag = flag_of(field)
            if flag is not None:
                yield (name, field_name), field, flag


def _parameter(flag: Flag) -> str:
    return flag.name.removeprefix("--").replace("-", "_")


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name in ("COMMANDLINE", "ENVIRONMENT")


def _panel(process: type[BaseModel], topic: str) -> str:
    """Returns the heading of a topic's options in --help: its name in the file, and its description."""
    return f"{to_camel(topic)}: {inspect.getdoc(topics_of(process)[topic])}".rstrip(".")


def _option(name: str, panel: str, field: FieldInfo) -> inspect.Parameter:
    """Returns a setting as Typer declares an option."""
    flag = flag_of(field)
    assert flag is not None
    kind, repeated = _type_of(field)
    help_text = (field.description or "") + (" May be repeated." if repeated else "")
    bounds: dict[str, Any] = {
        "min": next((item.ge for item in field.metadata if isinstance(item, annotated_types.Ge)), None),
        "max": next((item.le for item in field.metadata if isinstance(item, annotated_types.Le)), None),
    }
    names = [] if kind is bool else [flag.name, *([flag.short] if flag.short else [])]
    option: Any = typer.Option(
        *names,
        help=help_text,
        envvar=flag.environment,
        metavar=flag.metavar,
        hidden=flag.hidden,
        case_sensitive=False,
        rich_help_panel=panel,
        **(bounds if kind in (int, float) else {}),
    )
    default = None if repeated or field.is_required() else field.default
    if isinstance(default, float) and default.is_integer():
        default = int(default)
    annotation: Any = kind
    if repeated:
        annotation = list[str] | None
    elif default is None:
        annotation = kind | None
    parameter = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, parameter, default=default, annotation=Annotated[annotation, option])


def _type_of(field: FieldInfo) -> tuple[Any, bool]:
    """Returns the plain type of a setting, and whether it is a list (of strings)."""
    kind: Any = field.annotation
    if typing.get_origin(kind) is not typing.Literal and NoneType in typing.get_args(kind):
        kind = next(one for one in typing.get_args(kind) if one is not NoneType)
    while typing.get_origin(kind) is Annotated:
        kind = typing.get_args(kind)[0]
    return kind, typing.get_origin(kind) is tuple
