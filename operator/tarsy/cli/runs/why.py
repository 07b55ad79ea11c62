"""Prints the finding of an investigation with the evidence of each claim (`why NAME`).

Permission to read the timeline shows the finding with its quotes; permission to read the trace also shows each quote in
the result it was taken from. Whether a citation is supported was decided when the run ended, on the stored results.
"""

import asyncio
from datetime import UTC, datetime
from uuid import UUID

from pydantic import Field
from rich.console import Group, RenderableType
from rich.text import Text

from tarsy.cli.console import Indented
from tarsy.cli.output import Output, for_programs, printer, write_output
from tarsy.cli.runs.passages import passage
from tarsy.cli.runs.render import (
    action_lines,
    change_for_git_lines,
    integrity_text,
    picture_lines,
    retry_lines,
    support_mark,
)
from tarsy.client.api import TarsyClient, read_as, run_path
from tarsy.client.errors import ApiUseError
from tarsy.client.plain_text import one_line, plain
from tarsy.client.refusals import READ_TIMELINE, READ_TRACE
from tarsy.http.models import View
from tarsy.http.views.acted import ActedView
from tarsy.http.views.common import OtherRunView
from tarsy.http.views.timeline import ChangeForGitView, CitationView, FindingView, RunHead, TimelineView
from tarsy.http.views.trace import ToolCallDetails
from tarsy.record.finding import Confidence
from tarsy.record.integrity import Integrity
from tarsy.record.judging.incident_outcome import IncidentOutcome, outcome_sentence
from tarsy.record.run import State
from tarsy.record.words import phase_of

_AT_ONCE = 4
_ARGUMENTS = 160
_CONFIDENCE = {Confidence.HIGH: "green", Confidence.MEDIUM: "green", Confidence.LOW: "yellow"}


class Grounds(View):
    """A resolved citation."""

    call_id: str
    quote: str
    supported: bool
    reason: str | None = Field(description="Reason why it does not hold.")
    tool: str | None = Field(description="`server.tool`; null: there is no such call.")
    stage: str | None
    agent: str | None
    interaction: UUID | None
    called_at: datetime | None = Field(description="Null: the caller may not read the trace, or there is no such call.")
    arguments: str | None
    before: str | None = Field(description="Text before the quote in the result.")
    quoted: str | None = Field(description="The quote as it is in the result.")
    after: str | None
    integrity: Integrity | None = Field(description="Who can write the quoted text: K, A or X; null: not known.")
    replaced: bool = Field(description="Whether the latest result of the same call no longer contains the quote.")
    series: str = Field(default="", exclude=True, description="The series that the quote is from, as text to draw.")


class Reason(View):
    """A claim and its evidence."""

    text: str
    supported: bool
    ungrounded: tuple[str, ...]
    contradicted: bool
    citations: tuple[Grounds, ...]


class Why(View):
    """A finding with its evidence."""

    namespace: str
    name: str
    uid: UUID
    state: State
    alert_type: str
    chain: str
    finished_at: datetime | None
    summary: str
    confidence: Confidence
    shown_confidence: str | None = Field(default=None, description="Confidence as people read it.")
    structured: bool
    notes: tuple[str, ...]
    changes_for_git: tuple[ChangeForGitView, ...] = ()
    actions: tuple[ActedView, ...] = ()
    claims: tuple[Reason, ...]
    outcome: IncidentOutcome | None = None
    retry_of: OtherRunView | None = None
    retried_by: OtherRunView | None = None
    hidden: str | None = Field(description="Parts that are left out because the caller may not read them; null: none.")


async def explain_finding(client: TarsyClient, namespace: str, name: str, output: Output) -> int:
    """Prints the finding of an investigation with its evidence; returns the exit status.

    Args:
        client: the API.
        namespace: the namespace of the investigation.
        name: the name of the investigation.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: the investigation is not on record, has no finding, or may not be read.
    """
    page = await read_as(client, TimelineView, run_path(namespace, name, "timeline"), READ_TIMELINE, {"limit": "1"})
    run = page.investigation
    if run.finding is None:
        raise ApiUseError(_without_finding(run))
    explain_run = await resolve_citations(client, run, run.finding)
    if for_programs(output):
        write_output(explain_run, output)
    else:
        printer().print(render_finding(explain_run))
    return 0


async def resolve_citations(client: TarsyClient, run: RunHead, finding: FindingView) -> Why:
    """Resolves the citations of a finding, as far as the caller may read the results.

    Args:
        client: the API.
        run: the run.
        finding: its finding.
    """
    cited = {c.interaction for claim in finding.claims for c in claim.citations if c.interaction is not None}
    calls, hidden = await _calls(client, run, sorted(cited))
    return Why(
        namespace=run.namespace,
        name=run.name,
        uid=run.uid,
        state=run.state,
        alert_type=run.alert_type,
        chain=run.chain,
        finished_at=run.finished_at,
        summary=finding.summary,
        outcome=run.outcome,
        retry_of=run.retry_of,
        retried_by=run.retried_by,
        confidence=finding.confidence,
        shown_confidence=finding.shown_confidence,
        structured=finding.structured,
        notes=finding.notes,
        changes_for_git=finding.changes_for_git,
        actions=run.actions,
        claims=tuple(
            Reason(
                text=claim.text,
                supported=claim.supported,
                ungrounded=claim.ungrounded,
                contradicted=claim.contradicted,
                citations=tuple(_grounds(c, calls.get(c.interaction)) for c in claim.citations),
            )
            for claim in finding.claims
        ),
        hidden=hidden,
    )


def render_finding(explain_run: Why) -> RenderableType:
    """Renders a finding with its evidence."""
    good = explain_run.state is State.COMPLETED
    head = Text(f"{explain_run.namespace}/{explain_run.name}", style="bold")
    head.append(f"  {plain(explain_run.alert_type)}, chain {plain(explain_run.chain)}  ", style="dim")
    head.append(phase_of(explain_run.state), style="green" if good else "red")
    confidence = Text("Confidence: ")
    word = explain_run.confidence.value
    shown = plain(explain_run.shown_confidence or word)
    confidence.append(shown, style=_CONFIDENCE.get(explain_run.confidence, "red") if shown == word else "yellow")
    retries = [Text(line, style="dim") for line in retry_lines(explain_run.retry_of, explain_run.retried_by)]
    blocks: list[RenderableType] = [head, *retries, Text(plain(explain_run.summary)), confidence]
    for action in explain_run.actions:
        blocks += action_lines(action)
    if explain_run.outcome is not None:
        blocks.append(Text(outcome_sentence(explain_run.outcome)))
    if not explain_run.structured:
        blocks.append(Text("The model did not give its finding in the required form: there is nothing to check."))
    for number, claim in enumerate(explain_run.claims, 1):
        mark, style = support_mark(claim.supported, claim.ungrounded, contradicted=claim.contradicted)
        blocks += [Text(), Text.assemble(f"{number}. ", (mark, style), f": {plain(claim.text)}")]
        if not claim.citations:
            blocks.append(Indented(Text("it cites nothing", style="yellow"), 3))
        blocks += [Indented(_citation(grounds), 3) for grounds in claim.citations]
    blocks += [Text(plain(note), style="yellow") for note in explain_run.notes]
    for change in explain_run.changes_for_git:
        about = "; ".join(f"{plain(one.object)} is managed by {plain(one.managed_by)}" for one in change.objects)
        blocks += [Text(), *change_for_git_lines(about, plain(change.patch))]
    if explain_run.hidden:
        blocks += [Text(), Text(explain_run.hidden, style="dim")]
    return Group(*blocks)


def _citation(grounds: Grounds) -> RenderableType:
    where = Text(plain(grounds.tool or "an unknown call"), style="cyan" if grounds.tool else "bold yellow")
    if grounds.called_at:
        where.append(f"  {grounds.called_at.astimezone(UTC):%Y-%m-%d %H:%M:%S}Z", style="dim")
    place = "/".join(plain(part) for part in (grounds.stage, grounds.agent) if part)
    where.append(f"  {place}  {one_line(grounds.call_id, 100)}".rstrip(), style="dim")
    lines: list[RenderableType] = [where]
    if grounds.arguments and grounds.arguments.strip() not in ("", "{}"):
        lines.append(Text(one_line(grounds.arguments, _ARGUMENTS), style="dim"))
    if grounds.quoted is None:
        lines.append(Text.assemble("  “", (plain(grounds.quote), "bold"), "”"))
    else:
        text = Text.assemble(
            (grounds.before or "", "dim"), (f"»{grounds.quoted}«", "bold"), (grounds.after or "", "dim")
        )
        text.rstrip()
        lines.append(Indented(text, 2))
    if told := integrity_text(grounds.integrity, replaced=grounds.replaced):
        lines.append(Text(told, style="dim"))
    lines += [Indented(line, 2) for line in picture_lines(grounds.series)]
    if not grounds.supported:
        lines.append(Text(f"does not hold: {plain(grounds.reason or 'nobody says why')}", style="bold yellow"))
    return Group(*lines)


async def _calls(
    client: TarsyClient, run: RunHead, ids: list[UUID]
) -> tuple[dict[UUID | None, ToolCallDetails], str | None]:
    """Returns the cited calls, and a remark where they may not be read."""
    found: dict[UUID | None, ToolCallDetails] = {}
    places = asyncio.Semaphore(_AT_ONCE)

    async def read(one: UUID) -> None:
        async with places:
            path = run_path(run.namespace, run.name, f"trace/mcp/{one}")
            found[one] = await read_as(client, ToolCallDetails, path, READ_TRACE, {"uid": str(run.uid)})

    if not ids:
        return found, None
    try:
        await read(ids[0])  # alone: who may not read one may read none
    except ApiUseError as error:
        if error.status != 403:
            raise
        return {}, f"The results around the quotes are hidden: {error}"
    async with asyncio.TaskGroup() as group:
        for one in ids[1:]:
            group.create_task(read(one))
    return found, None


def _grounds(citation: CitationView, call: ToolCallDetails | None) -> Grounds:
    place = passage(call.result, citation.quote) if call is not None and call.result is not None else None
    return Grounds(
        call_id=citation.call_id,
        quote=citation.quote,
        supported=citation.supported,
        reason=citation.reason,
        tool=citation.tool,
        stage=citation.stage,
        agent=citation.agent,
        interaction=citation.interaction,
        called_at=call.started_at if call else None,
        arguments=call.arguments if call else None,
        before=place.before if place else None,
        quoted=place.quoted if place else None,
        after=place.after if place else None,
        integrity=citation.integrity,
        replaced=citation.replaced,
        series=_quoted_series(plain(call.result), place.quoted) if place and call and call.result else "",
    )


def _quoted_series(result: str, quoted: str) -> str:
    """Returns the parts of a result that are each about one series and contain a quote; empty: there is none."""
    parts = (f"series {part}" for part in f"\n{result}".split("\nseries ")[1:])
    return "\n".join(part for part in parts if quoted in part)


def _without_finding(run: RunHead) -> str:
    which, phase = f"investigation {run.namespace}/{run.name}", phase_of(run.state, run.desired_state)
    if not run.state.finished:
        return f"{which} is {phase} and has found nothing yet; `timeline {run.name} -f` follows it to its end"
    why = f" ({run.failure.reason}: {one_line(run.failure.message, 300)})" if run.failure else ""
    return f"{which} ended as {phase} and left no finding{why}; `timeline {run.name}` shows how far it came"
