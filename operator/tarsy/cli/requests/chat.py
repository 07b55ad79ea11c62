"""Asks a question about a finished investigation and streams the answer (`chat NAME QUESTION`).

Decision: the object and the record are watched at the same time. The object reports whether the question is accepted or
rejected, the record streams the answer and decides how it ended.
"""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from rich.console import Console
from rich.text import Text

from tarsy.cli.output import Output, beside, for_programs, printer, write_output
from tarsy.cli.runs.render import timeline_block
from tarsy.client.api import TarsyClient, status_condition
from tarsy.client.following import follow_investigation
from tarsy.client.plain_text import plain
from tarsy.client.waiting import goes_on, until_taken
from tarsy.http.live.messages import StageChange
from tarsy.http.models import View
from tarsy.http.views.common import FailureView
from tarsy.http.views.timeline import EventView, RunHead
from tarsy.record.run import State
from tarsy.record.timeline import EventType
from tarsy.record.words import phase_of

_ANSWERS = (EventType.LLM_RESPONSE, EventType.FINAL_ANALYSIS)


class ChatReply(View):
    """A question and its answer."""

    namespace: str
    investigation: str
    chat_message: str
    uid: UUID
    question: str
    state: State
    answer: str | None
    failure: FailureView | None
    started_at: datetime | None
    finished_at: datetime | None


async def ask_and_follow(client: TarsyClient, namespace: str, name: str, question: str, output: Output) -> int:
    """Asks a question and prints its answer; returns the exit status, 0 only when it is answered.

    Args:
        client: the API.
        namespace: of the investigation.
        name: of the investigation.
        question: the question.
        output: for people, or the format for programs.

    Raises:
        ApiUseError: the caller may not ask, or the question was rejected.
    """
    console, aside = printer(), beside()
    teller = AnswerTeller(console, aside, wide=output == "wide", silent=for_programs(output))
    made = await client.ask(namespace, name, question)
    left = (
        f"question {namespace}/{made.name} continues: read its answer with `timeline {name} -n {namespace}`, "
        f"stop it with `kubectl delete chatmessages.tarsy.dev {made.name} -n {namespace}`"
    )
    with goes_on(left), teller:
        head = await _answered(client, namespace, name, made.name, teller)
    if for_programs(output):
        write_output(
            ChatReply(
                namespace=namespace,
                investigation=name,
                chat_message=made.name,
                uid=head.uid,
                question=question,
                state=head.state,
                answer=head.final_analysis,
                failure=head.failure,
                started_at=head.started_at,
                finished_at=head.finished_at,
            ),
            output,
        )
    else:
        teller.end(head)
    return 0 if head.state is State.COMPLETED else 1


async def _answered(client: TarsyClient, namespace: str, name: str, question: str, teller: "AnswerTeller") -> RunHead:
    def taken(obj: Mapping[str, Any]) -> bool | None:
        return True if status_condition(obj, "Accepted") == "True" else None

    following = asyncio.create_task(follow_investigation(client, namespace, name, teller, question))
    waiting = asyncio.create_task(until_taken(client, "ChatMessage", namespace, question, taken, name))
    try:
        await asyncio.wait({following, waiting}, return_when=asyncio.FIRST_COMPLETED)
        if not following.done():
            waiting.result()  # raises if the question was rejected; from here on the record decides
        return await following
    finally:
        for task in (following, waiting):
            task.cancel()
        await asyncio.wait({following, waiting})


class AnswerTeller:
    """Prints an answer as it streams; steps before it and a status line go to standard error."""

    def __init__(self, console: Console, aside: Console, *, wide: bool, silent: bool) -> None:
        self._console, self._aside, self._wide, self._silent = console, aside, wide, silent
        self._line = aside.status("waiting for its turn")
        self._open: UUID | None = None
        self._taken = 0
        self._text = ""
        self._said = ""

    def __enter__(self) -> Self:
        if not self._silent:
            self._line.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._line.stop()

    def begun(self, event: EventView) -> None:
        if event.type in _ANSWERS and event.id != self._open:
            self._break()
            self._open = event.id
        elif event.type not in _ANSWERS:
            self._line.update(event.type.replace("_", " "))

    def words(self, event: UUID, offset: int, text: str) -> None:
        """Prints the part of a streamed text that is not printed yet.

        Args:
            event: id of the event; the text of any event but the open answer is ignored.
            offset: position of the text in the event, in characters; a text after a gap is ignored.
            text: the text from the offset on.
        """
        if self._silent or event != self._open or offset > self._taken:
            return
        new = text[self._taken - offset :]
        self._taken += len(new)
        self._write(plain(new))

    def closed(self, event: EventView, *, truncated: bool) -> None:
        if self._silent:
            return
        if event.type not in _ANSWERS:
            self._break()
            if event.type is not EventType.USER_QUESTION:
                self._line.stop()
                self._aside.print(timeline_block(event, wide=self._wide))
                self._line.start()
            return
        text = plain(event.content)
        if event.id != self._open and text.strip() == self._said:
            return  # the last response is the answer
        if event.id != self._open or not text.startswith(self._text):
            self._break()
        self._write(text[len(self._text) :])
        self._said = text.strip()
        self._break()

    def run(self, head: RunHead) -> None:
        self._line.update(phase_of(head.state, head.desired_state))

    def stage(self, stage: StageChange) -> None:
        pass

    def away(self, why: str) -> None:
        self._line.update(f"{plain(why)}; retrying")

    def end(self, head: RunHead) -> None:
        """Prints how the answer ended, if it failed."""
        self._break()
        if head.final_analysis and plain(head.final_analysis).strip() != self._said:
            self._console.print(Text(plain(head.final_analysis)), soft_wrap=True)
        if head.failure is not None:
            text = f"{plain(head.failure.reason)}: {plain(head.failure.message)}"
            self._aside.print(Text(text, style="red"))
        elif head.state is not State.COMPLETED:
            self._aside.print(Text(f"the question ended: {phase_of(head.state)}", style="red"))

    def _write(self, text: str) -> None:
        self._line.stop()
        self._text += text
        self._console.print(Text(text), end="", soft_wrap=True)

    def _break(self) -> None:
        """Ends the text of one event."""
        if self._text:
            if not self._text.endswith("\n"):
                self._console.print()
            self._line.start()
        self._open, self._taken, self._text = None, 0, ""
