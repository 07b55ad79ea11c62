"""Agent: instructions, tools and a strategy.

Decision: it names no provider. Which model pays for an investigation is the chain's to say (reference section 1.5).
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, StringConstraints

from tarsy.resources.meta import AGE, Column, Resource
from tarsy.resources.schema import Model, ObjectName
from tarsy.resources.v1alpha1.common import (
    MESSAGE_COLUMN,
    READY_COLUMNS,
    AllowedNamespaces,
    ConfigStatus,
    Iterations,
    McpSelections,
    NativeTools,
    Strategy,
    ToolPolicy,
)


class AgentSpec(Model):
    """What the agent is told, and what it may use."""

    description: Annotated[str, StringConstraints(max_length=1024)] | None = Field(
        default=None, description="What the agent is for."
    )
    instructions: Annotated[str, StringConstraints(max_length=32_768)] | None = Field(
        default=None, description="What the agent is told about its work, beyond what every agent is told."
    )
    mcp_servers: McpSelections | None = Field(default=None, description="The MCP servers whose tools it has.")
    tool_policy: ToolPolicy | None = Field(
        default=None,
        description="ReadOnly (when not set): of its servers it has the tools that are known to only read; All: also "
        "the others of servers whose own toolPolicy is All.",
    )
    strategy: Strategy | None = Field(default=None, description="How it works with the model.")
    max_iterations: Iterations | None = Field(default=None, description="After so many iterations it must conclude.")
    native_tools: NativeTools | None = Field(
        default=None, description="Tools of the model's provider that it needs (true) or must not have (false)."
    )
    service_account_name: ObjectName | None = Field(
        default=None,
        description="The ServiceAccount that its tool servers act as where they ask for one (kubeconfig of a "
        "command or, with scope PerRun, of run; tokenAudience of a URL): the one of this name in the namespace of the "
        "investigation, by short-lived tokens that end with the run. Servers that do not ask, all of scope Shared "
        "among them, act as themselves.",
    )
    allowed_namespaces: AllowedNamespaces | None = Field(
        default=None, description="Which other namespaces may use it; none when not set."
    )


class Agent(Resource[AgentSpec, ConfigStatus]):
    """An LLM with instructions and tools, to be used in the stages of chains."""

    KIND: ClassVar[str] = "Agent"
    PLURAL: ClassVar[str] = "agents"
    SHORT_NAMES: ClassVar[tuple[str, ...]] = ("tagent",)
    COLUMNS: ClassVar[tuple[Column, ...]] = (
        *READY_COLUMNS,
        Column("Strategy", ".spec.strategy", description="How it works with the model."),
        AGE,
        Column("Description", ".spec.description", description="What it is for.", wide=True),
        MESSAGE_COLUMN,
    )

    kind: Literal["Agent"] = "Agent"
    spec: AgentSpec = AgentSpec()
    status: ConfigStatus = ConfigStatus()
