"""Approved tools: `MCPServer.spec.pin`, who accepted which definitions, and what the server shows.

Decision: people accept a digest of what they were shown, in an entry of their own. A username in it proves nothing by
itself: the policy `tarsy-accept` (manifests/components/policies) lets people write their own name only, and where it
is not in force no acceptance counts.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.schema import Lenient, Model, Time, ToolName, Unique
from tarsy.resources.v1alpha1.common import MAX_GROUP, MAX_GROUPS

MAX_PINNED = 48
"""Tools of a server that can be pinned. Others are withheld."""

MAX_ACCEPTED = 256
MAX_ACCEPTANCES = 16

ToolDigest = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$", max_length=64)]
PinMode = Literal["TrustOnFirstUse", "Approved"]


class AcceptedTool(Model):
    """An accepted tool definition."""

    name: ToolName = Field(description="Name of the tool.")
    digest: ToolDigest = Field(description="SHA-256 of the definition as shown to you, in hex.")


class ToolAcceptance(Model):
    """The definitions that one person accepts."""

    username: Annotated[str, StringConstraints(min_length=1, max_length=1024)] = Field(description="Your own username.")
    groups: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=MAX_GROUP)], ...],
        Field(max_length=MAX_GROUPS),
    ] = Field(
        default=(),
        description="Your groups through which you have the verb approve, if any. The operator checks them again.",
    )
    tools: tuple[AcceptedTool, ...] = Field(
        max_length=MAX_ACCEPTED,
        description="Definitions that you accept. A tool may have several, such as those of two versions.",
    )
    reason: Annotated[str, StringConstraints(max_length=1024)] | None = Field(
        default=None, description="Reason for the acceptance."
    )
    at: Time | None = Field(default=None, description="Time of the acceptance, as you state it.")


ToolAcceptances = Annotated[tuple[ToolAcceptance, ...], Field(max_length=MAX_ACCEPTANCES), Unique("username")]


class PinnedTool(Lenient):
    """A tool of the server, and whether agents may get it."""

    name: ToolName = Field(description="Name of the tool.")
    digest: ToolDigest | None = Field(
        default=None,
        description="SHA-256 of its definition (name, description, parameters, annotations) when the server last "
        "listed it, in hex.",
    )
    first: ToolDigest | None = Field(
        default=None, description="Digest when the server was first seen, with pin TrustOnFirstUse."
    )
    state: Literal["Trusted", "Changed", "New", "Gone"] = Field(
        description="Trusted: as first seen, or accepted. Changed, New: withheld until it is accepted. Gone: no "
        "longer listed by the server."
    )
