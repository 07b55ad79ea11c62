"""Describes type `openai`: OpenAI, and every server that speaks its chat completions."""

from typing import Final

from tarsy.plan.model import Backend
from tarsy.plan.provider_types.record import ProviderType, effort_only

OPENAI_URL: Final = "https://api.openai.com/v1"

OPENAI: Final = ProviderType(
    name="openai",
    models="OpenAI and every server that speaks its chat completions, with spec.baseURL",
    base_url=OPENAI_URL,
    backends=frozenset({Backend.LANGCHAIN}),
    default_client=Backend.OPENAI_NATIVE,
    thinking_measures=effort_only,
    list_prices={
        "gpt-4.1": (2, 0.5, 8),
        "gpt-4.1-mini": (0.4, 0.1, 1.6),
        "gpt-4.1-nano": (0.1, 0.025, 0.4),
        "gpt-4o": (2.5, 1.25, 10),
        "gpt-4o-mini": (0.15, 0.075, 0.6),
        "gpt-5": (1.25, 0.125, 10),
        "gpt-5-mini": (0.25, 0.025, 2),
        "gpt-5-nano": (0.05, 0.005, 0.4),
        "gpt-5.1": (1.25, 0.125, 10),
        "gpt-5.2": (1.75, 0.175, 14),
        "gpt-5.3": (1.75, 0.175, 14),
        "gpt-5.4-mini": (0.75, 0.075, 4.5),
        "gpt-5.4-nano": (0.2, 0.02, 1.25),
        "o3": (2, 0.5, 8),
        "o3-mini": (1.1, 0.55, 4.4),
        "o4-mini": (1.1, 0.275, 4.4),
        "gpt-5.4": (2.5, 0.25, 15, 272_000, 5, 0.5, 22.5),
        "gpt-5.5": (5, 0.5, 30, 272_000, 10, 1, 45),
        "gpt-5.6-luna": (0.2, 0.02, 1.2, 272_000, 0.4, 0.04, 1.8),
        "gpt-5.6-sol": (4, 0.4, 20, 272_000, 8, 0.8, 30),
        "gpt-5.6-terra": (2, 0.2, 12, 272_000, 4, 0.4, 18),
        "gpt-6-astra": (10, 1, 50, 272_000, 20, 2, 75),
        "gpt-6-luna": (0.1, 0.01, 0.5, 272_000, 0.2, 0.02, 0.75),
        "gpt-6-sol": (2, 0.2, 10, 272_000, 4, 0.4, 15),
        "gpt-6.1-sol": (2, 0.1, 10, 272_000, 4, 0.2, 15),
        "gpt-6.1-terra": (1, 0.05, 5, 272_000, 2, 0.1, 7.5),
    },
)
