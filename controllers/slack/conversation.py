"""Answers questions that people ask in Slack, where the thread of a notification is.

Watches: events that mention the app, over Socket Mode, and the questions in Postgres, every two seconds. Decides:
whether a message is a question about an investigation, and who asks it. Writes: questions into Postgres before their
event is acknowledged, ChatMessages, and replies in Slack. Only the active controller is connected; while two are, or
one dies at any point, a message still makes one ChatMessage. A reply may be sent twice then, never none.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol
from uuid import UUID

import aiohttp

from tarsy.controllers.machinery.while_active import run_while_active
from tarsy.controllers.notifications.wire import SEND_SECONDS, SendResult
from tarsy.controllers.slack.asking import (
    MOST_OPEN,
    NotAsked,
    check_question,
    check_rights,
    create_message,
    message_name,
)
from tarsy.controllers.slack.mentions import MOST_QUESTION, Mentioned, mentioned
from tarsy.controllers.slack.replies import NO_LIST, UNKNOWN_USER, method_and_body, private_reply, public_reply
from tarsy.controllers.slack.socket_mode import CannotConnect, SocketMode, connected_socket
from tarsy.controllers.slack.users import SlackUsers, UserListError, read_users
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.lease import LeaderElection
from tarsy.observe.metric_table import SLACK_CONNECTED, SLACK_QUESTIONS
from tarsy.observe.metrics import Metrics
from tarsy.plan.destinations import Destinations
from tarsy.record.reading.conditions import phase
from tarsy.record.run import InvestigationRecord, State
from tarsy.resources.v1alpha1 import ChatMessage
from tarsy.store.errors import StoreError
from tarsy.store.reading.reads import Reads
from tarsy.store.slack import SlackMention, SlackOutcome, SlackQuestion, SlackQuestions

_log = logging.getLogger(__name__)

ROUND_SECONDS = 2.0
CLAIM_SECONDS = SEND_SECONDS * 3
FORGET_SECONDS = 7 * 86_400.0
REFUSE_AGAIN_SECONDS = 3600.0
"""A person gets the same refusal once in this time, however often they write."""

MOST_TRIES = 8
GIVE_UP_SECONDS = 3600.0
_NEVER_SECONDS = 2 * 86_400.0
"""A question that is unanswered for so long is not waited for any more."""

_AT_ONCE = 8
_GIVE_BACK_SECONDS = 2.0
_LONGEST_PAUSE_SECONDS = 600.0
_MOST_TOKEN_BYTES = 4096


@dataclass(frozen=True, slots=True)
class SlackApp:
    """Names the files of the app of an installation, and where Slack is.

    Args:
        app_token: file with the token that opens connections (xapp-).
        bot_token: file with the token that posts replies (xoxb-).
        users: file with the administrator's list.
        api_url: base URL of Slack's Web API.
        page: address of the web UI; None: replies have no link.
    """

    app_token: Path
    bot_token: Path
    users: Path
    api_url: str = "https://slack.com/api"
    page: str | None = None


class CallsSlack(Protocol):
    """Calls Slack's Web API; see `NotificationSender`."""

    async def slack_call(
        self, api_url: str, method: str, token: str, body: Mapping[str, Any], namespace: str
    ) -> SendResult:
        """Calls a method.

        Args:
            api_url: base URL of the API.
            method: such as `chat.postMessage`.
            token: of the app, or of its bot.
            body: the arguments.
            namespace: for which the URL is judged.
        """
        ...


@dataclass(frozen=True, slots=True)
class SlackPorts:
    """Leads to what a conversation needs of the world.

    Args:
        client: the Kubernetes API, as the operator.
        questions: the questions in Postgres.
        reads: the record.
        sender: calls Slack's Web API.
        destinations: where URLs may lead.
    """

    client: KubeClient
    questions: SlackQuestions
    reads: Reads
    sender: CallsSlack
    destinations: Destinations


class SlackConversation:
    """Receives questions and answers them.

    Args:
        app: the app in Slack.
        ports: Kubernetes, Postgres and Slack.
        namespace: of the operator.
        mask: removes secrets from questions before they are stored.
        metrics: the metrics of the process.
        pause: seconds until the next try, by the number of tries.
    """

    def __init__(
        self,
        app: SlackApp,
        ports: SlackPorts,
        *,
        namespace: str,
        mask: Callable[[str], str],
        metrics: Metrics | None = None,
        pause: Callable[[int], float] | None = None,
    ) -> None:
        self._app = app
        self._client = ports.client
        self._questions = ports.questions
        self._reads = ports.reads
        self._sender = ports.sender
        self._destinations = ports.destinations
        self._namespace = namespace
        self._mask = mask
        self._metrics = metrics or Metrics()
        self._pause = pause or _pause
        self._news = asyncio.Event()
        self._socket = SocketMode(self._open, self.take)
        self._metrics.pull(SLACK_CONNECTED, lambda: {(): self._socket.connected})

    async def run(self, election: LeaderElection) -> None:
        """Answers questions while this replica is active, until cancelled."""
        await run_while_active(election, self._work, "the conversation with Slack")

    async def _work(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._socket.run())
            group.create_task(self._rounds())

    async def _rounds(self) -> None:
        while True:
            self._news.clear()
            try:
                await self.round()
            except StoreError as error:
                _log.warning("questions from Slack could not be read: %s", error)
            try:
                async with asyncio.timeout(ROUND_SECONDS):
                    await self._news.wait()
            except TimeoutError:
                continue

    @asynccontextmanager
    async def _open(self) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """Asks Slack for an address and connects to it. Raises CannotConnect."""
        token = await _token(self._app.app_token)
        if isinstance(token, SendResult):
            raise CannotConnect(str(token.problem))
        api = self._app.api_url
        answer = await self._sender.slack_call(api, "apps.connections.open", token, {}, self._namespace)
        if answer.problem is not None:
            raise CannotConnect(answer.problem, passing=answer.passing)
        url = answer.answer.get("url")
        if not isinstance(url, str) or not url.startswith("wss://" if api.startswith("https:") else "ws://"):
            raise CannotConnect("Slack gave no address for a WebSocket", passing=False)
        async with connected_socket(url, self._destinations, self._namespace) as socket:
            yield socket

    async def take(self, payload: Mapping[str, Any]) -> None:
        """Stores a question from the payload of an event; everything else in Slack is ignored.

        Raises:
            StoreError: Postgres is unavailable or refused.
        """
        message = mentioned(payload)
        if message is not None and await self._questions.receive(self._masked(message)):
            self._news.set()

    def _masked(self, message: Mentioned) -> SlackMention:
        """Returns what is stored. Of a text that is too long, so much that its refusal can say so."""
        text = message.text
        if len(text) <= MOST_QUESTION:
            text = self._mask(text)[:MOST_QUESTION]
        else:
            text = "." * min(len(text), 10 * MOST_QUESTION)
        teams = tuple(sorted(message.teams))
        return SlackMention(message.event, message.channel, message.thread, message.ts, message.person, teams, text)

    async def round(self) -> None:
        """Brings all questions forward that are due. Raises StoreError."""
        while taken := await self._questions.take(_AT_ONCE, CLAIM_SECONDS):
            try:
                async with asyncio.TaskGroup() as group:
                    for question in taken:
                        group.create_task(self._forward(question))
            except asyncio.CancelledError:
                await self._give_back(taken)
                raise
        await self._questions.forget(FORGET_SECONDS)

    async def _give_back(self, taken: Sequence[SlackQuestion]) -> None:
        """Lets the next active replica go on at once, instead of when the time of this one is over."""
        try:
            async with asyncio.timeout(_GIVE_BACK_SECONDS):
                await self._questions.release(taken)
        except (StoreError, TimeoutError) as error:
            _log.warning("reading questions from Slack again in %.0f s: %s", CLAIM_SECONDS, error)

    async def _forward(self, question: SlackQuestion) -> None:
        """Brings a question one state forward; while Postgres or the API server is away it stays due."""
        try:
            match question.state:
                case "received":
                    await self._ask(question)
                case "asked":
                    await self._look(question)
                case "reply":
                    await self._send(question)
        except ApiError as error:
            _log.warning("a question from Slack is waiting: %s", error)
            if question.state == "received" and question.tries >= MOST_TRIES:
                text = "I could not ask your question: the Kubernetes API does not answer. Ask again later."
                await self._refuse(question, "refused", text)
            else:
                await self._questions.later(question.id, self._pause(question.tries), error.reason)
        except StoreError as error:
            _log.warning("a question from Slack is waiting: %s", error)

    async def _ask(self, question: SlackQuestion) -> None:
        about = await self._reads.record(question.investigation)
        if about is None:
            return  # its row went with the record
        try:
            users = await self._users()
        except UserListError as error:
            _log.error("the list of Slack users cannot be used: %s", error)
            return await self._refuse(question, "refused", NO_LIST)
        author = users.author(question.person, frozenset(question.teams))
        if author is None:
            return await self._refuse(question, "unknown_user", UNKNOWN_USER)
        if await self._questions.open(question.person, without=question.id) >= MOST_OPEN:
            text = f"{MOST_OPEN} of your questions wait for their answers. Ask again when one is answered."
            return await self._refuse(question, "too_many", text)
        try:
            text = check_question(question, about)
            await check_rights(self._client, author, about)
            uid = await create_message(self._client, question, text, author, about)
        except NotAsked as why:
            return await self._refuse(question, "refused", str(why))
        await self._questions.asked(question.id, uid)
        self._news.set()

    async def _users(self) -> SlackUsers:
        return await asyncio.to_thread(read_users, self._app.users)

    async def _refuse(self, question: SlackQuestion, outcome: SlackOutcome, text: str) -> None:
        """Tells the person why, in a message that only they see; the same refusal is not repeated all the time."""
        if outcome != "refused" and await self._questions.told_lately(question.person, outcome, REFUSE_AGAIN_SECONDS):
            await self._questions.end(question.id, "silent")
            self._metrics.add(SLACK_QUESTIONS, outcome="silent")
            return
        await self._questions.reply(question.id, outcome, private_reply(question, text))
        self._news.set()

    async def _look(self, question: SlackQuestion) -> None:
        """Looks whether there is an answer."""
        about = await self._reads.record(question.investigation)
        if about is None or question.message is None:
            return
        text = await self._answer(question.message, message_name(question.id), about.namespace)
        if text is None and question.age > _NEVER_SECONDS:
            text = "There is no answer."
        if text is None:
            await self._questions.later(question.id, ROUND_SECONDS)
            return
        await self._questions.reply(question.id, "answered", public_reply(question, text, about, self._app.page))
        self._news.set()

    async def _answer(self, message: UUID, name: str, namespace: str) -> str | None:
        """Returns the answer, or the sentence why there is none; None: it is not there yet."""
        record = await self._reads.record(message)
        if record is not None:
            return _words(record) if record.state.finished else None
        obj = await self._client.find(ChatMessage.KIND, namespace, name)
        if obj is None or obj["metadata"].get("uid") != str(message):
            return "There is no answer: the question was deleted."
        status = obj.get("status") or {}
        if status.get("finishedAt") is None:
            return None
        return f"There is no answer: {(status.get('lastError') or {}).get('message') or status.get('phase')}"

    async def _send(self, question: SlackQuestion) -> None:
        """Sends the reply and notes the result."""
        outcome = question.outcome or "answered"
        method, body = method_and_body(question.reply or {})
        token = await _token(self._app.bot_token)
        if isinstance(token, SendResult):
            result = token
        else:
            result = await self._sender.slack_call(self._app.api_url, method, token, body, self._namespace)
        if result.problem is None:
            await self._questions.done(question.id)
            self._metrics.add(SLACK_QUESTIONS, outcome=outcome)
        elif not result.passing or question.tries >= MOST_TRIES or question.age >= _NEVER_SECONDS + GIVE_UP_SECONDS:
            _log.warning("giving up a reply in Slack after %d attempts: %s", question.tries, result.problem)
            await self._questions.end(question.id, "given_up", result.problem)
            self._metrics.add(SLACK_QUESTIONS, outcome="given_up")
        else:
            pause = max(self._pause(question.tries), result.after or 0.0)
            _log.info("a reply in Slack could not be sent; retrying in %.0f s: %s", pause, result.problem)
            await self._questions.later(question.id, pause, result.problem)


async def _token(path: Path) -> str | SendResult:
    """Reads a token; a result with the problem when there is none."""

    def read() -> str:
        with path.open(encoding="utf-8") as file:
            return file.read(_MOST_TOKEN_BYTES).strip()

    try:
        token = await asyncio.to_thread(read)
    except (OSError, UnicodeDecodeError):
        return SendResult(f"{path} cannot be read; create the Secret tarsy-slack")
    return token or SendResult(f"{path} is empty; write the token into the Secret tarsy-slack")


def _words(record: InvestigationRecord) -> str:
    """Returns the answer of a finished question, else why there is none."""
    outcome = record.outcome
    if record.state is State.COMPLETED and outcome is not None and outcome.final_analysis:
        return outcome.final_analysis
    failure = outcome.failure.message if outcome is not None and outcome.failure is not None else phase(record)
    return f"There is no answer: {failure}"


def _pause(tries: int) -> float:
    return float(min(5.0 * 2 ** (tries - 1), _LONGEST_PAUSE_SECONDS))
