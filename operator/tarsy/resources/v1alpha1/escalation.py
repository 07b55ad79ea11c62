"""Escalation of a stage of a Chain from one provider to another."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from tarsy.resources.schema import Model, ObjectName


class Escalation(Model):
    """When a stage runs once more with another provider."""

    when: Annotated[str, StringConstraints(min_length=1, max_length=1024)] = Field(
        description="Condition of the second attempt: a boolean CEL expression over confidence, claims, outcome and "
        "flaws of the finding. If it has no value, the stage does not run again.",
    )
    to: ObjectName = Field(
        description="Name of the LLMProvider that all agents of the second attempt use, in the namespace of the chain. "
        "The second attempt reuses the tool results of the first, so no call is made twice."
    )
