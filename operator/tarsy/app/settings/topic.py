"""Defines a topic of settings, and the command line option of a setting."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Strict
from pydantic.alias_generators import to_camel

FilePath = Annotated[Path, Strict(False)]
Names = Annotated[tuple[str, ...], Strict(False)]


@dataclass(frozen=True, slots=True)
class Flag:
    """The command line option of a setting.

    Args:
        name: the long option.
        short: a short option beside it.
        environment: the environment variable that is read where the option is not given.
        metavar: how `--help` shows the value.
        hidden: left out of `--help` and of the docs.
    """

    name: str
    short: str | None = None
    environment: str | None = None
    metavar: str | None = None
    hidden: bool = False


class SettingsTopic(BaseModel):
    """A topic of settings; its fields are in camel case in the file."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        alias_generator=to_camel,
        populate_by_name=True,
        hide_input_in_errors=True,
    )


def flag_of(field: Any) -> Flag | None:
    """Returns the command line option of a field of a topic; None: it has none."""
    return next((item for item in field.metadata if isinstance(item, Flag)), None)
