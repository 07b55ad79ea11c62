"""How far a tool server reaches for runs of other namespaces: `MCPServer.spec.reach`.

Decision: a server acts with the rights of its own namespace, so calls for a run of another one are held to the run's
namespace unless the owner of the server grants more. Nothing has to be set for that.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.schema import Model, ToolPattern, Unique
from tarsy.resources.v1alpha1.common import AllowedNamespaces

ARGUMENT = r"^[A-Za-z_][A-Za-z0-9_.-]*$"
ArgumentName = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=ARGUMENT)]


class Reach(Model):
    """How calls for a run of another namespace are held to the namespace of the run."""

    bound_by: Literal["Argument", "Server"] = Field(
        default="Argument",
        description="Argument: TARSy fills in the arguments that name a namespace and refuses other values; Server: "
        "the server keeps to the namespace that each request names in its _meta (tarsy.dev/namespaces), and declares "
        "so on each tool.",
    )
    namespace_arguments: Annotated[tuple[ArgumentName, ...], Field(min_length=1, max_length=16), Unique()] = Field(
        default=("namespace",),
        description="Arguments of its tools that name a namespace. A tool that has none of them, or that has another "
        "one about namespaces, is not offered.",
    )
    cluster_tools: Annotated[tuple[ToolPattern, ...], Unique()] = Field(
        default=(),
        max_length=256,
        description="Tools that are offered all the same, because they read nothing of a namespace; * stands for any "
        "characters.",
    )
    unbound_namespaces: AllowedNamespaces | None = Field(
        default=None,
        description="Grants runs of other namespaces all that the server may reach itself; none when not set.",
    )
