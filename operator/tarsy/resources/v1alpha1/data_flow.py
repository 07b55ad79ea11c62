"""Data that may leave through the tools of a server: `MCPServer.spec.dataFlow`.

Decision: the object declares it, never the server. A result is labelled where it is received, so the label holds for
the whole run, whichever server the text would leave through.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from tarsy.resources.schema import Model, ToolPattern, Unique
from tarsy.resources.v1alpha1.reach import ArgumentName


class OutboundArguments(Model):
    """Tool arguments whose values leave the cluster."""

    tools: Annotated[tuple[ToolPattern, ...], Field(min_length=1, max_length=256), Unique()] = Field(
        description="Tools. * matches any characters."
    )
    arguments: Annotated[tuple[ArgumentName, ...], Field(min_length=1, max_length=32), Unique()] = Field(
        description="Names of arguments. All values in them count."
    )
    holds: Literal["Address", "Text"] = Field(
        description="Address: the values are destinations, such as URLs, hosts, recipients or channels. Text: the "
        "values are sent."
    )


class DataFlow(Model):
    """Arguments that leave, and results that must not."""

    outbound_arguments: tuple[OutboundArguments, ...] = Field(
        default=(),
        max_length=64,
        description="Arguments whose values leave the cluster. A call is refused if they contain 16 consecutive "
        "letters or digits of a sensitive result.",
    )
    sensitive_tools: Annotated[tuple[ToolPattern, ...], Unique()] = Field(
        default=(),
        max_length=256,
        description="Tools whose results are sensitive: their text does not leave through outboundArguments of any "
        "server. * matches any characters.",
    )
