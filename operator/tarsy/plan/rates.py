"""What well-known models cost where their makers serve them, for providers that say no rates of their own.

Decision: only an exact name, dated or `-latest` or not, at the maker's own address has rates here. Whoever stands
behind another address sets prices of their own, and a guess by a name's beginning would price tomorrow's model as
today's: unknown stays unknown. The plan carries the table's date, so a record says which prices its cost rests on.
List prices for standard processing; writing to a provider's cache is not counted.
"""

import re
from typing import Final

from tarsy.plan.model import LongRates, PlannedRates

AS_OF: Final = "2026-11-04"
SOURCE: Final = "the makers' price lists as collected by genai-prices 0.2.3 (MIT)"

_DATED = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")

_FLAT: Final[dict[str, dict[str, tuple[float, float, float]]]] = {
    # US dollars for a million tokens: input, cached input, output.
    "openai": {
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
    },
    "google": {
        "gemini-2.5-flash": (0.3, 0.03, 2.5),
        "gemini-2.5-flash-lite": (0.1, 0.01, 0.4),
        "gemini-3-flash-preview": (0.5, 0.05, 3),
        "gemini-3.1-flash-lite": (0.25, 0.025, 1.5),
        "gemini-3.5-flash": (1.5, 0.15, 9),
        "gemini-3.5-flash-lite": (0.3, 0.03, 2.5),
    },
    "anthropic": {
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
    },
    "xai": {
        "grok-3": (3, 0.75, 15),
        "grok-3-mini": (0.3, 0.075, 0.5),
        "grok-4-0709": (3, 0.75, 15),
        "grok-4-1-fast-non-reasoning": (0.2, 0.05, 0.5),
        "grok-4-1-fast-reasoning": (0.2, 0.05, 0.5),
        "grok-code-fast-1": (0.2, 0.02, 1.5),
    },
}
_LONG: Final[dict[str, dict[str, tuple[float, float, float, int, float, float, float]]]] = {
    # The same, then the input tokens above which a whole call costs the three after them.
    "openai": {
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
    "google": {
        "gemini-2.5-pro": (1.25, 0.125, 10, 200_000, 2.5, 0.25, 15),
        "gemini-3-pro-preview": (2, 0.2, 12, 200_000, 4, 0.4, 18),
        "gemini-3.1-pro-preview": (2, 0.2, 12, 200_000, 4, 0.4, 18),
    },
    "anthropic": {
        "claude-haiku-5-5": (0.1, 0.01, 0.5, 100_000, 0.5, 0.05, 2.5),
        "claude-sonnet-4-5": (3, 0.3, 15, 200_000, 6, 0.6, 22.5),
    },
    "xai": {
        "grok-4.3": (1.25, 0.2, 2.5, 199_999, 2.5, 0.4, 5),
        "grok-4.5": (2, 0.3, 6, 199_999, 4, 0.6, 12),
        "grok-4.6": (2, 0.5, 6, 199_999, 4, 1, 12),
        "grok-4.7": (2, 0.5, 6, 199_999, 4, 1, 12),
    },
}


def bundled(kind: str, model: str, base_url: str | None) -> PlannedRates | None:
    """The rates of a provider that says none; None when they are not known.

    Args:
        kind: `spec.type`.
        model: `spec.model`.
        base_url: `spec.baseURL`; prices at another address than the maker's are not known.
    """
    if base_url is not None:
        return None
    name = _DATED.sub("", model)
    if flat := _FLAT.get(kind, {}).get(name):
        read, cached, written = flat
        return PlannedRates(input=read, cached=cached, output=written, as_of=AS_OF)
    if tiers := _LONG.get(kind, {}).get(name):
        read, cached, written, above, *more = tiers
        long = LongRates(above=above, input=more[0], cached=more[1], output=more[2])
        return PlannedRates(input=read, cached=cached, output=written, long=long, as_of=AS_OF)
    return None
