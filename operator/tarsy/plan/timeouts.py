"""Resolves the time limits of a provider's calls: its own, else the chain's, else built-in ones.

Decision: a server of one's own (a `baseURL` is set) is given more time than a maker's API. It may read a long prompt on
a CPU for minutes before it sends a byte; a maker's API that is silent for two minutes is broken.
"""

from __future__ import annotations

from collections.abc import Collection

from tarsy.plan.model import AgentLimits, CallTimeouts
from tarsy.resources.v1alpha1.llm_provider import LLMProvider, Timeouts

MAKERS = CallTimeouts(silence=120, first_token=240, stall=60, call=300, iteration=360)
OWN = CallTimeouts(silence=300, first_token=600, stall=120, call=900, iteration=960)
_TOOLS = 60.0
"""Seconds of an iteration beyond its model call, where nothing else is set."""


def call_timeouts(provider: LLMProvider, limits: AgentLimits, chosen: Collection[str] = ()) -> CallTimeouts:
    """The time limits of a provider's calls.

    Args:
        provider: its `timeouts` count first.
        limits: of the run.
        chosen: the fields of `limits` that chain or defaults set; the others are not looked at.
    """
    own = provider.spec.timeouts or Timeouts()
    built_in = MAKERS if provider.spec.base_url is None else OWN

    def found(said: int | None, field: str, usual: float) -> float:
        """Returns one time limit in seconds.

        Args:
            said: seconds that the provider sets; None: it sets none.
            field: field of `limits` to use if the chain or the defaults set it.
            usual: built-in seconds, if nothing is set.
        """
        if said is not None:
            return said
        return float(getattr(limits, field)) if field in chosen else usual

    call = found(own.call_seconds, "model_call_seconds", built_in.call)
    longest = max(call + _TOOLS, limits.iteration_seconds)
    return CallTimeouts(
        silence=own.silence_seconds or built_in.silence,
        first_token=found(own.first_token_seconds, "first_token_seconds", built_in.first_token),
        stall=found(own.stall_seconds, "stall_seconds", built_in.stall),
        call=call,
        iteration=limits.iteration_seconds if "iteration_seconds" in chosen else longest,
    )
