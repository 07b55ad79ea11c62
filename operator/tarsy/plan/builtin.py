"""What holds when no object says otherwise, and which strategies fit which models (reference sections 1.5, 1.7, 2).

Decision: the strategy decides the family of the backend and a provider's type says which families it has, so what
does not fit is refused when the plan is made, not when it runs. Which client of the family it is, is the provider's.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tarsy.plan.model import Backend, Strategy, SuccessPolicy

# By family: `openai-native` is of the family of `langchain`.
BACKENDS: Final[Mapping[Strategy, Backend]] = MappingProxyType(
    {
        Strategy.REACT: Backend.LANGCHAIN,
        Strategy.LANGCHAIN: Backend.LANGCHAIN,
        Strategy.SYNTHESIS: Backend.LANGCHAIN,
        Strategy.SINGLE_CALL: Backend.LANGCHAIN,
        Strategy.NATIVE_THINKING: Backend.GOOGLE_NATIVE,
        Strategy.SYNTHESIS_NATIVE_THINKING: Backend.GOOGLE_NATIVE,
    }
)
PROVIDER_BACKENDS: Final[Mapping[str, frozenset[Backend]]] = MappingProxyType(
    {
        "openai": frozenset({Backend.LANGCHAIN}),
        "google": frozenset({Backend.GOOGLE_NATIVE, Backend.LANGCHAIN}),
        "anthropic": frozenset({Backend.LANGCHAIN}),
        "xai": frozenset({Backend.LANGCHAIN}),
        "vertexai": frozenset({Backend.GOOGLE_NATIVE, Backend.LANGCHAIN}),
    }
)
# The client for strategies of the langchain family that a type has when its provider names none.
CLIENTS: Final[Mapping[str, Backend]] = MappingProxyType(
    {"openai": Backend.OPENAI_NATIVE, "google": Backend.GOOGLE_NATIVE, "vertexai": Backend.GOOGLE_NATIVE}
)
# Native tools, in the order of a plan, with their fields in the objects. They need the google-native backend.
NATIVE_TOOLS: Final[Mapping[str, str]] = MappingProxyType(
    {"google_search": "googleSearch", "code_execution": "codeExecution", "url_context": "urlContext"}
)

SYNTHESIS_STRATEGIES: Final = frozenset({Strategy.SYNTHESIS, Strategy.SYNTHESIS_NATIVE_THINKING})
STRATEGIES_WITHOUT_TOOLS: Final = SYNTHESIS_STRATEGIES | {Strategy.SINGLE_CALL}

STRATEGY: Final = Strategy.LANGCHAIN
MAX_ITERATIONS: Final = 20
SUCCESS_POLICY: Final = SuccessPolicy.ANY

SYNTHESIS_AGENT: Final = "synthesis-agent"
EXECUTIVE_SUMMARY_AGENT: Final = "executive-summary"
CHAT_AGENT: Final = "chat-agent"

# The persona of reference section 1.11, "Synthesis persona", stands in the template; this is what it leaves open.
SYNTHESIS_INSTRUCTIONS: Final = """\
- Where agents agree for different reasons, give both reasons.
- Say what would make you surer: the one observation that is missing.
"""


def runs_on(strategy: Strategy, provider_type: str) -> bool:
    """Whether providers of a type have the backend of a strategy."""
    return BACKENDS[strategy] in PROVIDER_BACKENDS[provider_type]


def client(strategy: Strategy, provider_type: str, chosen: Backend | None) -> Backend:
    """The backend of a strategy on a provider that chose `chosen` (None: its type's)."""
    family = BACKENDS[strategy]
    return (chosen or CLIENTS.get(provider_type, family)) if family is Backend.LANGCHAIN else family


def usual_client(provider_type: str, chosen: Backend | None) -> Backend:
    """The backend of a provider when no strategy asks for one: its own choice, else the one its type is best with."""
    native = Backend.GOOGLE_NATIVE
    if chosen is None and native in PROVIDER_BACKENDS[provider_type]:
        return native
    return client(STRATEGY, provider_type, chosen)


def stand_in(own: Strategy, wanted: Strategy | None) -> Strategy:
    """The strategy of an agent on a fallback: `wanted` (None: its own), or for an agent without tools, which keeps
    its work, the one of its kind on the backend of `wanted`."""
    if wanted is None or own is Strategy.SINGLE_CALL:
        return own
    if own in SYNTHESIS_STRATEGIES:
        native = BACKENDS[wanted] is Backend.GOOGLE_NATIVE
        return Strategy.SYNTHESIS_NATIVE_THINKING if native else Strategy.SYNTHESIS
    return wanted


def strategies_of(provider_type: str, own: Strategy) -> tuple[Strategy, ...]:
    """The strategies that do the same kind of work as `own` on providers of a type."""
    kinds = (SYNTHESIS_STRATEGIES, frozenset({Strategy.SINGLE_CALL}), frozenset(Strategy) - STRATEGIES_WITHOUT_TOOLS)
    same = next(kind for kind in kinds if own in kind)
    return tuple(strategy for strategy in Strategy if strategy in same and runs_on(strategy, provider_type))
