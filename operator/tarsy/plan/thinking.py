"""In which measure a model can be told how much to think: tokens (`budget`), a `level` or an `effort`.

Decision: a measure that does not fit is an error of the plan, not left out, since nobody would notice. What numbers
and words a model takes is left to its server, whose answer is told.
"""

from __future__ import annotations

from tarsy.plan import claude, gemini


def measures(provider_type: str, model: str) -> tuple[str, ...]:
    """The fields of `spec.thinking` that fit a model of a provider of this type."""
    match provider_type:
        case "google" | "vertexai":
            if not gemini.thinks(model):
                return ()
            # Newer ones still take a budget, and an alias may stand for an older one.
            return ("level", "budget") if gemini.thinks_by_level(model) else ("budget",)
        case "anthropic":
            return ("effort",) if claude.thinks_adaptively(model) else ("budget", "effort")
        case _:
            return ("effort",)
