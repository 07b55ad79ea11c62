"""Changes the provider of an agent to the next one of its fallback list when its own fails.

The place in the list is part of the loop state and written with the boundary that records the failure, so the change
is sticky for the execution and an attempt that resumes is on the same provider. The conversation is carried over;
what a provider needs back of its own answers is ignored by all others. An answer that repeats itself is no failure of
a provider and changes nothing.
"""

from dataclasses import dataclass

from tarsy.engine.conversation.state import Conversation, serving_provider
from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.plan.builtin import STRATEGIES_WITHOUT_TOOLS
from tarsy.plan.model import AgentPlan
from tarsy.record.run import LoopState
from tarsy.record.text import clean

_AT_ONCE = frozenset(
    {
        ModelErrorCode.CREDENTIALS,
        ModelErrorCode.CREDENTIALS_MISSING,
        ModelErrorCode.NOT_FOUND,
        ModelErrorCode.CONTEXT_TOO_LONG,
        ModelErrorCode.RATE_LIMIT,
        ModelErrorCode.SERVER,
        ModelErrorCode.CONNECTION,
        ModelErrorCode.EMPTY,
    }
)
"""Errors that a retry does not resolve, or that remain after the retries."""

_OTHERWISE = 2
"""Failures in a row after which any other error changes the provider."""

_TOLD = 300
"""Characters kept of the last message of a provider."""


@dataclass(frozen=True, slots=True)
class ProviderSwitch:
    """A change of provider: the agent and its loop state afterwards, and the text and metadata of its event."""

    agent: AgentPlan
    loop: LoopState
    text: str
    metadata: dict[str, object]


def fallback_patience(conversation: Conversation, error: ModelError) -> int | None:
    """Failures in a row after which the provider is changed; None when there is no other."""
    if _next(conversation) is None:
        return None
    single = conversation.agent.strategy in STRATEGIES_WITHOUT_TOOLS
    if single or (error.code in _AT_ONCE and not error.started):
        return 1
    return min(_OTHERWISE, conversation.limits.consecutive_timeouts)


def is_last(conversation: Conversation) -> bool:
    """Whether there is no other provider after the one in use."""
    return _next(conversation) is None


def change_provider(
    conversation: Conversation, error: ModelError, loop: LoopState, *, at_once: bool = False
) -> ProviderSwitch | None:
    """Returns the change that a failure leads to; None when the agent stays, or has no other provider.

    Args:
        conversation: as on record.
        error: the failure.
        loop: the loop's state with the failure counted.
        at_once: no second failure is waited for.
    """
    needed, place = fallback_patience(conversation, error), _next(conversation)
    if needed is None or place is None or (loop.consecutive_timeouts < needed and not at_once):
        return None
    given_up, said = conversation.agent, clean(error.message)
    after = loop.model_copy(
        update={
            "fallback": place,
            "tried": (*loop.tried, f"{given_up.provider.ref.name} ({error.code.value}): {said[:_TOLD]}"),
            "consecutive_timeouts": 0,
            "slow_iterations": 0,
            "empty_answers": 0,
            "repeated_answers": 0,
            "refusals": 0,
            # What the one provider counted says nothing of the other.
            "tokens_per_byte": None,
            "window": None,
        }
    )
    agent = serving_provider(conversation.plan, after)
    dropped = [tool for tool in given_up.native_tools if tool not in agent.native_tools]
    skipped = conversation.plan.fallback_skipped
    name = agent.provider.ref.name
    parts = [
        f"Provider {given_up.provider.ref.name} failed: {said.rstrip('.')}. "
        f"The agent continues with provider {name}, model {agent.provider.model}, strategy {agent.strategy}."
    ]
    if dropped:
        parts.append(f"Provider {name} does not have the native tools {', '.join(dropped)}.")
    if skipped:
        parts.append(f"Fallback entries skipped, because they cannot run this agent: {', '.join(skipped)}.")
    metadata: dict[str, object] = {
        "reason": error.code.value,
        "failures": loop.consecutive_timeouts,
        "from": given_up.provider.ref.name,
        "from_model": given_up.provider.model,
        "from_strategy": given_up.strategy.value,
        "to": name,
        "to_model": agent.provider.model,
        "to_strategy": agent.strategy.value,
        "skipped": list(skipped),
        "native_tools_dropped": dropped,
    }
    return ProviderSwitch(agent, after, " ".join(parts), metadata)


def exhausted(conversation: Conversation, error: ModelError) -> str:
    """Explains why an agent has no answer: the error of its provider, and of each one tried before."""
    named = f"provider {conversation.agent.provider.ref.name}"
    told = error.message if error.message.startswith(named) else f"{named}: {error.message}"
    tried = conversation.loop.tried
    return f"{told} Providers tried before: {'; '.join(tried)}" if tried else told


def _next(conversation: Conversation) -> int | None:
    """The place of the next entry, from 1, whose provider is another than the one in use."""
    entries, used = conversation.plan.fallback, conversation.agent.provider.ref
    for place in range(conversation.loop.fallback + 1, len(entries) + 1):
        ref = entries[place - 1].provider.ref
        if (ref.namespace, ref.name) != (used.namespace, used.name):
            return place
    return None
