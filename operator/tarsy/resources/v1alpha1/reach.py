"""Limits of tool calls in runs of other namespaces: `MCPServer.spec.reach`.

Decision: a server acts with the rights of its own namespace. Calls for a run of another namespace are therefore bound
to that run's namespace, unless the owner of the server grants more. This is the default; it needs no configuration.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.schema import Model, ToolPattern, Unique
from tarsy.resources.v1alpha1.namespace_grant import AllowedNamespaces

ARGUMENT = r"^[A-Za-z_][A-Za-z0-9_.-]*$"
ArgumentName = Annotated[str, StringConstraints(min_length=1, max_length=128, pattern=ARGUMENT)]


class Reach(Model):
    """Limits of tool calls in runs of other namespaces."""

    bound_by: Literal["Argument", "Server"] = Field(
        default="Argument",
        description="Argument: TARSy sets the arguments that name a namespace and refuses other values. Server: the "
        "server restricts itself to the namespace that each request names in its _meta (tarsy.dev/namespaces), and "
        "declares this on each tool.",
    )
    namespace_arguments: Annotated[tuple[ArgumentName, ...], Field(min_length=1, max_length=16), Unique()] = Field(
        default=("namespace",),
        description="Tool arguments that name a namespace. A tool without any of them, or with another argument "
        "about namespaces, is not offered.",
    )
    cluster_tools: Annotated[tuple[ToolPattern, ...], Unique()] = Field(
        default=(),
        max_length=256,
        description="Tools that are offered without binding, because they read nothing in a namespace. * matches any "
        "characters.",
    )
    unbound_namespaces: AllowedNamespaces | None = Field(
        default=None,
        description="Namespaces whose runs may use the full rights of the server. Defaults to none.",
    )
