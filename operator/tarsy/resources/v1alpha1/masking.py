"""Masking as objects say it: what is taken out of the answers of a tool server, and out of alerts.

Decision: what holds when nothing is said stands here, so that a plan freezes it like what was said. Names and patterns
are checked where they are compiled (`tarsy.masking`): an object whose masking cannot be used is not Ready, with the
field.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from tarsy.resources.schema import Model, Unique

DEFAULT_GROUPS = ("kubernetes", "security", "secrets", "cloud")
DEFAULT_PATTERNS = ("github_token", "slack_token")

MaskingName = Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=r"^[a-z][a-z0-9_]*$")]


class CustomMaskingPattern(Model):
    """A pattern beside the built-in ones."""

    name: Annotated[str, StringConstraints(min_length=1, max_length=63, pattern=r"^[a-z]([-a-z0-9_]*[a-z0-9])?$")] = (
        Field(description="Name of the pattern, for messages.")
    )
    pattern: Annotated[str, StringConstraints(min_length=1, max_length=1024)] = Field(
        description="A regular expression as RE2 writes it; what it matches is replaced."
    )
    replacement: Annotated[str, StringConstraints(min_length=1, max_length=256)] = Field(
        description=r"What stands in its place; \1 and \g<name> are groups of the pattern, \\ is a backslash."
    )


class Masking(Model):
    """What is taken out of texts before they are stored or shown to a model."""

    enabled: bool = Field(default=True, description="Whether anything is taken out.")
    pattern_groups: Annotated[tuple[MaskingName, ...], Unique()] = Field(
        default=DEFAULT_GROUPS,
        max_length=16,
        description="Groups of built-in patterns: basic, secrets, security, kubernetes, cloud, all; "
        "kubernetes, security, secrets and cloud when not set.",
    )
    patterns: Annotated[tuple[MaskingName, ...], Unique()] = Field(
        default=DEFAULT_PATTERNS,
        max_length=32,
        description="Built-in patterns besides those of the groups; github_token and slack_token when not set.",
    )
    custom_patterns: Annotated[tuple[CustomMaskingPattern, ...], Unique("name")] = Field(
        default=(), max_length=32, description="Patterns of your own; they run after the built-in ones."
    )
