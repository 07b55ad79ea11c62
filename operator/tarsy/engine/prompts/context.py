"""Renders the conclusions of earlier stages and the work of agents as text for a model.

A later stage gets final analyses only. Synthesis and chat get the work: they read timeline events rather than messages,
because events hold the thinking as well; a summary of a result stands in its place. All of it came from a model or a
tool, so all of it is fenced as data. Calls keep their callId: a claim may cite any call of the run.

Work is as long as it is until it does not fit: then tool results and thoughts are cut in the middle, all to the same
length, the longest of a few that makes it fit; at last they are left out. What agents concluded is never cut.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from tarsy.engine.findings.conclusion import readable_text, whole_text
from tarsy.engine.prompts.fence import fence, inline
from tarsy.engine.prompts.results import result_header
from tarsy.record.timeline import APPROVAL_NOTICE, RETRYING, WAITING, EventStatus, EventType, TimelineEvent
from tarsy.record.work import AgentWork, Exchange, PastWork, Timelines

_LENGTHS = (16_000, 8_000, 4_000, 2_000, 1_000, 500, 200, 0)
"""Characters to which results and thoughts are cut, tried in this order; 0: only conclusions are told."""


@dataclass(frozen=True, slots=True)
class StageConclusion:
    """Holds the conclusion of a finished stage; `evidence`, already fenced, replaces it where no model concluded.

    `acted` is what the record says of a stage of kind Action, whose text is no finding.
    `note` is for people, about how the conclusion came about.
    """

    stage: str
    text: str
    evidence: str | None = None
    acted: str | None = None
    note: str = ""


def chain_context(conclusions: Sequence[StageConclusion]) -> str:
    """The conclusions of earlier stages, oldest first; empty for the first stage."""
    told = [c for c in conclusions if c.text.strip() or c.acted]
    return "\n\n".join(f"### Stage: {inline(c.stage)}\n\n{_concluded(c)}" for c in told)


def _concluded(conclusion: StageConclusion) -> str:
    text = conclusion.evidence or fence("STAGE_CONCLUSION", readable_text(conclusion.text))
    return text if conclusion.acted is None else f"On record: {inline(conclusion.acted, 1000)}\n\n{text}"


def room_for_work(window: int) -> int:
    """Characters of work to tell a model with a window of so many tokens: half of it, at four characters a token."""
    return window * 4 // 2


def synthesis_context(agents: Sequence[AgentWork], timelines: Timelines, *, limit: int) -> str:
    """Every agent's work, in launch order: thinking, calls, results, conclusions, and how it ended.

    Args:
        agents: of one stage.
        timelines: their events.
        limit: characters that it should not exceed; what agents concluded may make it longer.
    """
    return _fitting(lambda length: _agents(agents, timelines, length), limit)


def investigation_context(past: PastWork, *, limit: int) -> str:
    """The work of a whole investigation, stage by stage, and what was asked about it: a question is answered from both.

    An earlier question brings its tool results and thoughts with it. The executive summary is left out: it contains
    nothing of its own.

    Args:
        past: in order.
        limit: as for `synthesis_context`.
    """

    def everything(length: int | None) -> str:
        stages = [f"## Stage: {inline(s.name)}\n\n{_agents(s.agents, past.timelines, length)}" for s in past.stages]
        asked = [_exchange(n, one, past.timelines, length) for n, one in enumerate(past.earlier, 1)]
        return "\n\n".join([*stages, *(["## Asked and answered before"] if asked else []), *asked])

    return _fitting(everything, limit)


def _exchange(number: int, asked: Exchange, timelines: Timelines, length: int | None) -> str:
    """A question with the work behind its answer, and the answer where the work does not hold it."""
    by = f": by {inline(asked.author)}" if asked.author else ""
    parts = [f"### Question {number}{by}\n\n{fence('EARLIER_QUESTION', asked.question)}"]
    if asked.agents:
        parts.append(_agents(asked.agents, timelines, length))
    answered = any(
        event.type is EventType.FINAL_ANALYSIS and event.content.strip()
        for agent in asked.agents
        for event in timelines.get(agent.execution, ())
    )
    if not answered:
        told = fence("EARLIER_ANSWER", asked.answer) if asked.answer.strip() else f"(none: {asked.state.value})"
        parts.append(f"Answer:\n{told}")
    return "\n\n".join(parts)


def _fitting(make: Callable[[int | None], str], limit: int) -> str:
    text = make(None)
    for length in _LENGTHS:
        if len(text) <= limit:
            break
        text = make(length)
    return text


def _agents(agents: Sequence[AgentWork], timelines: Timelines, length: int | None) -> str:
    return "\n\n".join(
        _agent(f"Agent {number}" if len(agents) > 1 else "Agent", agent, timelines.get(agent.execution, ()), length)
        for number, agent in enumerate(agents, 1)
    )


def _agent(title: str, agent: AgentWork, events: Sequence[TimelineEvent], length: int | None) -> str:
    how = f"Strategy: {inline(agent.strategy)}. Model: {inline(agent.model)}. Outcome: {agent.state.value}."
    parts = [f"### {title}: {inline(agent.name)}", how, *_work(events, length)]
    if agent.failure:
        parts.append(f"Failure:\n{fence('FAILURE', agent.failure.message)}")
    elif len(parts) == 2:
        parts.append("(no recorded work)")
    return "\n\n".join(parts)


_TITLES: Mapping[str, str] = {
    EventType.LLM_THINKING: "Thinking",
    EventType.LLM_RESPONSE: "Response",
    EventType.CODE_EXECUTION: "Code execution",
    EventType.GOOGLE_SEARCH_RESULT: "Search result",
    EventType.URL_CONTEXT_RESULT: "Page read",
    EventType.FINAL_ANALYSIS: "Final analysis",
    EventType.ERROR: "Error",
    EventType.NOTICE: "Notice",
    EventType.PROVIDER_FALLBACK: "Change of model",
}


def _work(events: Sequence[TimelineEvent], length: int | None) -> Iterator[str]:
    """The events of an agent, each titled in our words and fenced; those that say nothing are left out."""
    summaries = {
        event.tool_call: event.content
        for event in events
        if event.type is EventType.MCP_TOOL_SUMMARY and event.status is EventStatus.COMPLETED and event.content.strip()
    }
    told = [event for event in events if event.type is not EventType.MCP_TOOL_SUMMARY]
    if length == 0:
        calls = sum(event.type is EventType.LLM_TOOL_CALL for event in told)
        if calls:
            yield f"({calls} tool calls and their results are left out here to save room)"
        told = [event for event in told if event.type is EventType.FINAL_ANALYSIS]
    for event in _in_place(told):
        if event.type is EventType.LLM_TOOL_CALL:
            yield _call(event, summaries.get(event.tool_call), length)
        elif event.type is EventType.FINAL_ANALYSIS and event.content.strip():
            yield f"{_TITLES[event.type]}:\n{fence(event.type.upper(), readable_text(whole_text(event)))}"
        elif (title := _TITLES.get(event.type)) and event.content.strip() and not _of_the_provider(event):
            yield f"{title}:\n{fence(event.type.upper(), _cut(event.content, length))}"


def _of_the_provider(event: TimelineEvent) -> bool:
    """Whether an event tells how a model was asked, which says nothing of what is investigated."""
    return event.type is EventType.NOTICE and event.metadata.get("reason") in (RETRYING, WAITING, APPROVAL_NOTICE)


def _in_place(events: Sequence[TimelineEvent]) -> Iterator[TimelineEvent]:
    """The events, calls that ran side by side in the order in which the model made them: always the same text."""
    for _, group in groupby(events, lambda event: event.type is EventType.LLM_TOOL_CALL):
        yield from sorted(group, key=lambda event: event.metadata.get("place", ()))


def _call(event: TimelineEvent, summary: str | None, length: int | None) -> str:
    said = event.metadata
    name = str(said.get("name", ""))
    marks = [
        mark
        for mark, there in (
            (" (interrupted, outcome unknown)", event.status is EventStatus.INTERRUPTED),
            (" (summary of the result)", summary is not None),
        )
        if there
    ]
    text = f"{name}({said.get('arguments', '')})\n\n{event.content if summary is None else summary}"
    header = result_header(str(said.get("call_id", "")), name, is_error=bool(said.get("is_error")))
    return f"{header}{''.join(marks)}\n{fence('TOOL_CALL', _cut(text, length))}"


def _cut(text: str, length: int | None) -> str:
    """`text` without its middle where it is longer than `length`: beginnings say what it is, ends how it ended."""
    if length is None or len(text) <= length:
        return text
    head, tail = length * 2 // 3, length // 3
    return f"{text[:head]}\n… {len(text) - head - tail:,} characters left out …\n{text[-tail:]}"
