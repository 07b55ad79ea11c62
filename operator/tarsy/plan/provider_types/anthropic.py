"""Describes type `anthropic`: Claude."""

from typing import Final

from tarsy.plan import claude
from tarsy.plan.model import Backend
from tarsy.plan.provider_types.record import ProviderType

ANTHROPIC_URL: Final = "https://api.anthropic.com"


def _claude_measures(model: str) -> tuple[str, ...]:
    return ("effort",) if claude.thinks_adaptively(model) else ("budget", "effort")


ANTHROPIC: Final = ProviderType(
    name="anthropic",
    models="Claude",
    base_url=ANTHROPIC_URL,
    backends=frozenset({Backend.LANGCHAIN}),
    default_client=Backend.LANGCHAIN,
    thinking_measures=_claude_measures,
    cache_marks=True,
    list_prices={
        "claude-haiku-4-5": (1, 0.1, 5),
        "claude-opus-4": (15, 1.5, 75),
        "claude-opus-4-0": (15, 1.5, 75),
        "claude-opus-4-1": (15, 1.5, 75),
        "claude-opus-4-5": (5, 0.5, 25),
        "claude-opus-4-6": (5, 0.5, 25),
        "claude-opus-4-7": (5, 0.5, 25),
        "claude-opus-4-8": (5, 0.5, 25),
        "claude-opus-5": (5, 0.5, 25),
        "claude-opus-5-5": (4, 0.2, 20),
        "claude-sonnet-4": (3, 0.3, 15),
        "claude-sonnet-4-0": (3, 0.3, 15),
        "claude-sonnet-4-6": (3, 0.3, 15),
        "claude-sonnet-5": (2, 0.2, 10),
        "claude-sonnet-5-5": (2, 0.1, 10),
        "claude-haiku-5-5": (0.1, 0.01, 0.5, 100_000, 0.5, 0.05, 2.5),
        "claude-sonnet-4-5": (3, 0.3, 15, 200_000, 6, 0.6, 22.5),
    },
)
