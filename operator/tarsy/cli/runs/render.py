"""Renders a timeline on a terminal: one block per event, in order, without control characters.

Text of models, tools and alerts is printed as rich `Text`, which interprets nothing; the record has had its control
characters stripped when it was written.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from rich.console import Group, RenderableType
from rich.text import Text

from tarsy.cli.console import Hanging, Indented
from tarsy.cli.runs.argument_origins import origins_text
from tarsy.client.plain_text import plain
from tarsy.engine.findings.conclusion import read_finding, shorten_text
from tarsy.http.views.acted import ActedView
from tarsy.http.views.common import OtherRunView
from tarsy.http.views.timeline import EventView, RunHead
from tarsy.prometheus_tools.picture import read_pictures, sparkline
from tarsy.prometheus_tools.picture import write_time as picture_time
from tarsy.record.finding import Finding
from tarsy.record.integrity import Integrity
from tarsy.record.judging.incident_outcome import IncidentOutcome, outcome_sentence
from tarsy.record.reading.conditions import phase
from tarsy.record.run import InvestigationRecord, OtherRun, State
from tarsy.record.timeline import EventStatus, EventType, TimelineEvent
from tarsy.record.words import phase_of, word

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
_INTEGRITY: Mapping[Integrity, str] = {
    Integrity.K: "only the control plane writes this",
    Integrity.A: "workloads can write this",
    Integrity.X: "anyone outside the cluster can write this",
}
_BODY_LINES = 14
_INDENT = 9
_QUOTE = 120
_TITLE = 60


def event_block(event: TimelineEvent, *, full: bool = False) -> RenderableType:
    """Renders a closed event: stage and agent, type and text; without `full` the first lines of the text."""
    mark, colour = _MARKS.get(event.type) or (event.type.replace("_", " "), "blue")
    head = Text()
    head.append(event.created_at.strftime("%H:%M:%S "), style="dim")
    asked = event.metadata.get("author") if event.type is EventType.USER_QUESTION else None
    if asked and (via := event.metadata.get("via")):
        asked = f"{asked} via {via}"
    where = str(asked or "/".join(part for part in (event.stage_name, event.parent_name, event.agent_name) if part))
    head.append(f"{where}  ", style="bold")
    head.append(mark, style=colour)
    if event.type is EventType.LLM_TOOL_CALL:
        head.append(f"  {event.metadata.get('name', '')} {event.metadata.get('arguments', '')}", style=colour)
        if event.metadata.get("written_as") == "text":
            head.append("  written as text", style="dim")
        if event.metadata.get("is_error"):
            head.append("  failed", style="bold red")
        if event.metadata.get("handed_on"):
            head.append("  from the first attempt", style="yellow")
        if rung := event.metadata.get("rung"):
            head.append(f"  {rung_text(str(rung), event.metadata.get('line'))}", style="yellow")
        head.append(f"  {event.metadata.get('call_id', '')}", style="dim")
    if event.status not in (EventStatus.COMPLETED, EventStatus.STREAMING):
        head.append(f"  {word(event.status)}", style="bold red")
    text = event.content.strip()
    if origins := origins_text(event.metadata.get("provenance")):
        text = f"arguments: {origins}\n{text}"
    if event.type is EventType.FINAL_ANALYSIS:
        _, text = read_finding(text)  # the structured block is for programs; its summary ends the timeline
    drawn = [Indented(line, _INDENT) for line in picture_lines(text)] if event.type is EventType.LLM_TOOL_CALL else []
    return Group(Hanging(head, _INDENT), Indented(Text(_cut(text, full)), _INDENT), *drawn)


def rung_text(rung: str, line: object = None) -> str:
    """Returns the origin of an answer of a replay.

    Args:
        rung: how the answer was found.
        line: line of the record that it comes from; None: from none.
    """
    if line is None and rung in ("exact", "normalised"):
        return "from the first attempt"  # of its stage; a replay names a line
    return f"replay: {rung}" + ("" if line is None else f", line {line} of the record")


def picture_lines(text: str) -> list[Text]:
    """Renders the series of a result as sparklines; the value at the onset is red."""
    lines = []
    for picture in read_pictures(text):
        line, at = Text(sparkline(picture), style="cyan"), picture.onset_at
        if at is not None:
            line.stylize("bold red", at, at + 1)
        onset = f"  onset {picture_time(picture.onset)}" if picture.onset is not None else ""
        lines.append(line.append(f"  {shorten_title(picture.title)}{onset}", style="dim"))
    return lines


def shorten_title(title: str) -> str:
    """Returns the title of a series, short enough for a line of a terminal."""
    return title if len(title) <= _TITLE else f"{title[:_TITLE]}…"


@dataclass(frozen=True, slots=True)
class RunSummary:
    """State and outcome of a run, safe for a terminal, from the record or from the API, which returns less of it.

    Args:
        name: namespace and name.
        phase: the phase, in the words of the status.
        state: the state of the record.
        finding: the finding; None: none.
        executive_summary: the executive summary; None: none.
        failure: reason and message of the failure; None: none.
        remarks: what else a reader must know about the outcome.
        actions: what stages of kind Action did.
        running: names of the stages that are running.
        figures: calls, tokens and attempts; empty: unknown.
        outcome: what became of its alert; None: not known.
        confidence: of the finding, as it is shown; None: in its own word.
        retries: the investigations that it reruns, and that rerun it, in words.
    """

    name: str
    phase: str
    state: State
    finding: Finding | None = None
    executive_summary: str | None = None
    failure: str | None = None
    remarks: tuple[str, ...] = ()
    running: str = ""
    figures: str = ""
    actions: tuple[ActedView, ...] = ()
    outcome: IncidentOutcome | None = None
    confidence: str | None = None
    retries: tuple[str, ...] = ()

    @classmethod
    def of_record(cls, record: InvestigationRecord) -> Self:
        """Summarizes a recorded run."""
        outcome, remarks = record.outcome, []
        if record.evidence_missing:
            remarks.append(f"Tool servers were missing: {', '.join(record.evidence_missing)}")
        if record.alert_cut:
            remarks.append(f"The alert is cut: {record.alert_cut}")
        return cls(
            name=f"{record.namespace}/{record.name}",
            phase=phase(record),
            state=record.state,
            finding=outcome.finding if outcome else None,
            executive_summary=outcome.executive_summary if outcome else None,
            failure=f"{outcome.failure.reason}: {outcome.failure.message}" if outcome and outcome.failure else None,
            remarks=tuple(remarks),
            running=", ".join(stage.name for stage in record.stages if stage.state is State.RUNNING),
            figures=_figures(record),
            retries=retry_lines(record.retry_of, record.retried_by),
            actions=tuple(view for stage in record.stages if (view := ActedView.of(stage.acted)) is not None),
        )

    @classmethod
    def of_head(cls, head: RunHead, running: str = "") -> Self:
        """Summarizes a run as the API returns it; `running` names its running stages."""
        failure = head.failure
        return cls(
            name=f"{head.namespace}/{head.name}",
            phase=phase_of(head.state, head.desired_state),
            state=head.state,
            finding=Finding.model_validate(_plain(head.finding.model_dump())) if head.finding else None,
            executive_summary=_plain(head.executive_summary),
            failure=f"{plain(failure.reason)}: {plain(failure.message)}" if failure else None,
            running=running,
            actions=head.actions,
            outcome=head.outcome,
            confidence=_plain(head.finding.shown_confidence) if head.finding else None,
            retries=retry_lines(head.retry_of, head.retried_by),
        )


def retry_lines(
    retry_of: OtherRun | OtherRunView | None, retried_by: OtherRun | OtherRunView | None
) -> tuple[str, ...]:
    """Tells which investigation a run reruns, and which one reruns it; empty without any."""
    told = (("Retry of", retry_of), ("Retried by", retried_by))
    return tuple(f"{words} {plain(run.name)}" for words, run in told if run is not None)


def outcome_block(run: RunSummary) -> RenderableType:
    """Renders how a run ended."""
    style = "bold green" if run.state is State.COMPLETED else "bold red"
    lines: list[RenderableType] = [Text(f"{run.name}: {run.phase}", style=style)]
    lines += [Text(line, style="dim") for line in run.retries]
    if run.finding is not None:
        lines += finding_lines(run.finding, run.confidence)
    for action in run.actions:
        lines += action_lines(action)
    if run.outcome is not None:
        lines.append(Text(outcome_sentence(run.outcome)))
    if run.executive_summary:
        lines.append(Text(f"Summary: {run.executive_summary.strip()}"))
    if run.failure is not None:
        lines.append(Text(run.failure, style="red"))
    lines += [Text(remark, style="yellow") for remark in run.remarks]
    if run.figures:
        lines.append(Text(run.figures, style="dim"))
    return Group(*lines)


def status_line(run: RunSummary) -> Text:
    """Renders the state of a run in one line."""
    return Text("  ".join(part for part in (run.phase, *run.retries, run.running, run.figures) if part), style="dim")


def timeline_block(event: EventView, *, wide: bool = False, full: bool = True) -> RenderableType:
    """Renders an event of the API.

    Args:
        event: the event.
        wide: add the ids of its calls in the trace.
        full: the whole text, else its first lines.
    """
    block = event_block(_recorded(event), full=full)
    ids = [f"{kind} {found}" for kind, found in (("--llm", event.model_call), ("--mcp", event.tool_call)) if found]
    return Group(block, Text(f"         {' '.join(ids)}", style="dim")) if wide and ids else block


def finding_lines(finding: Finding, confidence: str | None = None) -> Iterator[RenderableType]:
    """Renders a finding: its summary, each claim with its citations, and the notes.

    Args:
        finding: the finding.
        confidence: as it is shown; None: in its own word.
    """
    yield Text(f"Finding ({confidence or finding.confidence.value}): {finding.summary}")
    for claim in finding.claims:
        mark, style = support_mark(claim.supported, claim.ungrounded, contradicted=claim.contradicted)
        yield Hanging(Text.assemble("  - ", (mark, style), f": {claim.text}"), 4)
        for citation in claim.citations:
            where = "/".join(part for part in (citation.stage, citation.agent, citation.tool) if part)
            text = Text(f"      {citation.call_id} {where}: ", style="dim")
            text.append(f"“{shorten_text(citation.quote, _QUOTE)}”")
            if told := integrity_text(citation.integrity, replaced=citation.replaced):
                text.append(f" [{told}]", style="dim")
            if citation.reason:
                text.append(f" ({citation.reason})", style="yellow")
            yield Hanging(text, 8)
    for note in finding.notes:
        yield Text(f"  {note}", style="yellow")
    for change in finding.changes_for_git:
        yield from change_for_git_lines(change.about, change.patch)


def change_for_git_lines(about: str, patch: str) -> Iterator[RenderableType]:
    """Renders a change that a person has to make in Git.

    Args:
        about: names the objects and what manages them; safe for a terminal, like the patch.
        patch: the change.
    """
    yield Text(f"Change to make in Git: {about}", style="bold yellow")
    for line in patch.splitlines():
        yield Indented(Text(line), 4)


def action_lines(action: ActedView) -> Iterator[Text]:
    """Renders what a stage of kind Action did, and where its model says otherwise."""
    yield Text(plain(action.sentence), style="bold" if action.acted else "")
    if action.contradiction is not None:
        yield Text(plain(action.contradiction), style="bold yellow")


def integrity_text(integrity: Integrity | None, *, replaced: bool) -> str:
    """Returns the words for who can write a quoted text, and whether it has been replaced; empty without a class."""
    words = [] if integrity is None else [f"{integrity.value}: {_INTEGRITY[integrity]}"]
    return "; ".join([*words, "no longer in the latest result of this call"] if replaced else words)


def support_mark(supported: bool, ungrounded: Sequence[str], *, contradicted: bool = False) -> tuple[str, str]:
    """Returns the words for the support of a claim, and their style."""
    if not supported:
        return "not supported", "bold yellow"
    if contradicted:
        return "supported, contradicted by later results", "yellow"
    if ungrounded:
        return f"supported, not grounded: {', '.join(plain(name) for name in ungrounded)}", "yellow"
    return "supported", "green"


def _recorded(event: EventView) -> TimelineEvent:
    """Returns the recorded event of a view, safe for a terminal."""
    return TimelineEvent(
        id=event.id,
        type=event.type,
        status=event.status,
        content=plain(event.content),
        metadata={key: _plain(value) for key, value in event.metadata.items()},
        seq=event.seq,
        revision=event.revision,
        created_at=event.created_at,
        updated_at=event.updated_at,
        stage_name=_plain(event.stage),
        agent_name=_plain(event.agent),
        parent_name=_plain(event.parent),
    )


def _plain(value: Any) -> Any:
    match value:
        case str():
            return plain(value)
        case dict():
            return {key: _plain(one) for key, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case _:
            return value


def _figures(record: InvestigationRecord) -> str:
    tokens = f"{record.usage.total_tokens:,}" + ("" if record.usage.complete else " or more")
    figures = f"{record.model_calls} model calls, {record.tool_calls} tool calls, {tokens} tokens"
    return f"{figures}, attempt {record.attempt}" if record.attempt > 1 else figures


def _cut(text: str, full: bool) -> str:
    lines = text.splitlines()
    if full or len(lines) <= _BODY_LINES:
        return text
    return "\n".join([*lines[:_BODY_LINES], f"… {len(lines) - _BODY_LINES} more lines"])
