"""MCPServer: a source of tools.

Decision: its name has no dot and at most 40 characters, so `server.tool` has one reading and fits a model's limits.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import (
    Model,
    ToolName,
    ToolPattern,
    Unique,
    ValidationRule,
    clipped,
)
from tarsy.resources.v1alpha1.approval_settings import ApprovalSettings
from tarsy.resources.v1alpha1.common import (
    MESSAGE_COLUMN,
    READY_COLUMNS,
    ConfigStatus,
    Seconds,
    ToolPolicy,
)
from tarsy.resources.v1alpha1.data_flow import DataFlow
from tarsy.resources.v1alpha1.evidence import EvidenceDeclaration
from tarsy.resources.v1alpha1.extraction import ExtractionRule
from tarsy.resources.v1alpha1.masking import Masking
from tarsy.resources.v1alpha1.namespace_grant import AllowedNamespaces
from tarsy.resources.v1alpha1.reach import Reach
from tarsy.resources.v1alpha1.tool_pin import MAX_PINNED, PinMode, PinnedTool, ToolAcceptances
from tarsy.resources.v1alpha1.transport import Transport
from tarsy.resources.v1alpha1.workload import Run

MAX_NAME = 40
MAX_TOOLS = 128


class ToolFilter(Model):
    """Tools of the server that agents may use, and their properties. * matches any characters (pods_*)."""

    allow: Annotated[tuple[ToolPattern, ...], Field(min_length=1, max_length=256), Unique()] | None = Field(
        default=None, description="Tools offered to agents. Defaults to all tools."
    )
    deny: Annotated[tuple[ToolPattern, ...], Unique()] = Field(
        default=(), max_length=256, description="Tools that are never offered, even if they are allowed."
    )
    read_only: Annotated[tuple[ToolPattern, ...], Unique()] = Field(
        default=(),
        max_length=256,
        description="Tools that only read. Agents with toolPolicy ReadOnly get them, and calls of them may be "
        "repeated.",
    )
    destructive: Annotated[tuple[ToolPattern, ...], Unique()] = Field(
        default=(),
        max_length=256,
        description="Tools that are destructive, regardless of any other declaration. "
        "Each call of them needs approval.",
    )


class McpTimeouts(Model):
    """Time limits of the server, in seconds."""

    init_seconds: Seconds = Field(default=30, description="Limit from the start of a session to its list of tools.")
    call_seconds: Seconds | None = Field(
        default=None,
        description="Limit of one tool call. The run's own limit (timeouts.toolCallSeconds) applies as well.",
    )


class Summarization(Model):
    """Handling of tool results that are too long for the conversation."""

    enabled: bool = Field(
        default=True,
        description="Whether agents get a summary of long results. If false, they get the whole result, "
        "regardless of its length.",
    )
    threshold_tokens: int = Field(
        default=5000,
        ge=100,
        le=1_000_000,
        description="Results above this number of tokens (four bytes each) are summarized.",
    )
    summary_tokens: int = Field(default=1000, ge=50, le=32_768, description="Target size of a summary in tokens.")


class MCPServerSpec(Model):
    """Connection to the server and use of its tools."""

    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            "has(self.transport) && has(self.run) != (has(self.transport.stdio) || has(self.transport.http))",
            "set exactly one of run, transport.stdio (type stdio) and transport.http (types http and sse)",
            lambda self: (self.run is None) != (self.transport.stdio is None and self.transport.http is None),
            field="transport",
        ),
        ValidationRule(
            "!has(self.run) || (self.transport.type == 'stdio' && has(self.run.command) && !has(self.run.port)) "
            "|| (self.transport.type == 'http' && has(self.run.port))",
            "with transport.type stdio set run.command and not run.port, with http set run.port; sse cannot be run",
            lambda self: (
                self.run is None
                or (self.transport.type == "stdio" and self.run.command is not None and self.run.port is None)
                or (self.transport.type == "http" and self.run.port is not None)
            ),
            field="run",
        ),
    )

    description: Annotated[str, StringConstraints(max_length=1024)] | None = Field(
        default=None, description="Purpose of the server."
    )
    transport: Transport = Field(
        description="Connection to the server. With run, set only the type that the server speaks."
    )
    run: Run | None = Field(
        default=None,
        description="Workload in this namespace that runs the server. Stdio servers run this way in a cluster.",
    )
    instructions: Annotated[str, StringConstraints(max_length=32_768)] | None = Field(
        default=None, description="Instructions for agents on how to use the tools."
    )
    tools: ToolFilter = Field(default=ToolFilter(), description="Tools offered to agents, and their properties.")
    tool_policy: ToolPolicy | None = Field(
        default=None,
        description="ReadOnly (the default): agents get only tools known to be read-only, from tools.readOnly "
        "or, with trustAnnotations, from the server's annotations. Approve: agents with toolPolicy Approve or All also "
        "get the other tools, each call of which needs approval. All: agents with toolPolicy All get every tool, and "
        "only calls of tools.destructive need approval.",
    )
    trust_annotations: bool = Field(
        default=False,
        description="Whether to trust the server's tool annotations (readOnlyHint, destructiveHint, "
        "idempotentHint) for tools not listed in tools.readOnly, tools.destructive or "
        "repeatableTools.",
    )
    repeatable_tools: Annotated[tuple[ToolPattern, ...], Unique()] = Field(
        default=(),
        max_length=256,
        description="Tools that may be called again if a crash left the outcome of a call unknown. * matches any "
        "characters. Read-only tools may always be called again.",
    )
    masking: Masking = Field(
        default=Masking(), description="Masking of tool results before models, users and the record see them."
    )
    summarization: Summarization = Field(
        default=Summarization(), description="Handling of tool results that are too long for the conversation."
    )
    timeouts: McpTimeouts = Field(default=McpTimeouts(), description="Time limits, in seconds.")
    reach: Reach = Field(
        default=Reach(),
        description="Limits of tool calls in runs of other namespaces. By default, calls are bound to the "
        "namespace of the run.",
    )
    evidence: EvidenceDeclaration | None = Field(
        default=None,
        description="Who can write the results of the tools. By default, workloads can (class A): a finding that rests "
        "on them alone has at most medium confidence.",
    )
    approval: ApprovalSettings | None = Field(
        default=None,
        description="Settings of calls that need approval: the objects that they change, their dry run, their undo, "
        "and the number of approvals. By default, people decide without a preview.",
    )
    pin: PinMode | None = Field(
        default=None,
        description="Whether tool definitions must be accepted before agents get the tools. TrustOnFirstUse: the "
        "definitions that the server lists first are trusted; changed and new ones must be accepted. Approved: "
        "all must be accepted. By default, each run gets the tools as they are when it begins.",
    )
    accepted_tools: ToolAcceptances = Field(
        default=(),
        description="Accepted tool definitions, for pin. Write one entry of your own, which requires the verb "
        "approve on this MCPServer. Entries count only while the policy tarsy-accept is in force.",
    )
    extraction: tuple[ExtractionRule, ...] = Field(
        default=(),
        max_length=16,
        description="Values that agents get instead of results, for tools that return text from outside. A model "
        "call without tools extracts them from the text. The first entry that names a tool decides.",
    )
    data_flow: DataFlow | None = Field(
        default=None, description="Arguments that leave the cluster, and results whose text must not leave it."
    )
    allowed_namespaces: AllowedNamespaces | None = Field(
        default=None, description="Other namespaces that may use this server. Defaults to none."
    )


class MCPServerStatus(ConfigStatus):
    """Readiness, availability and tools of the server."""

    tool_count: int | None = Field(default=None, ge=0, description="Number of tools.")
    tools: tuple[ToolName, ...] = Field(default=(), max_length=MAX_TOOLS, description="Names of the tools, truncated.")
    tools_hash: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None, description="SHA-256 of the tool list, in hex. It changes when the list changes."
    )
    pinned_tools: Annotated[tuple[PinnedTool, ...], Unique("name")] = Field(
        default=(),
        max_length=MAX_PINNED,
        description="The tools that spec.tools leaves to agents, with their definitions as digests, if spec.pin is "
        f"set; at most {MAX_PINNED}. Others are withheld.",
    )
    workload: Annotated[str, StringConstraints(max_length=63)] | None = Field(
        default=None, description="Name of the workload that runs the server, as declared by spec.run."
    )
    last_error: Annotated[str, clipped(1024), StringConstraints(max_length=1024)] | None = Field(
        default=None, description="Error of the last health check. Not set when the server answered."
    )


class MCPServer(Resource[MCPServerSpec, MCPServerStatus]):
    """A server that provides tools to agents over the Model Context Protocol."""

    KIND: ClassVar[str] = "MCPServer"
    PLURAL: ClassVar[str] = "mcpservers"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("tmcp",)
    RULES: ClassVar[tuple[ValidationRule, ...]] = (
        ValidationRule(
            f"size(self.metadata.name) <= {MAX_NAME} && !self.metadata.name.contains('.')",
            f"metadata.name of an MCPServer must have at most {MAX_NAME} characters and no dot, "
            "because tools are called server.tool",
            lambda self: len(self.metadata.name) <= MAX_NAME and "." not in self.metadata.name,
        ),
    )
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        *READY_COLUMNS,
        Column(
            "Available",
            '.status.conditions[?(@.type=="Available")].status',
            description="Whether the server answers.",
        ),
        Column("Tools", ".status.toolCount", "integer", "Number of tools."),
        Column("Transport", ".spec.transport.type", description="Transport type."),
        AGE,
        Column("URL", ".spec.transport.http.url", description="URL of the server.", wide=True),
        Column("Command", ".spec.transport.stdio.command", description="Command of the server.", wide=True),
        Column(
            "Verified",
            '.status.conditions[?(@.type=="Verified")].status',
            description="Whether the server offers the tools that the object names.",
            wide=True,
        ),
        Column(
            "Evidence",
            '.status.conditions[?(@.type=="EvidenceDeclared")].status',
            description="Whether the object declares who can write the results.",
            wide=True,
        ),
        Column(
            "Changed",
            '.status.conditions[?(@.type=="ToolsChanged")].status',
            description="Whether new or changed tools wait to be accepted (spec.pin).",
            wide=True,
        ),
        Column("Error", ".status.lastError", description="Error of the last health check.", wide=True),
        MESSAGE_COLUMN,
    )

    kind: Literal["MCPServer"] = "MCPServer"
    status: MCPServerStatus = MCPServerStatus()
