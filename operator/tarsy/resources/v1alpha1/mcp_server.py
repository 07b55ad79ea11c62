"""MCPServer: where tools come from.

Decision: its name has no dot and at most 40 characters, so `server.tool` has one reading and fits a model's limits.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import (
    AUDIENCE,
    HEADER_NAME,
    HEADER_VALUE,
    HttpUrl,
    Model,
    Rule,
    ToolName,
    ToolPattern,
    Unique,
    clipped,
)
from tarsy.resources.v1alpha1.common import (
    MESSAGE_COLUMN,
    READY_COLUMNS,
    AllowedNamespaces,
    ConfigMapKeyRef,
    ConfigStatus,
    Seconds,
    SecretKeyRef,
    SecretSource,
    ToolPolicy,
)
from tarsy.resources.v1alpha1.masking import Masking
from tarsy.resources.v1alpha1.reach import Reach
from tarsy.resources.v1alpha1.workload import VALUE_OR_SECRET, EnvVar, Run

MAX_NAME = 40
MAX_TOOLS = 128


class Header(Model):
    """An HTTP header."""

    RULES: ClassVar[tuple[Rule, ...]] = (VALUE_OR_SECRET,)

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
    kubeconfig: bool = Field(
        default=False,
        description="Whether it gets a kubeconfig (named by KUBECONFIG) as the ServiceAccount of the Agent that uses "
        "it (spec.serviceAccountName of the Agent); an Agent without one cannot use it. In a cluster: run.kubeconfig.",
    )


class CaSource(Model):
    """Where certificates of authorities come from; exactly one source."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.configMapKeyRef) != has(self.secretKeyRef)",
            "set exactly one of configMapKeyRef and secretKeyRef",
            lambda self: (self.config_map_key_ref is None) != (self.secret_key_ref is None),
        ),
    )

    config_map_key_ref: ConfigMapKeyRef | None = Field(default=None, description="The key of a ConfigMap.")
    secret_key_ref: SecretKeyRef | None = Field(default=None, description="The key of a Secret.")


class ServerTls(Model):
    """How the server's certificate is verified."""

    ca_from: CaSource = Field(description="Certificates in PEM form; the server is verified by these and no others.")


class Http(Model):
    """A server that is reached by HTTP."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!has(self.tls) || self.url.startsWith('https://')",
            "tls is for URLs that begin with https://; change the URL, or leave tls out",
            lambda self: self.tls is None or self.url.startswith("https://"),
            field="tls",
        ),
        Rule(
            "!has(self.bearerTokenSecretRef) || !has(self.headers) "
            "|| !self.headers.exists(header, header.name.matches('(?i)^authorization$'))",
            "set bearerTokenSecretRef or the header Authorization, not both",
            lambda self: (
                self.bearer_token_secret_ref is None
                or all(header.name.lower() != "authorization" for header in self.headers)
            ),
            field="bearerTokenSecretRef",
        ),
        Rule(
            "!has(self.tokenAudience) || !has(self.bearerTokenSecretRef)",
            "set tokenAudience or bearerTokenSecretRef, not both",
            lambda self: self.token_audience is None or self.bearer_token_secret_ref is None,
            field="tokenAudience",
        ),
        Rule(
            "!has(self.tokenAudience) || !has(self.headers) "
            "|| !self.headers.exists(header, header.name.matches('(?i)^authorization$'))",
            "set tokenAudience or the header Authorization, not both",
            lambda self: (
                self.token_audience is None or all(header.name.lower() != "authorization" for header in self.headers)
            ),
            field="tokenAudience",
        ),
    )

    url: HttpUrl = Field(description="Where it is.")
    bearer_token_secret_ref: SecretKeyRef | None = Field(
        default=None, description="A token that is sent with every request, as Authorization: Bearer."
    )
    token_audience: Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=AUDIENCE)] | None = Field(
        default=None,
        description="The audience that this server checks: with every request it gets a token for it, as "
        "Authorization: Bearer, of the ServiceAccount of the Agent that uses it (spec.serviceAccountName of the "
        "Agent). Never one that the Kubernetes API takes.",
    )
    headers: Annotated[tuple[Header, ...], Unique("name")] = Field(
        default=(), max_length=32, description="Headers of every request."
    )
    tls: ServerTls | None = Field(
        default=None, description="How its certificate is verified; by the system's authorities when not set."
    )


class Transport(Model):
    """How the server is reached: what type says, and no other."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "(!has(self.stdio) || self.type == 'stdio') && (!has(self.http) || self.type != 'stdio')",
            "set stdio when type is stdio, http when type is http or sse, and not the other",
            lambda self: (self.stdio is None or self.type == "stdio") and (self.http is None or self.type != "stdio"),
        ),
    )

    type: Literal["stdio", "http", "sse"] = Field(
        description="stdio: a command; http: streamable HTTP; sse: the older HTTP with server-sent events."
    )
    stdio: Stdio | None = Field(default=None, description="The command, for type stdio, on one machine.")
    http: Http | None = Field(default=None, description="The address, for types http and sse.")


class ToolFilter(Model):
    """Which tools of the server there are for agents, and what they do; * stands for any characters (pods_*)."""

    allow: Annotated[tuple[ToolPattern, ...], Field(min_length=1, max_length=256), Unique()] | None = Field(
        default=None, description="Only these; all when not set."
    )
    deny: Annotated[tuple[ToolPattern, ...], Unique()] = Field(
        default=(), max_length=256, description="Not these, even when allowed."
    )
    read_only: Annotated[tuple[ToolPattern, ...], Unique()] = Field(
        default=(),
        max_length=256,
        description="These only read: toolPolicy ReadOnly lets agents have them, and they may be called again.",
    )
    destructive: Annotated[tuple[ToolPattern, ...], Unique()] = Field(
        default=(), max_length=256, description="These destroy something, whatever else is said of them."
    )


class McpTimeouts(Model):
    """Time limits of the server, in seconds."""

    init_seconds: Seconds = Field(default=30, description="From the start to its list of tools.")
    call_seconds: Seconds | None = Field(
        default=None, description="One call of a tool; the run's own limit (timeouts.toolCallSeconds) holds as well."
    )


class Summarization(Model):
    """What happens to results that are too long for a conversation."""

    enabled: bool = Field(
        default=True, description="Whether agents get a summary of them; the whole, however long, when not."
    )
    threshold_tokens: int = Field(
        default=5000, ge=100, le=1_000_000, description="Results above so many tokens (four bytes each) are summarized."
    )
    summary_tokens: int = Field(
        default=1000, ge=50, le=32_768, description="Tokens that a summary is asked to stay below."
    )


class MCPServerSpec(Model):
    """How the server is reached, and how its tools are used."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "has(self.transport) && has(self.run) != (has(self.transport.stdio) || has(self.transport.http))",
            "set exactly one of run, transport.stdio (type stdio) and transport.http (types http and sse)",
            lambda self: (self.run is None) != (self.transport.stdio is None and self.transport.http is None),
            field="transport",
        ),
        Rule(
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
        default=None, description="What the server is for."
    )
    transport: Transport = Field(description="How the server is reached; with run, what it speaks (type, no more).")
    run: Run | None = Field(
        default=None, description="A workload in this namespace that is the server: how stdio servers run in a cluster."
    )
    instructions: Annotated[str, StringConstraints(max_length=32_768)] | None = Field(
        default=None, description="What agents are told about its tools."
    )
    tools: ToolFilter = Field(default=ToolFilter(), description="Which of its tools there are for agents.")
    tool_policy: ToolPolicy | None = Field(
        default=None,
        description="ReadOnly (when not set): agents get the tools that are known to only read, from tools.readOnly "
        "or, with trustAnnotations, from the server; All: agents whose own toolPolicy is All get all of them.",
    )
    trust_annotations: bool = Field(
        default=False,
        description="Whether what the server says of its tools counts (readOnlyHint, destructiveHint, idempotentHint) "
        "where tools.readOnly, tools.destructive and repeatableTools do not name them.",
    )
    repeatable_tools: Annotated[tuple[ToolPattern, ...], Unique()] = Field(
        default=(),
        max_length=256,
        description="Tools that may be called again when a crash left it unknown whether a call was made; * stands for "
        "any characters. Those that only read always may.",
    )
    masking: Masking = Field(
        default=Masking(), description="What is taken out of its answers before models, people and the record get them."
    )
    summarization: Summarization = Field(
        default=Summarization(), description="What happens to results that are too long for a conversation."
    )
    timeouts: McpTimeouts = Field(default=McpTimeouts(), description="Time limits, in seconds.")
    reach: Reach = Field(
        default=Reach(),
        description="How far it reaches for runs of other namespaces: their own namespace, unless granted more.",
    )
    allowed_namespaces: AllowedNamespaces | None = Field(
        default=None, description="Which other namespaces may use it; none when not set."
    )


class MCPServerStatus(ConfigStatus):
    """Whether the server can be used, whether it answers, and what it has."""

    tool_count: int | None = Field(default=None, ge=0, description="How many tools it has.")
    tools: tuple[ToolName, ...] = Field(default=(), max_length=MAX_TOOLS, description="Their names, the first ones.")
    tools_hash: Annotated[str, StringConstraints(max_length=64)] | None = Field(
        default=None, description="SHA-256 of its list of tools, as hex: another one means another list."
    )
    workload: Annotated[str, StringConstraints(max_length=63)] | None = Field(
        default=None, description="The name of what runs for it, as spec.run says."
    )
    last_error: Annotated[str, clipped(1024), StringConstraints(max_length=1024)] | None = Field(
        default=None, description="Why it did not answer when it was looked at last; not set when it did."
    )


class MCPServer(Resource[MCPServerSpec, MCPServerStatus]):
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
        Column(
            "Available",
            '.status.conditions[?(@.type=="Available")].status',
            description="Whether it answers.",
        ),
        Column("Tools", ".status.toolCount", "integer", "How many tools it has."),
        Column("Transport", ".spec.transport.type", description="How it is reached."),
        AGE,
        Column("URL", ".spec.transport.http.url", description="Where it is.", wide=True),
        Column("Command", ".spec.transport.stdio.command", description="The program.", wide=True),
        Column(
            "Verified",
            '.status.conditions[?(@.type=="Verified")].status',
            description="Whether its tools are those that the object names.",
            wide=True,
        ),
        Column("Error", ".status.lastError", description="Why it did not answer.", wide=True),
        MESSAGE_COLUMN,
    )

    kind: Literal["MCPServer"] = "MCPServer"
    status: MCPServerStatus = MCPServerStatus()
