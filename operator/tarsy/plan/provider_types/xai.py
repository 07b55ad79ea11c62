"""Describes type `xai`: Grok."""

from typing import Final

from tarsy.plan.model import Backend
from tarsy.plan.provider_types.record import ProviderType, effort_only

XAI_URL: Final = "https://api.x.ai/v1"

XAI: Final = ProviderType(
    name="xai",
    models="Grok",
    base_url=XAI_URL,
    backends=frozenset({Backend.LANGCHAIN}),
    default_client=Backend.LANGCHAIN,
    thinking_measures=effort_only,
    stop_sequences=False,
    list_prices={
        "grok-3": (3, 0.75, 15),
        "grok-3-mini": (0.3, 0.075, 0.5),
        "grok-4-0709": (3, 0.75, 15),
        "grok-4-1-fast-non-reasoning": (0.2, 0.05, 0.5),
        "grok-4-1-fast-reasoning": (0.2, 0.05, 0.5),
        "grok-code-fast-1": (0.2, 0.02, 1.5),
        "grok-4.3": (1.25, 0.2, 2.5, 199_999, 2.5, 0.4, 5),
        "grok-4.5": (2, 0.3, 6, 199_999, 4, 0.6, 12),
        "grok-4.6": (2, 0.5, 6, 199_999, 4, 1, 12),
        "grok-4.7": (2, 0.5, 6, 199_999, 4, 1, 12),
    },
)
