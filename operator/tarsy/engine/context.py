"""Contexts: what earlier stages concluded, and what the agents of a stage did, as text for a model.

Synthesis reads timeline events rather than messages, because they hold the thinking as well (seed 004, "Timeline
events for synthesis context"). All of it came from a model or a tool, so all of it is fenced as data.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from tarsy.engine.prompts.fence import fence
from tarsy.record.run import Failure, State
from tarsy.record.timeline import EventStatus, EventType, TimelineEvent


@dataclass(frozen=True, slots=True)
class StageConclusion:
    """What a finished stage concluded."""

    stage: str
    text: str


@dataclass(frozen=True, slots=True)
class AgentWork:
    """One agent of a parallel stage and how it ended."""

    execution: UUID
    name: str
    strategy: str
    model: str
    state: State
    failure: Failure | None = None


def chain_context(conclusions: Sequence[StageConclusion]) -> str:
    """The conclusions of earlier stages, oldest first; empty for the first stage."""
    parts = [f"### Stage: {c.stage}\n\n{fence('STAGE_CONCLUSION', c.text)}" for c in conclusions if c.text.strip()]
    return "\n\n".join(parts)


def synthesis_context(agents: Sequence[AgentWork], timelines: Mapping[UUID, Sequence[TimelineEvent]]) -> str:
    """Every agent's work, in launch order: thinking, calls, results, conclusions, and how it ended."""
    return "\n\n".join(_agent(i, agent, timelines.get(agent.execution, ())) for i, agent in enumerate(agents, 1))


def _agent(number: int, agent: AgentWork, events: Sequence[TimelineEvent]) -> str:
    lines = [
        f"### Agent {number}: {agent.name}",
        f"Strategy: {agent.strategy}. Model: {agent.model}. Outcome: {agent.state.value}.",
    ]
    work = [text for event in events if (text := _event(event))]
    if agent.failure:
        work.append(f"Failure: {agent.failure.message}")
    body = "\n\n".join(work)
    lines.append(fence("AGENT_WORK", body or "(no recorded work)"))
    return "\n\n".join(lines)


_TITLES = {
    EventType.LLM_THINKING: "Thinking",
    EventType.LLM_RESPONSE: "Response",
    EventType.FINAL_ANALYSIS: "Final analysis",
    EventType.ERROR: "Error",
    EventType.NOTICE: "Notice",
}


def _event(event: TimelineEvent) -> str:
    if event.type is EventType.LLM_TOOL_CALL:
        name, arguments = event.metadata.get("name", ""), event.metadata.get("arguments", "")
        mark = " (error)" if event.metadata.get("is_error") else ""
        if event.status is EventStatus.INTERRUPTED:
            mark = " (interrupted, outcome unknown)"
        call_id = event.metadata.get("call_id", "")
        return f"**Tool call** {call_id} {name}({arguments}){mark}\n\n{event.content}"
    title = _TITLES.get(event.type)
    return f"**{title}**\n\n{event.content}" if title and event.content else ""
