"""Settings of calls that need approval: `MCPServer.spec.approval`.

Decision: which objects a call changes is declared on the server's object by its owner, and never taken from a model or
from the server's answer. Expressions are CEL over the arguments of the call as they would be sent.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.schema import Model, ToolName, ToolPattern, Unique, ValidationRule
from tarsy.resources.v1alpha1.reach import ArgumentName

Expression = Annotated[str, StringConstraints(min_length=1, max_length=1024)]
_Tools = Annotated[tuple[ToolPattern, ...], Field(min_length=1, max_length=64), Unique()]


class TargetDeclaration(Model):
    """The objects that calls of some tools change. Set exactly one of object and manifestArgument."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "has(self.object) != has(self.manifestArgument)",
            "set exactly one of object and manifestArgument",
            lambda self: (self.object is None) != (self.manifest_argument is None),
        ),
    )

    tools: _Tools = Field(description="Tools. * matches any characters. The first entry that names a tool counts.")
    object: Expression | None = Field(
        default=None,
        description="CEL expression over `arguments`: a map with apiVersion, kind, name and, for a kind in namespaces, "
        "namespace; or a list of such maps.",
    )
    manifest_argument: ArgumentName | None = Field(
        default=None, description="Argument that contains the objects as a manifest, in YAML or JSON."
    )
    change: Expression | None = Field(
        default=None,
        description="CEL expression over `arguments`: the change as a JSON merge patch, to show it as a diff. For one "
        "object; with manifestArgument, the manifest is the change.",
    )


class DryRunDeclaration(Model):
    """Dry run of some tools."""

    tools: _Tools = Field(description="Tools. * matches any characters. The first entry that names a tool counts.")
    argument: ArgumentName = Field(
        description="Argument that makes the call a dry run. Only sent if the tool declares it."
    )
    value: Annotated[str, StringConstraints(min_length=1, max_length=256)] = Field(
        description="Value of the argument. true and false are sent as booleans."
    )


class UndoDeclaration(Model):
    """The call that undoes a call of some tools. It is proposed only, and needs approval itself."""

    tools: _Tools = Field(description="Tools. * matches any characters. The first entry that names a tool counts.")
    tool: ToolName = Field(description="Tool of this server that undoes the call.")
    arguments: Expression = Field(
        description="CEL expression that returns the arguments of the undoing call as a map. Variables: `arguments` "
        "of the call to undo, `before` (the object before that call) and `manifest` (the same in JSON). Masked "
        "values cannot be used."
    )


class ApprovalSettings(Model):
    """Settings of calls that need approval."""

    required: Annotated[int, Field(ge=1, le=2)] | None = Field(
        default=None, description="Number of people who must approve a call. Defaults to 1."
    )
    targets: Annotated[tuple[TargetDeclaration, ...], Field(max_length=32)] = Field(
        default=(),
        description="Objects that calls change. They are read with the ServiceAccount of the Agent before people are "
        "asked and again before the call is sent; a call on an object that changed in between is not sent.",
    )
    undetermined: Literal["Ask", "Refuse"] | None = Field(
        default=None,
        description="What happens to a call whose objects are not declared or cannot be read. Refuse: it is not "
        "made. Ask: people decide without a preview. Defaults to Refuse.",
    )
    git_ops: Literal["Refuse", "Warn"] | None = Field(
        default=None,
        description="What happens to a call on an object that Argo CD, Flux or Helm manages. Refuse: it is not made, "
        "and the finding contains the change, to be made in Git. Warn: approvers see a warning. Defaults to "
        "Refuse.",
    )
    dry_run: Annotated[tuple[DryRunDeclaration, ...], Field(max_length=32)] = Field(
        default=(), description="Tools with a dry run. Its result is the preview."
    )
    undo: Annotated[tuple[UndoDeclaration, ...], Field(max_length=32)] = Field(
        default=(), description="Calls that undo other calls. They are proposed, and never made automatically."
    )
