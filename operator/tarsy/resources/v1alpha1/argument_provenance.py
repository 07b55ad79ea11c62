"""Provenance of the arguments of a call that waits for people: `ToolApproval.spec.provenance`."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.schema import Model, Unique, clipped

MAX_PROVENANCE, MAX_POINTER, MAX_SOURCE_CALLS = 32, 256, 4
_Origin = Literal["Person", "Plan", "Alert", "K", "A", "X", "Nowhere"]
_SourceCall = Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_-]+$")]


class ArgumentProvenance(Model):
    """Origins of one value of the arguments."""

    argument: Annotated[str, clipped(MAX_POINTER), StringConstraints(max_length=MAX_POINTER)] = Field(
        description="JSON pointer of the value."
    )
    origins: Annotated[tuple[_Origin, ...], Field(min_length=1, max_length=7), Unique()] = Field(
        description="Texts that contain the value. Person: the question. Plan: instructions of Agent and MCPServers. "
        "Alert: alert and runbook. K, A, X: results of tools that only the control plane, also workloads, or anybody "
        "outside can write. Nowhere: none of these; the model made it up."
    )
    calls: tuple[_SourceCall, ...] = Field(
        default=(), max_length=MAX_SOURCE_CALLS, description="Ids of tool calls whose results contain it."
    )
    destination: bool = Field(
        default=False, description="Whether the call sends something there, or fetches or runs something from there."
    )
