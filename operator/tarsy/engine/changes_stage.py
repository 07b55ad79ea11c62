"""Runs a stage of kind Changes: reads the objects of the run's namespace and computes evidence, without a model.

The stage is recorded as any other: one execution with two tool calls, `tarsy.triage` and `tarsy.changes`, between their
boundaries, so that claims cite them and people see them in the timeline. No message of a model made these calls: their
place is before the first message. Their tool messages hold what later agents are sent (`prompts.evidence`); the rows
hold all. A stage that cannot read says so and is done: it never fails a run.

An attempt that resumes reads again, unless both calls have their results. Statements whose citation does not hold in
what is on record by then are left out.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from uuid import UUID

import orjson

from tarsy.engine.conversation.truncation import truncate_for_timeline
from tarsy.engine.findings.citations import check_citations
from tarsy.engine.findings.conclusion import read_finding, shorten_text, with_finding, without_block
from tarsy.engine.ports import NotRead
from tarsy.engine.prompts.context import StageConclusion
from tarsy.engine.prompts.evidence import evidence_text, shown_sections
from tarsy.engine.prompts.results import tool_text
from tarsy.engine.run_context import RunContext
from tarsy.evidence.alerted import AlertSubject, read_subject
from tarsy.evidence.briefing import Briefing, Source, brief
from tarsy.evidence.history.recorded import ONSET_BEFORE_ALERT
from tarsy.plan.model import AgentLimits, ChangesPlan
from tarsy.record.boundaries import ToolCallResult, ToolCallStart
from tarsy.record.finding import Citation, Claim, Confidence, Finding
from tarsy.record.ids import call_ref, event_id, execution_id, idempotency_key, tool_call_id
from tarsy.record.judging.replay import KnownChanges, replay_metadata
from tarsy.record.messages import Access, Message, Role, ToolCall, ToolOutcome
from tarsy.record.run import (
    ExecutionOutcome,
    ExecutionRecord,
    ExecutionStart,
    StageKind,
    StageOutcome,
    StageStart,
    State,
)
from tarsy.record.timeline import Event, EventStatus, EventType

SERVER = "tarsy"
"""Server of the tool calls, and agent of the execution."""

NO_MODEL = "No model was asked."
NO_FURTHER_MODEL = "No further model was asked."

_CALLS = (Source.TRIAGE, Source.CHANGES)
_BEFORE_MESSAGES = -1


@dataclass(frozen=True, slots=True)
class ChangesRun:
    """The input of a stage of kind Changes: its id, its index among the stages on record, its plan and the alert."""

    id: UUID
    index: int
    name: str
    plan: ChangesPlan
    namespace: str
    alert_data: str
    limits: AgentLimits


@dataclass(frozen=True, slots=True)
class ChangesResult:
    """The conclusion of the stage; `certain`: a rule found a fault of the alert's target that is certain."""

    conclusion: StageConclusion
    certain: bool


async def run_changes_stage(run: ChangesRun, world: RunContext) -> ChangesResult:
    """Runs the stage, or returns what the record has of it when it is finished already."""
    stage = await world.recorder.begin_stage(
        StageStart(id=run.id, index=run.index, name=run.name, kind=StageKind.INVESTIGATION, expected_agents=1)
    )
    execution = execution_id(run.id, 0)
    record = await world.recorder.begin_execution(
        ExecutionStart(
            id=execution,
            stage=run.id,
            index=0,
            agent=SERVER,
            display_name=run.name,
            strategy="changes",
            provider="",
            model="",
        )
    )
    if record.state.finished:
        text, told = record.result or "", list(record.messages)
    else:
        text, told = await _Reading(run, world, record).conclude()
        outcome = ExecutionOutcome(execution, State.COMPLETED, text)
        await world.recorder.finish_execution(outcome, [_concluded(run, execution, text)])
    if not stage.state.finished:
        await world.recorder.finish_stage(StageOutcome(run.id, State.COMPLETED))
    certain = read_finding(text)[0].confidence is Confidence.HIGH
    return ChangesResult(StageConclusion(run.name, text, evidence_text(told)), certain)


class _Reading:
    """The two calls of one attempt at a stage."""

    def __init__(self, run: ChangesRun, world: RunContext, record: ExecutionRecord) -> None:
        self._run = run
        self._world = world
        self._execution = record.id
        self._told = {**dict(enumerate(record.messages)), **record.ahead}
        self._tries = {left.index: left.attempt + 1 for left in record.unanswered}
        self._loop = record.loop
        self._subject = read_subject(run.alert_data)
        self._arguments = _arguments(run, self._subject)

    async def conclude(self) -> tuple[str, list[Message]]:
        """Makes the calls, and returns the conclusion of the stage with the messages for later agents."""
        run = self._run
        if self._world.known_changes is not None:
            return await self._from_record(self._world.known_changes(self._arguments))
        if run.plan.account is None:
            sentence = f"Nothing was read: stage {run.name} names no ServiceAccount (changes.serviceAccountName)."
            return _conclusion(Finding(summary=sentence)), []
        for source in _CALLS:
            await self._begin(source)
        began = time.monotonic()
        found = await self._brief()
        elapsed = round((time.monotonic() - began) * 1000)
        if isinstance(found, NotRead):
            why = self._world.objects.without_secrets(found.sentence)
            if not found.refused:
                await self._world.recorder.degrade_evidence({SERVER: why})
            for source in _CALLS:
                await self._end(source, ToolOutcome(why, is_error=True), why, elapsed)
            return _conclusion(Finding(summary=shorten_text(f"Nothing could be read: {why}"))), self._messages
        empty = [self._message(source, ToolOutcome("")) for source in _CALLS]
        shown = shown_sections(found.triage, found.changes, evidence_text(empty) or "")
        for source, section, short in zip(_CALLS, (found.triage, found.changes), shown, strict=True):
            await self._end(source, ToolOutcome(section.text, marks=section.marks), short, elapsed)
        statements = [(one.text, one.source, one.quote) for one in found.statements]
        return _conclusion(await self._finding(found.summary, found.confidence, statements)), self._messages

    async def _from_record(self, known: KnownChanges) -> tuple[str, list[Message]]:
        """Answers the calls of a replay with what is recorded."""
        if not known.answers:
            return _conclusion(Finding(summary=shorten_text(known.summary))), []
        for source in _CALLS:
            await self._begin(source)
        for source in _CALLS:
            answer = known.answers[source.value]
            outcome = ToolOutcome(answer.result, answer.is_error, answer.source, answer.marks)
            await self._end(source, outcome, answer.shown, 0)
        statements = [(claim.text, Source(claim.tool), claim.quote) for claim in known.claims]
        confidence = Confidence(known.confidence)
        return _conclusion(await self._finding(shorten_text(known.summary), confidence, statements)), self._messages

    @property
    def _messages(self) -> list[Message]:
        return [self._told[index] for index in sorted(self._told)]

    async def _brief(self) -> Briefing | NotRead:
        """Returns the evidence, or the reason why there is none."""
        run, objects, seconds = self._run, self._world.objects, self._run.limits.tool_call_seconds
        try:
            async with asyncio.timeout(seconds):
                snapshot = await objects.read(run.plan)
                if isinstance(snapshot, NotRead):
                    return snapshot
                window = timedelta(seconds=run.plan.window_seconds)
                began = min(self._subject.began or snapshot.read_at, snapshot.read_at)
                history = await objects.history(run.plan, began - window - ONSET_BEFORE_ALERT)
                # In a thread: thousands of objects take seconds.
                return await asyncio.to_thread(
                    brief, snapshot, run.namespace, self._subject, window, objects.without_secrets, history
                )
        except TimeoutError:
            limit = f"{seconds:g} s (timeouts.toolCallSeconds)"
            return NotRead(f"reading the objects and applying rules took longer than {limit}")

    async def _begin(self, source: Source) -> None:
        index = _CALLS.index(source)
        if index in self._told:
            return
        call = ToolCall("", f"{SERVER}.{source.value}", self._arguments)
        start = ToolCallStart(
            id=self._id(index),
            execution=self._execution,
            message_seq=_BEFORE_MESSAGES,
            index=index,
            attempt=self._tries.get(index, 0),
            call=call,
            server=SERVER,
            tool=source.value,
            idempotency_key=idempotency_key(self._execution, _BEFORE_MESSAGES, index),
            repeatable=True,
            access=Access.READ_ONLY,
        )
        self._world.control.check()
        self._world.meter.tool_started(start.id)
        event = self._event(source, ToolOutcome(""), EventStatus.STREAMING)
        await self._world.recorder.tool_call_started(start, [event])
        self._world.control.check()  # the write may have waited for Postgres longer than the lease lasts

    async def _end(self, source: Source, outcome: ToolOutcome, shown: str, elapsed_ms: int) -> None:
        index = _CALLS.index(source)
        if index in self._told:
            return
        message = self._message(source, replace(outcome, content=shown))
        self._loop = self._loop.model_copy(update={"tool_calls": self._loop.tool_calls + 1})
        self._world.meter.tool_finished(self._id(index))
        await self._world.recorder.tool_call_finished(
            ToolCallResult(
                id=self._id(index),
                execution=self._execution,
                message_seq=_BEFORE_MESSAGES + 1 + index,
                message=message,
                result=outcome.content,
                is_error=outcome.is_error,
                duration_ms=elapsed_ms,
                loop=self._loop,
                replayed=outcome.replayed,
                marks=outcome.marks,
            ),
            [self._event(source, outcome, EventStatus.COMPLETED)],
        )
        self._told[index] = message

    def _message(self, source: Source, outcome: ToolOutcome) -> Message:
        """The result as later agents are sent it."""
        name = f"{SERVER}.{source.value}"
        return Message(Role.TOOL, tool_text(_ref(self._execution, source), name, outcome), tool_name=name)

    async def _finding(
        self, summary: str, confidence: Confidence, statements: Sequence[tuple[str, Source, str]]
    ) -> Finding:
        """The finding of what is known, without what is not in the results on record.

        Args:
            summary: one or two sentences.
            confidence: of the rules.
            statements: text, tool and quote of each.
        """
        refs = {source: _ref(self._execution, source) for source in _CALLS}
        claims = tuple(
            Claim(text=text, citations=(Citation(call_id=refs[source], quote=quote),))
            for text, source, quote in statements
        )
        finding = Finding(summary=shorten_text(summary), confidence=confidence, claims=claims)
        evidence = await self._world.recorder.evidence(refs.values())
        checked = check_citations(finding, evidence)
        return checked.model_copy(update={"claims": tuple(claim for claim in checked.claims if claim.supported)})

    def _id(self, index: int) -> UUID:
        return tool_call_id(self._execution, _BEFORE_MESSAGES, index, self._tries.get(index, 0))

    def _event(self, source: Source, outcome: ToolOutcome, status: EventStatus) -> Event:
        call = self._id(_CALLS.index(source))
        return Event(
            id=event_id(call, "call"),
            type=EventType.LLM_TOOL_CALL,
            status=status,
            content=truncate_for_timeline(outcome.content),
            metadata={
                "server": SERVER,
                "tool": source.value,
                "name": f"{SERVER}.{source.value}",
                "arguments": self._arguments,
                "call_id": _ref(self._execution, source),
                "place": [_BEFORE_MESSAGES, _CALLS.index(source)],
                "is_error": outcome.is_error,
                **replay_metadata(outcome.replayed),
            },
            stage=self._run.id,
            execution=self._execution,
            tool_call=call,
        )


def _conclusion(finding: Finding) -> str:
    claims = "\n".join(f"- {claim.text}{_cited(claim)}" for claim in finding.claims)
    return with_finding(f"{finding.summary}\n\n{claims}".strip(), finding)


def _cited(claim: Claim) -> str:
    """The quote of a claim, where it says more than the claim itself."""
    quotes = [citation.quote for citation in claim.citations if citation.quote not in claim.text]
    return "".join(f"\n  {quote}" for quote in quotes)


def _arguments(run: ChangesRun, subject: AlertSubject) -> str:
    """The arguments of both calls, as JSON."""
    said = {
        "namespace": run.namespace,
        "named": list(subject.names),
        "alertedAt": subject.began.isoformat() if subject.began is not None else None,
        "windowSeconds": run.plan.window_seconds,
        "serviceAccountName": run.plan.account,
        "reader": run.plan.reader,
    }
    return orjson.dumps({key: value for key, value in said.items() if value is not None}).decode()


def _ref(execution: UUID, source: Source) -> str:
    return call_ref(idempotency_key(execution, _BEFORE_MESSAGES, _CALLS.index(source)))


def _concluded(run: ChangesRun, execution: UUID, text: str) -> Event:
    prose, block = without_block(text)
    return Event(
        id=event_id(execution, "conclusion"),
        type=EventType.FINAL_ANALYSIS,
        status=EventStatus.COMPLETED,
        content=prose,
        metadata={"finding": block},
        stage=run.id,
        execution=execution,
    )
