"""Defines the built-in defaults, and which strategies run on which types of providers.

Decision: the strategy decides the family of the backend, and a provider's type declares which families it has, so a
mismatch is an error of the plan, not of the run. The provider chooses the client within the family.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Final

from tarsy.plan.model import Backend, Strategy, SuccessPolicy
from tarsy.plan.provider_types import provider_type


class StrategyWork(Enum):
    """The kind of work that agents of a strategy do."""

    TOOL_LOOP = "tool loop"
    SYNTHESIS = "synthesis"
    SINGLE_CALL = "single call"


@dataclass(frozen=True, slots=True)
class StrategyTraits:
    """The properties of a strategy that a plan depends on.

    `backend` is the family: `openai-native` is of the family of `langchain`.
    """

    backend: Backend
    work: StrategyWork


STRATEGY_TRAITS: Final[Mapping[Strategy, StrategyTraits]] = MappingProxyType(
    {
        Strategy.REACT: StrategyTraits(Backend.LANGCHAIN, StrategyWork.TOOL_LOOP),
        Strategy.LANGCHAIN: StrategyTraits(Backend.LANGCHAIN, StrategyWork.TOOL_LOOP),
        Strategy.NATIVE_THINKING: StrategyTraits(Backend.GOOGLE_NATIVE, StrategyWork.TOOL_LOOP),
        Strategy.SYNTHESIS: StrategyTraits(Backend.LANGCHAIN, StrategyWork.SYNTHESIS),
        Strategy.SYNTHESIS_NATIVE_THINKING: StrategyTraits(Backend.GOOGLE_NATIVE, StrategyWork.SYNTHESIS),
        Strategy.SINGLE_CALL: StrategyTraits(Backend.LANGCHAIN, StrategyWork.SINGLE_CALL),
    }
)
BACKENDS: Final[Mapping[Strategy, Backend]] = MappingProxyType(
    {strategy: traits.backend for strategy, traits in STRATEGY_TRAITS.items()}
)
# Native tools, in the order of a plan, with their fields in the objects. They need the google-native backend.
NATIVE_TOOLS: Final[Mapping[str, str]] = MappingProxyType(
    {"google_search": "googleSearch", "code_execution": "codeExecution", "url_context": "urlContext"}
)

SYNTHESIS_STRATEGIES: Final = frozenset(s for s, t in STRATEGY_TRAITS.items() if t.work is StrategyWork.SYNTHESIS)
STRATEGIES_WITHOUT_TOOLS: Final = frozenset(
    s for s, t in STRATEGY_TRAITS.items() if t.work is not StrategyWork.TOOL_LOOP
)

STRATEGY: Final = Strategy.LANGCHAIN
MAX_ITERATIONS: Final = 20
SUCCESS_POLICY: Final = SuccessPolicy.ANY

SYNTHESIS_AGENT: Final = "synthesis-agent"
EXECUTIVE_SUMMARY_AGENT: Final = "executive-summary"
CHAT_AGENT: Final = "chat-agent"

# The persona stands in the template; these instructions complete it.
SYNTHESIS_INSTRUCTIONS: Final = """\
- Where agents agree for different reasons, give both reasons.
- Say what would make you surer: the one observation that is missing.
"""


def runs_on(strategy: Strategy, kind: str) -> bool:
    """Whether providers of a type have the backend of a strategy."""
    return BACKENDS[strategy] in provider_type(kind).backends


def client(strategy: Strategy, kind: str, chosen: Backend | None) -> Backend:
    """Returns the backend of a strategy on a provider.

    Args:
        strategy: the strategy.
        kind: the provider's type.
        chosen: the provider's own choice; None: its type's.
    """
    family = BACKENDS[strategy]
    return (chosen or provider_type(kind).default_client) if family is Backend.LANGCHAIN else family


def usual_client(kind: str, chosen: Backend | None) -> Backend:
    """Returns the backend of a provider without a strategy: its own choice, else the native one of its type."""
    if chosen is None and provider_type(kind).has_native_tools:
        return Backend.GOOGLE_NATIVE
    return client(STRATEGY, kind, chosen)


def stand_in(own: Strategy, wanted: Strategy | None) -> Strategy:
    """The strategy of an agent on a fallback: `wanted` (None: its own), or for an agent without tools, which keeps
    its work, the one of its kind on the backend of `wanted`."""
    work = STRATEGY_TRAITS[own].work
    if wanted is None or work is StrategyWork.SINGLE_CALL:
        return own
    if work is StrategyWork.SYNTHESIS:
        return next(s for s, t in STRATEGY_TRAITS.items() if t == StrategyTraits(BACKENDS[wanted], work))
    return wanted


def strategies_of(kind: str, own: Strategy) -> tuple[Strategy, ...]:
    """The strategies that do the same kind of work as `own` on providers of a type."""
    work = STRATEGY_TRAITS[own].work
    return tuple(s for s in Strategy if STRATEGY_TRAITS[s].work is work and runs_on(s, kind))


def has_native_tools(strategy: Strategy) -> bool:
    """Whether the backend of a strategy offers tools of the provider's own, such as a web search."""
    return BACKENDS[strategy] is Backend.GOOGLE_NATIVE
