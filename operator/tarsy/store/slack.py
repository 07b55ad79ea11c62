"""Stores the Slack threads of notified investigations, and the questions that people ask there.

Decision: a question is stored before its event is acknowledged, once for an event id and once for a message, so that
neither a repeated delivery nor a second replica asks it twice. Its text leaves the row with the answer.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import NAMESPACE_URL, UUID, uuid5

import asyncpg

from tarsy.store.database import call
from tarsy.store.queries import load

SlackOutcome = Literal["answered", "refused", "unknown_user", "too_many", "given_up", "silent"]
"""Outcome of a question; `silent`: refused without a reply, because the person got the same one lately."""


@dataclass(frozen=True, slots=True)
class SlackMention:
    """A message in a thread that mentions the app: ids as Slack gives them, the text masked."""

    event: str
    channel: str
    thread: str
    ts: str
    person: str
    teams: tuple[str, ...]
    question: str


@dataclass(frozen=True, slots=True)
class SlackQuestion:
    """A question that is not answered yet.

    `message` is the uid of its ChatMessage once that exists; `reply` is the request to Slack's Web API that is still to
    be sent. `tries` counts those of its state, with this one; `age` is in seconds. `taken_until` is when another may
    take it, should it not be brought forward before.
    """

    id: UUID
    channel: str
    thread: str
    ts: str
    person: str
    teams: tuple[str, ...]
    investigation: UUID
    question: str | None
    state: Literal["received", "asked", "reply"]
    outcome: SlackOutcome | None
    message: UUID | None
    reply: Mapping[str, Any] | None
    tries: int
    age: float
    taken_until: datetime


class SlackQuestions:
    """Stores and hands out questions.

    Args:
        pool: from `open_pool`.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._sql = load("slack")

    async def begin_thread(self, channel: str, thread: str, investigation: UUID) -> None:
        """Stores that a notification about an investigation began a thread."""
        await self._execute(
            "store a thread", "begin_thread", channel=channel, thread=thread, investigation=investigation
        )

    async def join_thread(self, channel: str, thread: str, investigation: UUID) -> None:
        """Stores that an investigation was told in a thread; a thread of another namespace is left as it is."""
        await self._execute(
            "store a thread", "join_thread", channel=channel, thread=thread, investigation=investigation
        )

    async def receive(self, mention: SlackMention) -> bool | None:
        """Stores a question.

        Returns:
            Whether it is new; None: no investigation was told in its thread.

        Raises:
            StoreError: Postgres is unavailable or refused.
        """
        about = self._sql["investigation"](channel=mention.channel, thread=mention.thread)

        async def write(connection: asyncpg.Connection) -> bool | None:
            investigation = await connection.fetchval(*about)
            if investigation is None:
                return None
            new = self._sql["receive"](
                id=uuid5(NAMESPACE_URL, f"slack:{mention.channel}/{mention.ts}"),
                event=mention.event,
                channel=mention.channel,
                thread=mention.thread,
                ts=mention.ts,
                person=mention.person,
                teams=list(mention.teams),
                investigation=investigation,
                question=mention.question,
            )
            return await connection.fetchval(*new) is not None

        return await call(self._pool, "store a question from Slack", write)

    async def take(self, most: int, seconds: float) -> list[SlackQuestion]:
        """Takes up to `most` due questions, which this caller has `seconds` to bring forward."""

        async def take(connection: asyncpg.Connection) -> list[asyncpg.Record]:
            found: list[asyncpg.Record] = await connection.fetch(*self._sql["take"](limit=most, seconds=seconds))
            return found

        rows = await call(self._pool, "take due questions from Slack", take)
        return [SlackQuestion(**{**row, "teams": tuple(row["teams"])}) for row in rows]

    async def release(self, questions: Sequence[SlackQuestion]) -> None:
        """Gives back questions that were taken; those that were brought forward since stay as they are."""
        ids, until = [one.id for one in questions], [one.taken_until for one in questions]
        await self._execute("give back questions from Slack", "release", ids=ids, until=until)

    async def asked(self, question: UUID, message: UUID) -> None:
        """Notes the ChatMessage of a question."""
        await self._execute("note a ChatMessage", "asked", id=question, message=message)

    async def reply(self, question: UUID, outcome: SlackOutcome, reply: Mapping[str, Any]) -> None:
        """Stores the reply to a question, which is then due."""
        await self._execute("store a reply", "reply", id=question, outcome=outcome, reply=dict(reply))

    async def later(self, question: UUID, seconds: float, problem: str | None = None) -> None:
        """Postpones a question by `seconds`."""
        await self._execute("postpone a question from Slack", "later", id=question, seconds=seconds, problem=problem)

    async def done(self, question: UUID) -> None:
        """Notes that the reply to a question was sent."""
        await self._execute("note a sent reply", "done", id=question, state="done", outcome=None, problem=None)

    async def end(self, question: UUID, outcome: SlackOutcome, problem: str | None = None) -> None:
        """Ends a question without a reply."""
        await self._execute(
            "end a question from Slack", "done", id=question, state="failed", outcome=outcome, problem=problem
        )

    async def told_lately(self, person: str, outcome: SlackOutcome, seconds: float) -> bool:
        """Returns whether a person got a reply with this outcome in the last `seconds`."""
        return bool(await self._value("told_lately", person=person, outcome=outcome, seconds=seconds))

    async def open(self, person: str, *, without: UUID) -> int:
        """Counts the unanswered questions of a person, without one of them."""
        return int(await self._value("open", person=person, **{"except": without}))

    async def forget(self, seconds: float) -> None:
        """Deletes questions that ended more than `seconds` ago."""
        await self._execute("forget questions from Slack", "forget", seconds=seconds)

    async def _value(self, statement: str, /, **values: Any) -> Any:
        async def read(connection: asyncpg.Connection) -> Any:
            return await connection.fetchval(*self._sql[statement](**values))

        return await call(self._pool, "read questions from Slack", read)

    async def _execute(self, what: str, statement: str, /, **values: Any) -> None:
        async def write(connection: asyncpg.Connection) -> None:
            await connection.execute(*self._sql[statement](**values))

        await call(self._pool, what, write)
