"""What holds when no object says otherwise, and which strategies fit which models (reference sections 1.5, 1.7, 2).

Decision: the strategy decides the family of the backend and a provider's type says which families it has, so what
does not fit is refused when the plan is made, not when it runs. Which client of the family it is, is the provider's.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tarsy.plan.model import Backend, Strategy, SuccessPolicy
from tarsy.plan.provider_types import provider_type

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


def runs_on(strategy: Strategy, kind: str) -> bool:
    """Whether providers of a type have the backend of a strategy."""
    return BACKENDS[strategy] in provider_type(kind).backends


def client(strategy: Strategy, kind: str, chosen: Backend | None) -> Backend:
    """The backend of a strategy on a provider that chose `chosen` (None: its type's)."""
    family = BACKENDS[strategy]
    return (chosen or provider_type(kind).default_client) if family is Backend.LANGCHAIN else family


def usual_client(kind: str, chosen: Backend | None) -> Backend:
    """The backend of a provider when no strategy asks for one: its own choice, else the one its type is best with."""
    if chosen is None and provider_type(kind).has_native_tools:
        return Backend.GOOGLE_NATIVE
    return client(STRATEGY, kind, chosen)


def stand_in(own: Strategy, wanted: Strategy | None) -> Strategy:
    """The strategy of an agent on a fallback: `wanted` (None: its own), or for an agent without tools, which keeps
    its work, the one of its kind on the backend of `wanted`."""
    if wanted is None or own is Strategy.SINGLE_CALL:
        return own
    if own in SYNTHESIS_STRATEGIES:
        native = BACKENDS[wanted] is Backend.GOOGLE_NATIVE
        return Strategy.SYNTHESIS_NATIVE_THINKING if native else Strategy.SYNTHESIS
    return wanted


def strategies_of(kind: str, own: Strategy) -> tuple[Strategy, ...]:
    """The strategies that do the same kind of work as `own` on providers of a type."""
    kinds = (SYNTHESIS_STRATEGIES, frozenset({Strategy.SINGLE_CALL}), frozenset(Strategy) - STRATEGIES_WITHOUT_TOOLS)
    same = next(kind for kind in kinds if own in kind)
    return tuple(strategy for strategy in Strategy if strategy in same and runs_on(strategy, kind))
