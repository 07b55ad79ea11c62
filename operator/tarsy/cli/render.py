"""A timeline on a terminal: one block an event, in the order of things, never a control character.

Text of models, tools and alerts is printed as rich `Text`, which interprets nothing; the record has had its control
characters stripped when it was written.
"""

from collections.abc import Iterator, Mapping

from rich.console import Group, RenderableType
from rich.text import Text

from tarsy.cli.console import Hanging, Indented
from tarsy.engine.findings.conclusion import read_finding, shorten_text
from tarsy.record.conditions import phase
from tarsy.record.finding import Finding
from tarsy.record.run import InvestigationRecord, State
from tarsy.record.timeline import EventStatus, EventType, TimelineEvent
from tarsy.record.words import word

_MARKS: Mapping[str, tuple[str, str]] = {
    EventType.LLM_THINKING: ("thinking", "magenta"),
    EventType.LLM_RESPONSE: ("response", "cyan"),
    EventType.LLM_TOOL_CALL: ("tool", "yellow"),
    EventType.MCP_TOOL_SUMMARY: ("in short", "yellow"),
    EventType.CODE_EXECUTION: ("code", "yellow"),
    EventType.GOOGLE_SEARCH_RESULT: ("search", "yellow"),
    EventType.URL_CONTEXT_RESULT: ("pages", "yellow"),
    EventType.ERROR: ("error", "red"),
    EventType.NOTICE: ("notice", "blue"),
    EventType.PROVIDER_FALLBACK: ("fallback", "blue"),
    EventType.FINAL_ANALYSIS: ("analysis", "green"),
    EventType.EXECUTIVE_SUMMARY: ("summary", "green"),
    EventType.USER_QUESTION: ("question", "blue"),
}
_BODY_LINES = 14
_INDENT = 9
_QUOTE = 120


def event_block(event: TimelineEvent, *, full: bool = False) -> RenderableType:
    """One closed event: who, what, and its text, cut to some lines unless `full`."""
    mark, colour = _MARKS.get(event.type) or (event.type.replace("_", " "), "blue")
    head = Text()
    head.append(event.created_at.strftime("%H:%M:%S "), style="dim")
    asked = event.metadata.get("author") if event.type is EventType.USER_QUESTION else None
    where = str(asked or "/".join(part for part in (event.stage_name, event.agent_name) if part))
    head.append(f"{where}  ", style="bold")
    head.append(mark, style=colour)
    if event.type is EventType.LLM_TOOL_CALL:
        head.append(f"  {event.metadata.get('name', '')} {event.metadata.get('arguments', '')}", style=colour)
        if event.metadata.get("written_as") == "text":
            head.append("  written as text", style="dim")
        if event.metadata.get("is_error"):
            head.append("  failed", style="bold red")
        head.append(f"  {event.metadata.get('call_id', '')}", style="dim")
    if event.status not in (EventStatus.COMPLETED, EventStatus.STREAMING):
        head.append(f"  {word(event.status)}", style="bold red")
    text = event.content.strip()
    if event.type is EventType.FINAL_ANALYSIS:
        _, text = read_finding(text)  # the structured block is for programs; its summary ends the timeline
    return Group(Hanging(head, _INDENT), Indented(Text(_cut(text, full)), _INDENT))


def outcome_block(record: InvestigationRecord) -> RenderableType:
    """How an investigation ended."""
    outcome = record.outcome
    good = record.state is State.COMPLETED
    lines: list[RenderableType] = [
        Text(f"{record.namespace}/{record.name}: {phase(record)}", style="bold green" if good else "bold red")
    ]
    if outcome and outcome.finding:
        lines += finding_lines(outcome.finding)
    if outcome and outcome.executive_summary:
        lines.append(Text(f"Summary: {outcome.executive_summary.strip()}"))
    if outcome and outcome.failure:
        lines.append(Text(f"{outcome.failure.reason}: {outcome.failure.message}", style="red"))
    if record.evidence_missing:
        lines.append(Text(f"Tool servers were missing: {', '.join(record.evidence_missing)}", style="yellow"))
    if record.alert_cut:
        lines.append(Text(f"The alert is cut: {record.alert_cut}", style="yellow"))
    lines.append(Text(_figures(record), style="dim"))
    return Group(*lines)


def finding_lines(finding: Finding) -> Iterator[RenderableType]:
    """A finding: its summary, each claim with what it rests on, and what was changed about it."""
    yield Text(f"Finding ({finding.confidence.value}): {finding.summary}")
    for claim in finding.claims:
        mark, style = ("supported", "green") if claim.supported else ("unsupported", "yellow")
        yield Hanging(Text.assemble("  - ", (mark, style), f": {claim.text}"), 4)
        for citation in claim.citations:
            where = "/".join(part for part in (citation.stage, citation.agent, citation.tool) if part)
            text = Text(f"      {citation.call_id} {where}: ", style="dim")
            text.append(f"“{shorten_text(citation.quote, _QUOTE)}”")
            if citation.reason:
                text.append(f" ({citation.reason})", style="yellow")
            yield Hanging(text, 8)
    for note in finding.notes:
        yield Text(f"  {note}", style="yellow")


def status_line(record: InvestigationRecord) -> Text:
    """Where an investigation is, in one line."""
    running = [s.name for s in record.stages if s.state is State.RUNNING]
    return Text(f"{phase(record)}  {', '.join(running)}  {_figures(record)}", style="dim")


def _figures(record: InvestigationRecord) -> str:
    tokens = f"{record.usage.total_tokens:,}" + ("" if record.usage.complete else " or more")
    figures = f"{record.model_calls} model calls, {record.tool_calls} tool calls, {tokens} tokens"
    return f"{figures}, attempt {record.attempt}" if record.attempt > 1 else figures


def _cut(text: str, full: bool) -> str:
    lines = text.splitlines()
    if full or len(lines) <= _BODY_LINES:
        return text
    return "\n".join([*lines[:_BODY_LINES], f"… {len(lines) - _BODY_LINES} more lines"])
