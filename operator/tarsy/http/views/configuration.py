"""What there is to investigate with: chains, tool servers and models, as whoever submits an alert needs to know them.

Decision: each is in a few fields of its spec, chosen one by one. No address, no command, no header and no name of a
Secret is among them: those are for who may read the objects themselves.
"""

from typing import Any, Self

from pydantic import Field

from tarsy.http.route import View
from tarsy.http.views.common import ConditionView
from tarsy.plan import builtin
from tarsy.plan.model import Backend
from tarsy.resources.meta import AnyResource, condition
from tarsy.resources.v1alpha1 import Chain, LLMProvider, MCPServer
from tarsy.resources.v1alpha1.common import ConditionType


class ConfiguredView(View):
    """An object of the configuration."""

    namespace: str
    name: str
    uid: str
    ready: bool | None = Field(description="Whether it can be used; null: nobody has looked yet.")
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
    takes_questions: bool = Field(description="Whether its investigations may be asked about.")
    takes_tools: bool = Field(description="Whether an alert may bring tool servers of its own.")

    @classmethod
    def of(cls, found: Chain) -> Self:
        """A Chain."""
        spec = found.spec
        return cls(
            **_configured(found),
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
    """A server of tools."""

    description: str | None
    transport: str
    tool_policy: str
    available: bool | None = Field(description="Whether it answers; null: nobody has looked yet.")
    tool_count: int | None
    tools: tuple[str, ...] = Field(description="Names of its tools, the first ones.")
    last_error: str | None

    @classmethod
    def of(cls, found: MCPServer) -> Self:
        """An MCPServer."""
        spec, status = found.spec, found.status
        return cls(
            **_configured(found),
            description=spec.description,
            transport=spec.transport.type,
            tool_policy=spec.tool_policy or "ReadOnly",
            available=_holds(found, ConditionType.AVAILABLE),
            tool_count=status.tool_count,
            tools=status.tools,
            last_error=status.last_error,
        )


class LlmProviderView(ConfiguredView):
    """A model of a provider."""

    type: str
    model: str
    context_window: int | None
    native_tools: tuple[str, ...] = Field(description="Native tools that are on where nothing else says otherwise.")
    has_native_tools: bool = Field(description="Whether models of its type have native tools at all.")
    has_rates: bool = Field(description="Whether the object says what it costs.")

    @classmethod
    def of(cls, found: LLMProvider) -> Self:
        """An LLMProvider."""
        spec = found.spec
        return cls(
            **_configured(found),
            type=spec.type,
            model=spec.model,
            context_window=spec.context_window,
            native_tools=tuple(name for name, on in spec.native_tools.to_dict().items() if on)
            if spec.native_tools
            else (),
            has_native_tools=Backend.GOOGLE_NATIVE in builtin.PROVIDER_BACKENDS[spec.type],
            has_rates=spec.rates is not None,
        )


class ChainList(View):
    """Chains by namespace and name."""

    items: tuple[ChainView, ...]
    next: str | None = Field(alias="continue")


class McpServerList(View):
    """Tool servers by namespace and name."""

    items: tuple[McpServerView, ...]
    next: str | None = Field(alias="continue")


class LlmProviderList(View):
    """Models by namespace and name."""

    items: tuple[LlmProviderView, ...]
    next: str | None = Field(alias="continue")


class ChainRef(View):
    """A chain that claims an alert type."""

    namespace: str
    name: str
    ready: bool | None


class AlertTypeView(View):
    """An alert type, and who investigates it."""

    alert_type: str
    chains: tuple[ChainRef, ...] = Field(
        description="The chains that claim it. An alert takes that of its namespace, then that of the library."
    )


class AlertTypeList(View):
    """Alert types by name."""

    items: tuple[AlertTypeView, ...]
    next: str | None = Field(alias="continue")


class WarningView(View):
    """Something that keeps an object from being used as it should."""

    kind: str
    namespace: str
    name: str
    type: str = Field(description="The condition that does not hold.")
    reason: str
    message: str


class WarningList(View):
    """What is not as it should be, of the kinds that the caller may list."""

    items: tuple[WarningView, ...]
    kinds: tuple[str, ...] = Field(description="The kinds that were looked at.")
    next: str | None = Field(alias="continue")


def ready(found: AnyResource) -> bool | None:
    """Whether an object can be used; None: nobody has looked yet."""
    return _holds(found, ConditionType.READY)


def _holds(found: AnyResource, type_: ConditionType) -> bool | None:
    known = condition(found.status.conditions, type_)
    return None if known is None or known.status == "Unknown" else known.status == "True"


def _configured(found: AnyResource) -> dict[str, Any]:
    return {
        "namespace": found.metadata.namespace,
        "name": found.metadata.name,
        "uid": found.metadata.uid,
        "ready": ready(found),
        "conditions": tuple(ConditionView.of(one) for one in found.status.conditions),
    }
