"""Skill: instructions for agents in the format of agentskills.io, offered to the runs that its rules choose.

Decision: a skill without `appliesTo` is used only where an Agent or a Chain names it, so that creating one changes no
agent that nobody has changed.

Decision: the standard's `allowed-tools` lists tools that an agent may use without asking. Here the list never grants
anything: while the skill is loaded, the agent may call only those of its own tools that the list names as well.
"""

from __future__ import annotations

import re
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import LABEL_VALUE, AlertType, LabelName, Model, ObjectName, Unique, ValidationRule
from tarsy.resources.v1alpha1.common import MESSAGE_COLUMN, READY_COLUMNS, ConfigMapKeyRef, ConfigStatus
from tarsy.resources.v1alpha1.git_source import GitSource
from tarsy.resources.v1alpha1.namespace_grant import AllowedNamespaces

MAX_SKILL_NAME: Final = 64
MAX_SKILL_BYTES: Final = 65_536
MAX_SKILL_DESCRIPTION: Final = 1_024
MAX_COMPATIBILITY: Final = 500
SKILL_NAME: Final = r"^[a-z0-9]+(-[a-z0-9]+)*$"
"""Name of a skill, as agentskills.io defines it: no hyphen at an end, and no two in a row."""

SKILL_TOOL: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?\.[A-Za-z0-9_./*-]+$"
"""A tool as `SERVER.TOOL`; `*` in the part of the tool stands for any characters."""


class AppliesTo(Model):
    """Runs that a skill is for. Every field that is set must match."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "(has(self.alertTypes) && size(self.alertTypes) > 0) "
            "|| (has(self.namespaces) && size(self.namespaces) > 0) "
            "|| (has(self.workloadLabels) && size(self.workloadLabels) > 0)",
            "set at least one of alertTypes, namespaces and workloadLabels",
            lambda self: bool(self.alert_types or self.namespaces or self.workload_labels),
        ),
    )

    alert_types: Annotated[tuple[AlertType, ...], Unique()] = Field(
        default=(), max_length=100, description="Types of the alert, one of which must match."
    )
    namespaces: Annotated[tuple[LabelName, ...], Unique()] = Field(
        default=(), max_length=100, description="Namespaces of the investigation, one of which must match."
    )
    workload_labels: dict[str, Annotated[str, StringConstraints(max_length=63, pattern=LABEL_VALUE)]] = Field(
        default_factory=dict,
        max_length=16,
        description="Labels of the workload, as the text of the alert names them (labels of Alertmanager, or lines "
        "NAME: VALUE). All must match.",
    )


SkillTool = Annotated[str, StringConstraints(min_length=3, max_length=170, pattern=SKILL_TOOL)]


class SkillSpec(Model):
    """Text of the skill, and rules for its use."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "(has(self.body) ? 1 : 0) + (has(self.configMapKeyRef) ? 1 : 0) + (has(self.git) ? 1 : 0) == 1",
            "set exactly one of body (the text itself), configMapKeyRef and git",
            lambda self: [self.body, self.config_map_key_ref, self.git].count(None) == 2,
        ),
        ValidationRule(
            f"!has(self.body) || size(bytes(self.body)) <= {MAX_SKILL_BYTES}",
            f"body must have at most {MAX_SKILL_BYTES} bytes (64 KiB); split it into several skills",
            lambda self: self.body is None or len(self.body.encode()) <= MAX_SKILL_BYTES,
            field="body",
        ),
        ValidationRule(
            "!has(self.body) || self.body.matches('[^ \\\\t\\\\r\\\\n]')",
            "body must not be empty; put the instructions there",
            lambda self: self.body is None or re.search(r"[^ \t\r\n]", self.body) is not None,
            field="body",
        ),
    )

    description: Annotated[str, StringConstraints(min_length=1, max_length=MAX_SKILL_DESCRIPTION)] = Field(
        description="What the skill does, and when to use it. Agents decide by this text whether to load the skill."
    )
    # Bounds for the schema only: in Python the rules above speak, which also name the remedy.
    body: str | None = Field(
        default=None,
        description="Instructions in Markdown, at most 65536 bytes.",
        json_schema_extra={"minLength": 1, "maxLength": MAX_SKILL_BYTES},
    )
    config_map_key_ref: ConfigMapKeyRef | None = Field(
        default=None,
        description="Key of a ConfigMap in the same namespace that holds the instructions (at most 64 KiB). Read when "
        "an investigation is accepted.",
    )
    git: GitSource | None = Field(
        default=None,
        description="File of a commit in a public Git repository, such as a SKILL.md, of at most 64 KiB. Its "
        "frontmatter is ignored: this object contains the description and the tools.",
    )
    applies_to: AppliesTo | None = Field(
        default=None,
        description="Runs to which the skill applies. A skill with this field is offered to the agents of all chains "
        "in its "
        "namespace that name no skills themselves. Without it, the skill is used only where an Agent or a Chain names "
        "it.",
    )
    allowed_tools: Annotated[tuple[SkillTool, ...], Field(max_length=128), Unique()] | None = Field(
        default=None,
        description="Tools that an agent may call while the skill is loaded, as SERVER.TOOL; * stands for any "
        "characters of the tool's name. They only narrow the tools that the agent has. Defaults to all of them.",
    )
    license: Annotated[str, StringConstraints(max_length=256)] | None = Field(
        default=None, description="License of the text. Not evaluated."
    )
    compatibility: Annotated[str, StringConstraints(max_length=MAX_COMPATIBILITY)] | None = Field(
        default=None, description="Requirements of the skill, for people. Not evaluated."
    )
    metadata: dict[str, Annotated[str, StringConstraints(max_length=1024)]] = Field(
        default_factory=dict, max_length=32, description="Other properties of the skill, for people. Not evaluated."
    )
    allowed_namespaces: AllowedNamespaces | None = Field(
        default=None, description="Other namespaces that may use this skill. Defaults to none."
    )


class SkillStatus(ConfigStatus):
    """Readiness of the skill, and the text that a run would get now."""

    digest: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None, description="SHA-256 of the text, as hexadecimal digits."
    )
    size_bytes: Annotated[int, Field(ge=0, json_schema_extra={"format": "int32"})] | None = Field(
        default=None, description="Bytes of the text."
    )


class SkillSelection(Model):
    """A skill that an agent uses."""

    name: ObjectName = Field(
        description="Name of the Skill, in the same namespace, else in the library namespace if its allowedNamespaces "
        "permit it."
    )
    required: bool | None = Field(
        default=None,
        description="Whether the text is in the prompt from the start. Otherwise the agent sees the description, and "
        "loads the text when it needs it.",
    )


SkillSelections = Annotated[tuple[SkillSelection, ...], Field(max_length=32), Unique("name")]


class Skill(Resource[SkillSpec, SkillStatus]):
    """Instructions for agents in the format of agentskills.io."""

    KIND: ClassVar[str] = "Skill"
    PLURAL: ClassVar[str] = "skills"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("tskill",)
    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            f"size(self.metadata.name) <= {MAX_SKILL_NAME} && self.metadata.name.matches('{SKILL_NAME}')",
            f"metadata.name of a Skill must have at most {MAX_SKILL_NAME} lower-case letters, digits and single "
            "hyphens between them",
            lambda self: (
                len(self.metadata.name) <= MAX_SKILL_NAME and re.fullmatch(SKILL_NAME, self.metadata.name) is not None
            ),
        ),
    )
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        *READY_COLUMNS,
        Column("Bytes", ".status.sizeBytes", "integer", "Bytes of the text."),
        AGE,
        Column("Description", ".spec.description", description="What the skill does, and when to use it.", wide=True),
        Column("Digest", ".status.digest", description="SHA-256 of the text.", wide=True),
        MESSAGE_COLUMN,
    )

    kind: Literal["Skill"] = "Skill"
    status: SkillStatus = SkillStatus()
