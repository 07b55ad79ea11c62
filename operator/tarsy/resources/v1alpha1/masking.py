"""Masking settings of tool servers, alerts and model output.

Decision: the defaults are part of the model, so that a plan freezes them like explicit values. Names and patterns are
checked where they are compiled (`tarsy.masking`). An object whose masking cannot be compiled is not Ready, and its
condition names the field.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from tarsy.resources.schema import Model, Unique

DEFAULT_GROUPS = ("kubernetes", "security", "secrets", "cloud")
DEFAULT_PATTERNS = ("github_token", "slack_token")

MaskingName = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=r"^[a-z][a-z0-9_]*$")]


class CustomMaskingPattern(Model):
    """A custom masking pattern."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=r"^[a-z]([-a-z0-9_]*[a-z0-9])?$")] = (
        Field(description="Name of the pattern, used in messages.")
    )
    pattern: Annotated[str, StringConstraints(min_length=1, max_length=1024)] = Field(
        description="RE2 regular expression. Matches are replaced."
    )
    replacement: Annotated[str, StringConstraints(min_length=1, max_length=256)] = Field(
        description="Replacement text. \\1 and \\g<name> refer to groups of the pattern; \\\\ is a backslash."
    )


class Masking(Model):
    """Removal of sensitive values from text before it is stored or shown to a model."""

    enabled: bool = Field(default=True, description="Whether masking is enabled.")
    pattern_groups: Annotated[tuple[MaskingName, ...], Unique()] = Field(
        default=DEFAULT_GROUPS,
        max_length=16,
        description="Groups of built-in patterns: basic, secrets, security, kubernetes, cloud, all. Defaults to "
        "kubernetes, security, secrets and cloud.",
    )
    patterns: Annotated[tuple[MaskingName, ...], Unique()] = Field(
        default=DEFAULT_PATTERNS,
        max_length=32,
        description="Built-in patterns in addition to the groups. Defaults to github_token and slack_token.",
    )
    custom_patterns: Annotated[tuple[CustomMaskingPattern, ...], Unique("name")] = Field(
        default=(), max_length=32, description="Custom patterns. They run after the built-in ones."
    )
