"""What holds when no object says otherwise, and which strategies fit which models (reference sections 1.5, 1.7, 2).

Decision: the strategy decides the backend and a provider's type says which backends it has, so what does not fit is
refused when the plan is made, not when it runs.
"""

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from tarsy.plan.model import Strategy, SuccessPolicy


class Backend(StrEnum):
    """How a model is spoken to."""

    LANGCHAIN = "langchain"
    GOOGLE_NATIVE = "google-native"


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
        "vertexai": frozenset({Backend.LANGCHAIN}),
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

# Persona: reference section 1.11, "Synthesis persona".
SYNTHESIS_INSTRUCTIONS: Final = """\
You are the incident commander. Several agents looked into the same alert, each by itself; you have the full history
of each of them. Make one conclusion out of theirs.

- Weigh evidence, not opinions: what a tool returned counts more than what an agent supposed.
- Where agents agree for different reasons, give both reasons. Where they contradict each other, say which evidence
  decides, or that none does.
- Leave out an agent that only restates the alert.
- Add nothing that no agent found.
- End with how sure you are, HIGH, MEDIUM or LOW, and what would make you surer.
"""


def runs_on(strategy: Strategy, provider_type: str) -> bool:
    """Whether providers of a type have the backend of a strategy."""
    return BACKENDS[strategy] in PROVIDER_BACKENDS[provider_type]


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
