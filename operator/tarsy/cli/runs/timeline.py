"""Prints the timeline of an investigation and of the questions about it (`timeline NAME [-f]`).

A source reads the timelines, from the API here or from the database in `database_timeline`; both are rendered alike.
"""

import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol
from uuid import UUID

from pydantic import Field
from rich.console import Console
from rich.status import Status
from rich.text import Text

from tarsy.cli.output import Output, for_programs, printer, write_output
from tarsy.cli.runs.render import RunSummary, outcome_block, status_line, timeline_block
from tarsy.client.api import TarsyClient
from tarsy.client.errors import ApiUseError
from tarsy.client.following import Teller, follow_investigation, pages
from tarsy.client.plain_text import plain
from tarsy.client.waiting import accepted, goes_on, investigation_goes_on
from tarsy.http.live.messages import StageChange
from tarsy.http.views.timeline import EventView, RunHead, TimelineView
from tarsy.record.run import InvestigationRecord, State

Timeline = tuple[TimelineView, RunSummary]


class WholeTimeline(TimelineView):
    """Holds a whole timeline, with those of the answers to questions about the investigation."""

    questions: tuple[TimelineView, ...] = Field(description="In the order in which they were asked.")


class RunTeller(Teller, Protocol):
    """Shows a run to its end, from the API or from the record."""

    def recorded(self, record: InvestigationRecord) -> None:
        """Shows the state of the record."""
        ...


Follow = Callable[[RunTeller], Awaitable[RunSummary]]
"""Follows one run to its end."""


class TimelineSource(Protocol):
    """Reads the timelines of an investigation and of the answers to the questions about it."""

    namespace: str
    name: str

    async def timelines(self) -> list[Timeline]:
        """Returns the timeline of the investigation, then those of the answers."""
        ...

    def runs(self) -> AsyncIterator[Follow]:
        """Yields what follows each run that the source can follow."""
        ...


class ApiTimeline:
    """Reads timelines from the API; follows the investigation only."""

    def __init__(self, client: TarsyClient, namespace: str, name: str) -> None:
        self._client, self.namespace, self.name = client, namespace, name

    async def timelines(self) -> list[Timeline]:
        views = [await self._merged()]
        for question in await self._client.questions(self.namespace, self.name):
            try:
                views.append(await self._merged(question))
            except ApiUseError as error:
                if error.status != 404:  # refused, or not accepted yet: it has no record
                    raise
        return [(view, RunSummary.of_head(view.investigation)) for view in views]

    async def runs(self) -> AsyncIterator[Follow]:
        yield self._follow

    async def _follow(self, teller: RunTeller) -> RunSummary:
        return RunSummary.of_head(await follow_accepted(self._client, self.namespace, self.name, teller))

    async def _merged(self, question: str | None = None) -> TimelineView:
        found: dict[UUID, EventView] = {}
        last: TimelineView | None = None
        async for page in pages(self._client, self.namespace, self.name, question):
            found |= {event.id: event for event in page.items}
            last = page
        assert last is not None
        items = tuple(sorted(found.values(), key=lambda event: event.seq))
        return last.model_copy(update={"items": items, "more": False})


async def show_timeline(source: TimelineSource, output: Output, *, following: bool) -> int:
    """Prints the timeline of an investigation and of the answers to the questions about it; returns the exit status.

    Args:
        source: reads the timelines.
        output: text (wide: with the ids of calls), or a format for programs.
        following: go on until the investigation has ended.

    Raises:
        ApiUseError: the investigation is not on record, or may not be read.
        StoreError: the same of the database.
    """
    console, wide = printer(), output == "wide"
    if following:
        with goes_on(investigation_goes_on(source.namespace, source.name)):
            async for follow in source.runs():
                if for_programs(output):
                    await follow(ProgramTeller(output))
                else:
                    await _on_screen(follow, console, wide=wide)
        return 0
    found = await source.timelines()
    if for_programs(output):
        (main, _), *answers = found
        write_output(WholeTimeline(**dict(main), questions=tuple(view for view, _ in answers)), output)
        return 0
    for view, run in found:
        for event in view.items:
            console.print(timeline_block(event, wide=wide))
        console.print(outcome_block(run) if run.state.finished else status_line(run))
    return 0


async def follow_accepted(client: TarsyClient, namespace: str, name: str, teller: Teller) -> RunHead:
    """Follows an investigation to its end, from before it is accepted.

    Args:
        client: the API.
        namespace: of the investigation.
        name: of the investigation.
        teller: shows what happens.
    """
    await accepted(client, namespace, name)
    return await follow_investigation(client, namespace, name, teller)


async def follow_on_screen(
    client: TarsyClient, namespace: str, name: str, console: Console, *, wide: bool = False
) -> RunHead:
    """Prints an investigation of the API as it goes on, and how it ended.

    Args:
        client: the API.
        namespace: of the investigation.
        name: of the investigation.
        console: the console to print to.
        wide: with the ids of calls in the trace.
    """
    with goes_on(investigation_goes_on(namespace, name)), console.status("waiting to be accepted") as line:
        head = await follow_accepted(client, namespace, name, ScreenTeller(console, line, wide=wide))
    console.print(outcome_block(RunSummary.of_head(head)))
    return head


async def _on_screen(follow: Follow, console: Console, *, wide: bool) -> None:
    with console.status("waiting to be accepted") as line:
        run = await follow(ScreenTeller(console, line, wide=wide))
    console.print(outcome_block(run))


class ScreenTeller:
    """Prints events, with a line below them that shows the state of the run."""

    def __init__(self, console: Console, line: Status, *, wide: bool = False, full: bool = True) -> None:
        self._console, self._line, self._wide, self._full = console, line, wide, full
        self._stages: dict[int, StageChange] = {}

    def closed(self, event: EventView, *, truncated: bool) -> None:
        self._console.print(timeline_block(event, wide=self._wide, full=self._full))
        if truncated:
            text = "         … the text is longer: `timeline` without -f shows all of it"
            self._console.print(Text(text, style="dim"))

    def begun(self, event: EventView) -> None:
        pass

    def words(self, event: UUID, offset: int, text: str) -> None:
        """Ignores the streamed `text` at character `offset` of the open `event`: only closed events are printed."""
        pass

    def run(self, head: RunHead) -> None:
        self._line.update(status_line(RunSummary.of_head(head, self._running())))

    def recorded(self, record: InvestigationRecord) -> None:
        self._line.update(status_line(RunSummary.of_record(record)))

    def stage(self, stage: StageChange) -> None:
        self._stages[stage.index] = stage
        self._line.update(Text(f"Running  {self._running()}", style="dim"))

    def away(self, why: str) -> None:
        self._line.update(Text(f"{plain(why)}; retrying", style="yellow"))

    def _running(self) -> str:
        running = (stage for stage in self._stages.values() if stage.state is State.RUNNING)
        return ", ".join(f"{plain(s.name)} ({s.agents_finished}/{s.agents} agents)" for s in running)


class ProgramTeller:
    """Writes events for programs: one JSON object a line, or one YAML document each."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._head: RunHead | None = None

    def closed(self, event: EventView, *, truncated: bool) -> None:
        self._write({"event": event.model_dump(mode="json", by_alias=True), "truncated": truncated})

    def begun(self, event: EventView) -> None:
        pass

    def words(self, event: UUID, offset: int, text: str) -> None:
        """Ignores the streamed `text` at character `offset` of the open `event`: only closed events are written."""
        pass

    def run(self, head: RunHead) -> None:
        self._write({"investigation": head.model_dump(mode="json", by_alias=True)})

    def recorded(self, record: InvestigationRecord) -> None:
        head = RunHead.of(record)
        known = self._head.model_copy(update={"revision": head.revision}) if self._head else None
        if head != known:
            self.run(head)
        self._head = head

    def stage(self, stage: StageChange) -> None:
        self._write({"stage": stage.model_dump(mode="json", by_alias=True)})

    def away(self, why: str) -> None:
        pass

    def _write(self, value: dict[str, Any]) -> None:
        write_output(value, self._output, one_of_many=True)
        sys.stdout.flush()
