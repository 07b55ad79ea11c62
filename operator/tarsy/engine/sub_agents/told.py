"""Renders the texts about sub-agents for the model of their parent.

A conclusion is the word of another model: it stands in a fence, and only calls of tools in it can be cited.
"""

from tarsy.engine.conversation.compaction import cut_text
from tarsy.engine.findings.conclusion import readable_text
from tarsy.engine.prompts.fence import fence, inline
from tarsy.engine.prompts.template import template
from tarsy.engine.sub_agents.verdict import verdict_sentence
from tarsy.plan.model import DelegationPlan
from tarsy.record.dispatch import Dispatch, HypothesisVerdict
from tarsy.record.messages import Message, Role
from tarsy.record.run import Failure, State

_CONCLUSION = 9_000, 3_000
"""Characters of a conclusion's beginning and end that a parent is sent; the whole is on record."""

_ENDED = {
    State.COMPLETED: "has concluded",
    State.FAILED: "failed",
    State.CANCELLED: "was cancelled",
    State.TIMED_OUT: "ran out of time",
}


def delegation_section(delegation: DelegationPlan) -> str:
    """Returns the section of the system message that explains how sub-agents are used."""
    agents = "\n".join(
        f"- {one.agent.agent} (at most {one.max_dispatches}): {inline(one.description, 1024)}"
        for one in delegation.agents
    )
    limits = {"agents": agents, "dispatches": delegation.dispatches, "concurrent": delegation.concurrent}
    return template("delegation").substitute(**limits)


def dispatched_text(identity: str) -> str:
    """Returns the answer to a call that dispatched an agent."""
    return (
        f"Dispatched as {identity}. Its conclusion comes as a message of its own; go on with other work, or end your "
        "turn with a short text to wait for it. Do not guess what it will find."
    )


def result_message(
    identity: str,
    dispatch: Dispatch,
    state: State,
    text: str,
    failure: Failure | None,
    verdict: HypothesisVerdict | None,
) -> Message:
    """Returns the message with which a parent receives the conclusion of a sub-agent, or why there is none.

    Args:
        identity: of the sub-agent.
        dispatch: that it works on.
        state: in which it ended.
        text: its final answer.
        failure: why it has none.
        verdict: on its hypothesis, if it has one.
    """
    lines = [f"Sub-agent {identity} {_ENDED.get(state, state.value)}."]
    if failure is not None:
        lines.append(f"Reason: {inline(failure.message, 500)}")
    if dispatch.hypothesis is not None and verdict is not None:
        lines.append(verdict_sentence(dispatch.hypothesis, verdict))
    parts = ["\n".join(lines)]
    if text.strip():
        conclusion = cut_text(readable_text(text), *_CONCLUSION, "the whole is in the record")
        parts += [fence("SUB_AGENT_CONCLUSION", conclusion), template("delegation_result").substitute()]
    return Message(Role.USER, "\n\n".join(parts))


def withdrawn_text(identity: str) -> str:
    """Returns why people need not decide any more about what a cancelled agent asked for."""
    return f"Sub-agent {identity}, which asked for it, was cancelled by the agent that dispatched it."


def cancelled_event_text(identity: str) -> str:
    """Returns why an agent was cancelled by its parent."""
    return f"Its parent cancelled {identity}, because it does not need its conclusion any more."
