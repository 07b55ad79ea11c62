"""`timeline NAME [-f]`: what happened in an investigation and in the questions about it, as it is or as it grows."""

import sys
from typing import Any
from uuid import UUID

from pydantic import Field
from rich.console import Console, Group, RenderableType
from rich.status import Status
from rich.text import Text

from tarsy.cli.output import Output, for_programs, printer, write_output
from tarsy.cli.render import event_block, finding_lines
from tarsy.client.api import TarsyClient
from tarsy.client.errors import ApiUseError
from tarsy.client.following import follow_investigation, pages
from tarsy.client.plain_text import plain
from tarsy.client.waiting import accepted, goes_on, investigation_goes_on
from tarsy.http.live.messages import StageChange
from tarsy.http.views.timeline import EventView, FindingView, RunHead, TimelineView
from tarsy.record.finding import Finding
from tarsy.record.run import State
from tarsy.record.timeline import TimelineEvent
from tarsy.record.words import phase_of

_CUT = "         … the text is longer: `timeline` without -f shows all of it"


class WholeTimeline(TimelineView):
    """All of a timeline, with those of the answers to questions about the investigation."""

    questions: tuple[TimelineView, ...] = Field(description="In the order in which they were asked.")


async def show_timeline(door: TarsyClient, namespace: str, name: str, output: Output, *, following: bool) -> int:
    """Prints the timeline of an investigation; with `following` to its end. Returns the exit status.

    Raises:
        ApiUseError: it is not on record, or may not be read.
    """
    if for_programs(output):
        if following:
            with goes_on(investigation_goes_on(namespace, name)):
                await accepted(door, namespace, name)
                await follow_investigation(door, namespace, name, ProgramTeller(output))
            return 0
        write_output(await _whole(door, namespace, name), output)
        return 0
    console = printer()
    if following:
        await follow_on_screen(door, namespace, name, console, wide=output == "wide")
        return 0
    whole = await _whole(door, namespace, name)
    for one in (whole, *whole.questions):
        for event in one.items:
            console.print(timeline_block(event, wide=output == "wide"))
        console.print(outcome(one.investigation) if one.investigation.state.finished else where(one.investigation))
    return 0


async def follow_on_screen(
    door: TarsyClient, namespace: str, name: str, console: Console, *, wide: bool = False
) -> RunHead:
    """Prints an investigation as it goes on, to its end, and how it ended."""
    with goes_on(investigation_goes_on(namespace, name)), console.status("waiting to be accepted") as line:
        await accepted(door, namespace, name)
        head = await follow_investigation(door, namespace, name, ScreenTeller(console, line, wide=wide))
    console.print(outcome(head))
    return head


class ScreenTeller:
    """Prints events, with a line below them that says where the run is."""

    def __init__(self, console: Console, line: Status, *, wide: bool = False) -> None:
        self._console, self._line, self._wide = console, line, wide
        self._stages: dict[int, StageChange] = {}

    def closed(self, event: EventView, *, truncated: bool) -> None:
        self._console.print(timeline_block(event, wide=self._wide))
        if truncated:
            self._console.print(
                Text("         … the text is longer: `timeline` without -f shows all of it", style="dim")
            )

    def begun(self, event: EventView) -> None:
        pass

    def words(self, event: UUID, offset: int, text: str) -> None:
        pass

    def run(self, head: RunHead) -> None:
        self._line.update(where(head, self._running()))

    def stage(self, stage: StageChange) -> None:
        self._stages[stage.index] = stage
        self._line.update(Text(f"Running  {self._running()}", style="dim"))

    def away(self, why: str) -> None:
        self._line.update(Text(f"{plain(why)}; trying again", style="yellow"))

    def _running(self) -> str:
        running = (stage for stage in self._stages.values() if stage.state is State.RUNNING)
        return ", ".join(f"{plain(s.name)} ({s.agents_finished}/{s.agents} agents)" for s in running)


class ProgramTeller:
    """Writes events for programs: one JSON object a line, or one YAML document each."""

    def __init__(self, output: Output) -> None:
        self._output = output

    def closed(self, event: EventView, *, truncated: bool) -> None:
        self._write({"event": event.model_dump(mode="json", by_alias=True), "truncated": truncated})

    def begun(self, event: EventView) -> None:
        pass

    def words(self, event: UUID, offset: int, text: str) -> None:
        pass

    def run(self, head: RunHead) -> None:
        self._write({"investigation": head.model_dump(mode="json", by_alias=True)})

    def stage(self, stage: StageChange) -> None:
        self._write({"stage": stage.model_dump(mode="json", by_alias=True)})

    def away(self, why: str) -> None:
        pass

    def _write(self, value: dict[str, Any]) -> None:
        write_output(value, self._output, one_of_many=True)
        sys.stdout.flush()


def timeline_block(event: EventView, *, wide: bool = False) -> RenderableType:
    """An event for people; `wide` with the ids of its calls in the trace."""
    shown = event_block(as_event(event), full=True)
    ids = [f"{kind} {found}" for kind, found in (("--llm", event.model_call), ("--mcp", event.tool_call)) if found]
    return Group(shown, Text(f"         {' '.join(ids)}", style="dim")) if wide and ids else shown


def as_event(event: EventView) -> TimelineEvent:
    """An event as the renderer takes it, safe for a terminal."""
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
    )


def outcome(head: RunHead) -> RenderableType:
    """How a run ended."""
    style = "bold green" if head.state is State.COMPLETED else "bold red"
    lines: list[RenderableType] = [
        Text(f"{head.namespace}/{head.name}: {phase_of(head.state, head.desired_state)}", style=style)
    ]
    if head.finding is not None:
        lines += finding_lines(as_finding(head.finding))
    if head.executive_summary:
        lines.append(Text(f"Summary: {plain(head.executive_summary).strip()}"))
    if head.failure is not None:
        lines.append(Text(f"{plain(head.failure.reason)}: {plain(head.failure.message)}", style="red"))
    return Group(*lines)


def as_finding(view: FindingView) -> Finding:
    """A finding as the renderer takes it, safe for a terminal."""
    return Finding.model_validate(_plain(view.model_dump()))


def where(head: RunHead, stages: str = "") -> Text:
    """Where a run is, in one line."""
    return Text(f"{phase_of(head.state, head.desired_state)}  {stages}".rstrip(), style="dim")


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


async def _whole(door: TarsyClient, namespace: str, name: str) -> WholeTimeline:
    main = await _merged(door, namespace, name)
    answers = []
    for question in await door.questions(namespace, name):
        try:
            answers.append(await _merged(door, namespace, name, question))
        except ApiUseError as error:
            if error.status != 404:  # refused, or not accepted yet: it has no record
                raise
    return WholeTimeline(**dict(main), questions=tuple(answers))


async def _merged(door: TarsyClient, namespace: str, name: str, question: str | None = None) -> TimelineView:
    found: dict[UUID, EventView] = {}
    last: TimelineView | None = None
    async for page in pages(door, namespace, name, question):
        found |= {event.id: event for event in page.items}
        last = page
    assert last is not None
    items = tuple(sorted(found.values(), key=lambda event: event.seq))
    return last.model_copy(update={"items": items, "more": False})
