"""Agent: instructions, tools and a strategy.

Decision: it names no provider, because the chain decides which model pays for an investigation.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import Model, ObjectName
from tarsy.resources.v1alpha1.common import (
    MESSAGE_COLUMN,
    READY_COLUMNS,
    ConfigStatus,
    Iterations,
    McpSelections,
    NativeTools,
    Strategy,
    ToolPolicy,
)
from tarsy.resources.v1alpha1.namespace_grant import AllowedNamespaces
from tarsy.resources.v1alpha1.skill import SkillSelections


class AgentSpec(Model):
    """Instructions and tools of the agent."""

    description: Annotated[str, StringConstraints(max_length=1024)] | None = Field(
        default=None, description="Purpose of the agent."
    )
    instructions: Annotated[str, StringConstraints(max_length=32_768)] | None = Field(
        default=None, description="Instructions for the agent, in addition to the common ones."
    )
    mcp_servers: McpSelections | None = Field(default=None, description="MCP servers whose tools the agent may use.")
    skills: SkillSelections | None = Field(
        default=None,
        description="Skills of the agent. Of those that have appliesTo, only the ones that apply to the run are used. "
        "Defaults to all Skills in the namespace of the chain whose appliesTo applies to the run. An empty list is "
        "none.",
    )
    tool_policy: ToolPolicy | None = Field(
        default=None,
        description="ReadOnly (the default): the agent gets only tools known to be read-only. Approve: the agent "
        "also gets the other tools of servers with toolPolicy Approve or All, and each call of them needs approval. "
        "All: as Approve, and calls need approval only if the server's toolPolicy is Approve or the tool is in "
        "tools.destructive.",
    )
    strategy: Strategy | None = Field(default=None, description="Strategy of the agent loop.")
    max_iterations: Iterations | None = Field(
        default=None, description="Maximum iterations, after which the agent must conclude."
    )
    native_tools: NativeTools | None = Field(
        default=None,
        description="Native tools of the model provider that the agent requires (true) or must not use (false).",
    )
    service_account_name: ObjectName | None = Field(
        default=None,
        description="ServiceAccount that tool servers act as for this agent, if they request one (kubeconfig of a "
        "command or, with scope PerRun, of run; tokenAudience of a URL). It is the account of this name in the "
        "namespace of the investigation, used through short-lived tokens that expire with the run. All other "
        "servers, including those of scope Shared, act as themselves.",
    )
    allowed_namespaces: AllowedNamespaces | None = Field(
        default=None, description="Other namespaces that may use this agent. Defaults to none."
    )


class Agent(Resource[AgentSpec, ConfigStatus]):
    """An LLM agent with instructions and tools, used in the stages of chains."""

    KIND: ClassVar[str] = "Agent"
    PLURAL: ClassVar[str] = "agents"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("tagent",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        *READY_COLUMNS,
        Column("Strategy", ".spec.strategy", description="Strategy of the agent loop."),
        AGE,
        Column("Description", ".spec.description", description="Purpose of the agent.", wide=True),
        MESSAGE_COLUMN,
    )

    kind: Literal["Agent"] = "Agent"
    spec: AgentSpec = AgentSpec()
    status: ConfigStatus = ConfigStatus()
