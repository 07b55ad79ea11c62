"""Integrity of the results of a tool server: `MCPServer.spec.evidence`.

Decision: the object declares the classes, never the server alone. Marks of a server count only with `trustMarks`, and
only within results that the object declares, or leaves, at class A.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from tarsy.resources.schema import Model, ToolPattern, Unique, ValidationRule


class EvidenceClassRule(Model):
    """The integrity class of the results of some tools."""

    tools: Annotated[tuple[ToolPattern, ...], Field(min_length=1, max_length=256), Unique()] = Field(
        description="Tools. * matches any characters."
    )
    integrity: Literal["K", "A", "X"] = Field(
        alias="class",
        description="Who can write the results. K: only the control plane. A: workloads as well. X: anyone outside "
        "the cluster.",
    )


class EvidenceDeclaration(Model):
    """Writers of the results of the tools. Set at least one of classes and trustMarks."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "has(self.classes) && size(self.classes) > 0 || has(self.trustMarks) && self.trustMarks",
            "declare classes, or set trustMarks: true",
            lambda self: bool(self.classes) or self.trust_marks,
        ),
    )

    classes: tuple[EvidenceClassRule, ...] = Field(
        default=(),
        max_length=64,
        description="Classes by tool. The first entry that names a tool decides. Results of other tools are of "
        "class A.",
    )
    trust_marks: bool = Field(
        default=False,
        description="Whether to trust the parts that the server marks as class K (tarsy.dev/integrity in the _meta of "
        "a result), in results of class A.",
    )
    state_tools: Annotated[tuple[ToolPattern, ...], Unique()] = Field(
        default=(),
        max_length=256,
        description="Tools whose result is the state at the time of the call, not a log or a time range. A claim that "
        "quotes such a result is marked if the latest result of the same call no longer contains the quote. * matches "
        "any characters.",
    )
