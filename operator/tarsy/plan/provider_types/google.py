"""Describes type `google`: Gemini by its own API."""

from typing import Final

from tarsy.plan import gemini
from tarsy.plan.model import Backend
from tarsy.plan.provider_types.record import ProviderType

GOOGLE_URL: Final = "https://generativelanguage.googleapis.com"


def gemini_measures(model: str) -> tuple[str, ...]:
    """Returns the thinking measures of a Gemini model.

    Newer models still take a budget, and an alias may stand for an older one.
    """
    if not gemini.thinks(model):
        return ()
    return ("level", "budget") if gemini.thinks_by_level(model) else ("budget",)


GOOGLE: Final = ProviderType(
    name="google",
    models="Gemini",
    base_url=GOOGLE_URL,
    backends=frozenset({Backend.GOOGLE_NATIVE, Backend.LANGCHAIN}),
    default_client=Backend.GOOGLE_NATIVE,
    thinking_measures=gemini_measures,
    combines_tools=gemini.signs_calls,
    list_prices={
        "gemini-2.5-flash": (0.3, 0.03, 2.5),
        "gemini-2.5-flash-lite": (0.1, 0.01, 0.4),
        "gemini-3-flash-preview": (0.5, 0.05, 3),
        "gemini-3.1-flash-lite": (0.25, 0.025, 1.5),
        "gemini-3.5-flash": (1.5, 0.15, 9),
        "gemini-3.5-flash-lite": (0.3, 0.03, 2.5),
        "gemini-2.5-pro": (1.25, 0.125, 10, 200_000, 2.5, 0.25, 15),
        "gemini-3-pro-preview": (2, 0.2, 12, 200_000, 4, 0.4, 18),
        "gemini-3.1-pro-preview": (2, 0.2, 12, 200_000, 4, 0.4, 18),
    },
)
