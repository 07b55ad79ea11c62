"""Models of the configuration: chains, MCP servers and LLM providers, as the author of an alert needs them.

Decision: each model contains a few fields of the spec, chosen one by one. It never contains an address, a command, a
header or the name of a Secret: those require the right to read the object itself.
"""

from typing import Any, Self

from pydantic import Field

from tarsy.http.models import View
from tarsy.http.views.common import NEXT_PAGE, ConditionView
from tarsy.plan.provider_types import provider_type
from tarsy.resources.meta import AnyResource, condition
from tarsy.resources.v1alpha1 import Chain, LLMProvider, MCPServer
from tarsy.resources.v1alpha1.common import ConditionType


class ConfiguredView(View):
    """A configuration object."""

    namespace: str
    name: str
    uid: str
    ready: bool | None = Field(description="Value of its Ready condition. Null until the first check.")
    conditions: tuple[ConditionView, ...]


class StageOfChain(View):
    """A stage of a chain."""

    name: str
    agents: tuple[str, ...]
    replicas: int


class ChainView(ConfiguredView):
    """A chain."""

    description: str | None
    alert_types: tuple[str, ...]
    stages: tuple[StageOfChain, ...]
    takes_questions: bool = Field(description="Whether its investigations accept questions.")
    takes_tools: bool = Field(description="Whether an alert may name MCP servers of its own.")

    @classmethod
    def of(cls, found: Chain) -> Self:
        """Converts a Chain."""
        spec = found.spec
        return cls(
            **configured_fields(found),
            description=spec.description,
            alert_types=spec.alert_types,
            stages=tuple(
                StageOfChain(
                    name=stage.name, agents=tuple(agent.name for agent in stage.agents), replicas=stage.replicas
                )
                for stage in spec.stages
            ),
            takes_questions=spec.chat is None or spec.chat.enabled,
            takes_tools=spec.alert_tools == "Allowed",
        )


class McpServerView(ConfiguredView):
    """An MCP server."""

    description: str | None
    transport: str
    tool_policy: str
    available: bool | None = Field(description="Whether it responds. Null until the first check.")
    tool_count: int | None
    tools: tuple[str, ...] = Field(description="Names of its first tools; toolCount counts all of them.")
    last_error: str | None

    @classmethod
    def of(cls, found: MCPServer) -> Self:
        """Converts an MCPServer."""
        spec, status = found.spec, found.status
        return cls(
            **configured_fields(found),
            description=spec.description,
            transport=spec.transport.type,
            tool_policy=spec.tool_policy or "ReadOnly",
            available=_holds(found, ConditionType.AVAILABLE),
            tool_count=status.tool_count,
            tools=status.tools,
            last_error=status.last_error,
        )


class LlmProviderView(ConfiguredView):
    """An LLM provider and its model."""

    type: str
    model: str
    context_window: int | None
    native_tools: tuple[str, ...] = Field(description="Native tools that are enabled by default.")
    has_native_tools: bool = Field(description="Whether its provider type supports native tools.")
    has_rates: bool = Field(description="Whether the object contains rates, which cost accounting needs.")

    @classmethod
    def of(cls, found: LLMProvider) -> Self:
        """Converts an LLMProvider."""
        spec = found.spec
        return cls(
            **configured_fields(found),
            type=spec.type,
            model=spec.model,
            context_window=spec.context_window,
            native_tools=tuple(name for name, on in spec.native_tools.to_dict().items() if on)
            if spec.native_tools
            else (),
            has_native_tools=provider_type(spec.type).has_native_tools,
            has_rates=spec.rates is not None,
        )


class ChainList(View):
    """Chains, sorted by namespace and name."""

    items: tuple[ChainView, ...]
    next: str | None = Field(alias="continue", description=NEXT_PAGE)


class McpServerList(View):
    """MCP servers, sorted by namespace and name."""

    items: tuple[McpServerView, ...]
    next: str | None = Field(alias="continue", description=NEXT_PAGE)


class LlmProviderList(View):
    """LLM providers, sorted by namespace and name."""

    items: tuple[LlmProviderView, ...]
    next: str | None = Field(alias="continue", description=NEXT_PAGE)


class ChainRef(View):
    """A reference to a chain that handles an alert type."""

    namespace: str
    name: str
    ready: bool | None


class AlertTypeView(View):
    """An alert type and the chains that handle it."""

    alert_type: str
    chains: tuple[ChainRef, ...] = Field(
        description="Chains that handle it. The chain of the alert's own namespace precedes that of the library."
    )


class AlertTypeList(View):
    """Alert types, sorted by name."""

    items: tuple[AlertTypeView, ...]
    next: str | None = Field(alias="continue", description=NEXT_PAGE)
    default_alert_type: str | None = Field(
        default=None, description="Type of alerts of the namespace that are submitted without one. Null: they need one."
    )
    default_chain: ChainRef | None = Field(
        default=None,
        description="Chain that takes alerts of the namespace whose type no chain handles, when they are five minutes "
        "old. Null: they wait.",
    )


class WarningView(View):
    """A condition that prevents the normal use of an object."""

    kind: str
    namespace: str
    name: str
    type: str = Field(description="Type of the condition that is False.")
    reason: str
    message: str


class WarningList(View):
    """Conditions that are False, for the kinds that the caller may list."""

    items: tuple[WarningView, ...]
    kinds: tuple[str, ...] = Field(description="Kinds that were checked.")
    next: str | None = Field(alias="continue", description=NEXT_PAGE)


def ready(found: AnyResource) -> bool | None:
    """Returns the value of the Ready condition; None until the first check."""
    return _holds(found, ConditionType.READY)


def _holds(found: AnyResource, type_: ConditionType) -> bool | None:
    known = condition(found.status.conditions, type_)
    return None if known is None or known.status == "Unknown" else known.status == "True"


def configured_fields(found: AnyResource) -> dict[str, Any]:
    """Returns the fields of `ConfiguredView`."""
    return {
        "namespace": found.metadata.namespace,
        "name": found.metadata.name,
        "uid": found.metadata.uid,
        "ready": ready(found),
        "conditions": tuple(ConditionView.of(one) for one in found.status.conditions),
    }
