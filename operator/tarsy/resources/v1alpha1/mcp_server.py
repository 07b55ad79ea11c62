"""MCPServer: where tools come from.

Decision: its name has no dot and at most 40 characters, so `server.tool` has one reading and fits a model's limits.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import ENV_NAME, HEADER_NAME, HEADER_VALUE, HttpUrl, Model, Rule, ToolName, Unique
from tarsy.resources.v1alpha1.common import (
    MESSAGE_COLUMN,
    READY_COLUMNS,
    AllowedNamespaces,
    ConfigStatus,
    Seconds,
    SecretSource,
)
from tarsy.resources.v1alpha1.masking import Masking

MAX_NAME = 40

_VALUE_OR_SECRET = Rule(
    "has(self.value) != has(self.valueFrom)",
    "set exactly one of value and valueFrom.secretKeyRef",
    lambda self: (self.value is None) != (self.value_from is None),
)


class EnvVar(Model):
    """An environment variable."""

    RULES: ClassVar[tuple[Rule, ...]] = (_VALUE_OR_SECRET,)

    name: Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=ENV_NAME)] = Field(
        description="Name of the variable."
    )
    value: Annotated[str, StringConstraints(max_length=8192)] | None = Field(default=None, description="Its value.")
    value_from: SecretSource | None = Field(default=None, description="Where its value comes from.")


class Header(Model):
    """An HTTP header."""

    RULES: ClassVar[tuple[Rule, ...]] = (_VALUE_OR_SECRET,)

    name: Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=HEADER_NAME)] = Field(
        description="Name of the header."
    )
    value: Annotated[str, StringConstraints(max_length=8192, pattern=HEADER_VALUE)] | None = Field(
        default=None, description="Its value."
    )
    value_from: SecretSource | None = Field(default=None, description="Where its value comes from.")


class Stdio(Model):
    """A command that speaks MCP over its standard input and output."""

    command: Annotated[str, StringConstraints(min_length=1, max_length=1024)] = Field(description="The program.")
    args: tuple[Annotated[str, StringConstraints(max_length=4096)], ...] = Field(
        default=(), max_length=64, description="Its arguments."
    )
    env: Annotated[tuple[EnvVar, ...], Unique("name")] = Field(
        default=(), max_length=64, description="Its environment; it gets nothing more than this and PATH."
    )


class Http(Model):
    """A server that speaks streamable HTTP."""

    url: HttpUrl = Field(description="Where it is.")
    headers: Annotated[tuple[Header, ...], Unique("name")] = Field(
        default=(), max_length=32, description="Headers of every request."
    )


class Transport(Model):
    """How the server is reached: what type says, and no other."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.stdio) == (self.type == 'stdio') && has(self.http) == (self.type == 'http')",
            "set stdio when type is stdio, http when type is http, and not the other",
            lambda self: (
                (self.stdio is not None) == (self.type == "stdio") and (self.http is not None) == (self.type == "http")
            ),
        ),
    )

    type: Literal["stdio", "http"] = Field(description="stdio: a command; http: streamable HTTP.")
    stdio: Stdio | None = Field(default=None, description="The command, for type stdio.")
    http: Http | None = Field(default=None, description="The address, for type http.")


class ToolFilter(Model):
    """Which tools of the server there are for agents."""

    allow: Annotated[tuple[ToolName, ...], Field(min_length=1, max_length=256), Unique()] | None = Field(
        default=None, description="Only these; all when not set."
    )
    deny: Annotated[tuple[ToolName, ...], Unique()] = Field(
        default=(), max_length=256, description="Not these, even when allowed."
    )


class McpTimeouts(Model):
    """Time limits of the server, in seconds."""

    init_seconds: Seconds = Field(default=30, description="From the start to its list of tools.")
    call_seconds: Seconds | None = Field(
        default=None, description="One call of a tool; the run's own limit (timeouts.toolCallSeconds) holds as well."
    )


class MCPServerSpec(Model):
    """How the server is reached, and how its tools are used."""

    description: Annotated[str, StringConstraints(max_length=1024)] | None = Field(
        default=None, description="What the server is for."
    )
    transport: Transport = Field(description="How the server is reached.")
    instructions: Annotated[str, StringConstraints(max_length=32_768)] | None = Field(
        default=None, description="What agents are told about its tools."
    )
    tools: ToolFilter = Field(default=ToolFilter(), description="Which of its tools there are for agents.")
    repeatable_tools: Annotated[tuple[ToolName, ...], Unique()] = Field(
        default=(),
        max_length=256,
        description="Tools that may be called again when a crash left it unknown whether a call was made.",
    )
    masking: Masking = Field(
        default=Masking(), description="What is taken out of its answers before models, people and the record get them."
    )
    timeouts: McpTimeouts = Field(default=McpTimeouts(), description="Time limits, in seconds.")
    allowed_namespaces: AllowedNamespaces | None = Field(
        default=None, description="Which other namespaces may use it; none when not set."
    )


class MCPServer(Resource[MCPServerSpec, ConfigStatus]):
    """A server of tools that agents use, by the Model Context Protocol."""

    KIND: ClassVar[str] = "MCPServer"
    PLURAL: ClassVar[str] = "mcpservers"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("tmcp",)
    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            f"size(self.metadata.name) <= {MAX_NAME} && !self.metadata.name.contains('.')",
            f"metadata.name of an MCPServer must have at most {MAX_NAME} characters and no dot, "
            "because tools are called server.tool",
            lambda self: len(self.metadata.name) <= MAX_NAME and "." not in self.metadata.name,
        ),
    )
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        *READY_COLUMNS,
        Column("Transport", ".spec.transport.type", description="How it is reached."),
        AGE,
        Column("URL", ".spec.transport.http.url", description="Where it is.", wide=True),
        Column("Command", ".spec.transport.stdio.command", description="The program.", wide=True),
        MESSAGE_COLUMN,
    )

    kind: Literal["MCPServer"] = "MCPServer"
    status: ConfigStatus = ConfigStatus()
