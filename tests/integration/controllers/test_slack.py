"""Tests questions from Slack: who may ask, what is asked, once each, and what people read."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import rights
from apis import LocalApi
from integration.controllers.desk import Desk, eventually
from integration.controllers.grants import operator_kubeconfig, shipped
from tarsy.controllers.notifications.wire import NotificationSender
from tarsy.controllers.slack.asking import MOST_OPEN
from tarsy.controllers.slack.conversation import MOST_TRIES, SlackApp, SlackConversation, SlackPorts
from tarsy.kube.client import KubeClient
from tarsy.masking import default_masker
from tarsy.observe.metric_table import SLACK_OUTCOME, SLACK_QUESTIONS
from tarsy.observe.metrics import Metrics
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import SecretKey
from tarsy.record.run import RunOutcome, State
from tarsy.store.reading.trace import Trace
from tarsy.store.slack import SlackQuestions
from wire.slack import APP_TOKEN, BOT_TOKEN, CHANNEL, TEAM, Slack, slack_server

ANN, BOB, EVE = "U0000000ANN", "U0000000BOB", "U0000000EVE"
THREAD = "1700000000.000100"


async def no_secret(key: SecretKey) -> str:
    raise AssertionError(key)


class Chosen:
    """An election that is won, until it is not."""

    def __init__(self) -> None:
        self.active, self.passive = asyncio.Event(), asyncio.Event()
        self.active.set()

    def lose(self) -> None:
        self.active.clear()
        self.passive.set()


@dataclass
class Talk:
    """A namespace with a finished investigation, and a thread in Slack where it was told."""

    desk: Desk
    slack: Slack
    folder: Path
    metrics: Metrics
    about: UUID
    client: KubeClient

    def users(self, *names: str) -> None:
        """Writes the administrator's list: these users, of the group `on-call` of this namespace."""
        group = f"on-call-{self.desk.namespace}"
        lines = [f"  - {{slack: {one}, username: {one.lower()}@example.org, groups: [{group}]}}" for one in names]
        (self.folder / "users.yaml").write_text("\n".join([f"team: {TEAM}", "users:", *lines]) + "\n")

    def conversation(self) -> SlackConversation:
        """A replica's."""
        return SlackConversation(
            SlackApp(
                self.folder / "app",
                self.folder / "bot",
                self.folder / "users.yaml",
                self.slack.api,
                "https://tarsy.example.org",
            ),
            SlackPorts(
                self.client,
                SlackQuestions(self.desk.pool),
                self.desk.reads,
                NotificationSender(no_secret, Destinations()),
                Destinations(),
            ),
            namespace="tarsy-system",
            mask=default_masker().mask,
            metrics=self.metrics,
            pause=lambda _: 0.0,
        )

    @asynccontextmanager
    async def running(self) -> AsyncIterator[Chosen]:
        """Runs a replica that is active."""
        election = Chosen()
        task = asyncio.create_task(self.conversation().run(election))  # type: ignore[arg-type]
        try:
            yield election
            assert not task.done()
        finally:
            task.cancel()
            await asyncio.wait({task}, timeout=20)

    async def messages(self) -> list[dict[str, Any]]:
        """The ChatMessages."""
        return await self.desk.kube.list("ChatMessage", self.desk.namespace)

    async def asked(self) -> bool:
        """Whether a question is noted as asked."""
        return bool(await self.desk.pool.fetchval("SELECT EXISTS (SELECT FROM slack_question WHERE state = 'asked')"))

    async def answer(self, text: str) -> None:
        """Answers the next question as a worker does."""
        claimed = await eventually(self.desk.claim_question)
        assert claimed is not None
        await self.desk.runs.finish(claimed.id, claimed.attempt, RunOutcome(State.COMPLETED, final_analysis=text))

    async def refusal(self, text: str, user: str = ANN, **event: Any) -> str:
        """The refusal of a question, which only its author sees."""
        before = len(self.slack.of("chat.postEphemeral"))
        assert await self.slack.deliver(self.slack.mention(text, user, THREAD, **event))
        await self.slack.wait_for(lambda: len(self.slack.of("chat.postEphemeral")) > before)
        told = self.slack.of("chat.postEphemeral")[-1]
        assert (told["channel"], told["thread_ts"], told["user"]) == (CHANNEL, THREAD, user)
        return str(told["text"])

    def counted(self) -> dict[str, float]:
        """What was counted, by outcome."""
        found = {one: self.metrics.value(SLACK_QUESTIONS, outcome=one) for one in SLACK_OUTCOME.values or ()}
        return {one: number for one, number in found.items() if number}


@pytest.fixture
async def talk(desk: Desk, kube: KubeClient, tarsy_api: LocalApi, tmp_path: Path) -> AsyncIterator[Talk]:
    (tmp_path / "app").write_text(f"{APP_TOKEN}\n")
    (tmp_path / "bot").write_text(f"{BOT_TOKEN}\n")
    people = shipped("base", "people")
    group = rights.group(f"on-call-{desk.namespace}")
    bound = rights.binding("on-call", desk.namespace, "ClusterRole", "tarsy-investigator", group)
    await rights.put_rights(kube, [*people, bound, *shipped("components/slack", "role")])
    files = ("namespace", "serviceaccount", "clusterrole", "role", "secret-reader")
    kubeconfig = await operator_kubeconfig(kube, tarsy_api, tmp_path, *files)
    await desk.configure()
    async with slack_server() as slack, desk.controller(), await KubeClient.load(kubeconfig) as client:
        found = await desk.finished("crash")
        about = UUID(found["metadata"]["uid"])
        await SlackQuestions(desk.pool).begin_thread(CHANNEL, THREAD, about)
        talk = Talk(desk, slack, tmp_path, Metrics(), about, client)
        talk.users(ANN, BOB)
        yield talk


async def test_a_question_in_a_thread_is_asked_as_its_author_and_answered_there(talk: Talk) -> None:
    async with talk.running():
        assert await talk.slack.deliver(talk.slack.mention("Why did it &lt;b&gt; crash?", ANN, THREAD))
        (message,) = await eventually(talk.messages)
        await talk.answer("The *image* does not exist. <!channel> & more")
        await eventually(lambda: _is(talk.counted(), {"answered": 1.0}))
    spec, meta = message["spec"], message["metadata"]
    assert spec["author"] == {
        "username": f"{ANN.lower()}@example.org",
        "groups": [f"on-call-{talk.desk.namespace}", "system:authenticated"],
    }
    assert (spec["via"], spec["investigationRef"]["name"], spec["question"]) == (
        "Slack",
        "crash",
        "Why did it <b> crash?",
    )
    assert meta["annotations"]["tarsy.dev/slack-user"] == ANN
    (posted,) = talk.slack.of("chat.postMessage")
    assert (posted["channel"], posted["thread_ts"], posted["unfurl_links"]) == (CHANNEL, THREAD, False)
    shown = posted["blocks"][0]["text"]["text"]
    assert shown == "The *image* does not exist. &lt;!channel&gt; &amp; more"
    link = f"https://tarsy.example.org/#/investigations/{talk.desk.namespace}/crash"
    assert f"<{link}|Open the investigation>" in str(posted["blocks"]) and f"<@{ANN}>" in str(posted["blocks"])
    ((asked,),) = [await Trace(talk.desk.pool).answers(talk.about, 2)]
    assert (asked.author, asked.via) == (f"{ANN.lower()}@example.org", "Slack")
    (row,) = await talk.desk.pool.fetch("SELECT question, reply, state FROM slack_question")
    assert tuple(row) == (None, None, "done")


async def test_an_answer_is_cut_to_what_slack_takes(talk: Talk) -> None:
    async with talk.running():
        await talk.slack.deliver(talk.slack.mention("why?", ANN, THREAD))
        await talk.answer("<" * 5000)
        await talk.slack.wait_for(lambda: talk.slack.of("chat.postMessage"))
    (posted,) = talk.slack.of("chat.postMessage")
    assert 2800 < len(posted["blocks"][0]["text"]["text"]) <= 2900 and len(posted["text"]) <= 150


async def test_one_whom_the_list_does_not_name_is_told_once_and_asks_nothing(talk: Talk) -> None:
    async with talk.running():
        assert "your administrator's list of Slack users" in await talk.refusal("why?", EVE)
        for _ in range(3):
            await talk.slack.deliver(talk.slack.mention("why?", EVE, THREAD))
        await eventually(lambda: _is(talk.counted(), {"unknown_user": 1.0, "silent": 3.0}))
        talk.users(ANN, EVE)
        await talk.slack.deliver(talk.slack.mention("why?", EVE, THREAD))
        assert len(await eventually(talk.messages)) == 1
    assert len(talk.slack.of("chat.postEphemeral")) == 1


async def _is(found: object, wanted: object) -> bool:
    assert found == wanted
    return True


async def test_a_person_of_another_workspace_is_not_the_one_on_the_list(talk: Talk) -> None:
    async with talk.running():
        assert "I do not know your user" in await talk.refusal("why?", ANN, team="T0000000999")
    assert await talk.messages() == []


async def test_one_without_the_rights_is_refused_with_each_right(talk: Talk) -> None:
    group = "nobody"
    line = f"  - {{slack: {EVE}, username: eve@example.org, groups: [{group}]}}"
    (talk.folder / "users.yaml").write_text(f"team: {TEAM}\nusers:\n{line}\n")
    async with talk.running():
        told = await talk.refusal("why?", EVE)
        await eventually(lambda: _is(talk.counted(), {"refused": 1.0}))
    place = talk.desk.namespace
    for right in ("create chatmessages.tarsy.dev", "get investigations.tarsy.dev", "use chains.tarsy.dev"):
        assert f"{right} in namespace {place}" in told
    assert "eve@example.org may not ask" in told and "tarsy-investigator" in told
    assert await talk.messages() == []


@pytest.mark.parametrize("text", ["approve", "Approve it now!", "reject", "cancel", "lgtm"])
async def test_nothing_is_decided_in_slack(talk: Talk, text: str) -> None:
    async with talk.running():
        assert "Calls cannot be approved or rejected" in await talk.refusal(text)
    assert await talk.messages() == []


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "Write your question"), ("x" * 4001, "4001 characters; 4000 at most"), ("&lt;" * 4001, "4001 characters")],
)
async def test_a_text_that_cannot_be_asked_says_why(talk: Talk, text: str, words: str) -> None:
    async with talk.running():
        assert words in await talk.refusal(text)


async def test_a_question_of_the_most_characters_is_asked(talk: Talk) -> None:
    async with talk.running():
        await talk.slack.deliver(talk.slack.mention("x " * 1999 + "yz", ANN, THREAD))
        (message,) = await eventually(talk.messages)
    assert len(message["spec"]["question"]) == 4000


async def test_secrets_in_a_question_are_masked_before_they_are_stored(talk: Talk) -> None:
    secret = "AKIA" + "ABCDEFGHIJKLMNOP"
    async with talk.running():
        await talk.slack.deliver(talk.slack.mention(f"is aws_access_key_id={secret} used?", ANN, THREAD))
        (message,) = await eventually(talk.messages)
    assert secret not in str(message) and "MASKED" in message["spec"]["question"]


async def test_other_threads_and_other_messages_are_nobodys_questions(talk: Talk) -> None:
    async with talk.running():
        assert await talk.slack.deliver(talk.slack.mention("why?", ANN, "1700000000.999999"))
        assert await talk.slack.deliver(talk.slack.mention("why?", ANN, THREAD, channel="C0000000002"))
        assert await talk.slack.deliver(talk.slack.mention("approve", ANN, THREAD, type="message"))
        assert await talk.slack.deliver(talk.slack.mention("why?", ANN, THREAD, bot_id="B1"))
    assert await talk.desk.pool.fetchval("SELECT count(*) FROM slack_question") == 0
    assert talk.slack.posted == []


async def test_an_event_that_comes_again_and_a_message_under_two_events_are_one_question(talk: Talk) -> None:
    payload = talk.slack.mention("why?", ANN, THREAD)
    again = {**payload, "event_id": "Ev99999999"}
    async with talk.running(), talk.running():
        await asyncio.gather(*(talk.slack.deliver(one) for one in (payload, payload, again, payload)))
        await talk.answer("So.")
        await talk.slack.wait_for(lambda: talk.slack.of("chat.postMessage"))
        assert await talk.slack.deliver(payload)
    assert len(await talk.messages()) == 1
    assert await talk.desk.pool.fetchval("SELECT count(*) FROM slack_question") == 1


async def test_a_replica_that_died_after_it_asked_is_followed_by_one_that_asks_nothing_again(talk: Talk) -> None:
    first = talk.conversation()
    await first.take(talk.slack.mention("why?", ANN, THREAD))
    await first.round()
    ((uid, name),) = [(one["metadata"]["uid"], one["metadata"]["name"]) for one in await talk.messages()]
    # As if it had died between the creation of the object and the note of it, and then at every later point.
    await talk.desk.pool.execute("UPDATE slack_question SET state = 'received', message = NULL, question = 'why?'")
    await talk.desk.pool.execute("UPDATE slack_question SET due_at = now()")
    async with talk.running():
        await talk.answer("So.")
        await talk.slack.wait_for(lambda: talk.slack.of("chat.postMessage"))
    assert [(one["metadata"]["uid"], one["metadata"]["name"]) for one in await talk.messages()] == [(uid, name)]
    assert name.startswith("slack-")


async def test_only_the_active_replica_is_connected_and_another_goes_on(talk: Talk) -> None:
    async with talk.running() as election:
        await talk.slack.wait_for(lambda: talk.slack.sockets)
        await talk.slack.deliver(talk.slack.mention("why?", ANN, THREAD))
        await eventually(talk.asked)  # a question that a replica has not brought to its end waits for its claim to end
        election.lose()
        await talk.slack.wait_for(lambda: not talk.slack.sockets)
        async with talk.running():
            await talk.slack.wait_for(lambda: len(talk.slack.sockets) == 1)
            await talk.answer("So.")
            await talk.slack.wait_for(lambda: talk.slack.of("chat.postMessage"))
    assert len(await talk.messages()) == 1 and len(talk.slack.of("chat.postMessage")) == 1


async def test_a_replica_that_hands_over_in_the_middle_of_a_reply_gives_it_to_the_next_at_once(talk: Talk) -> None:
    async with talk.running() as election:
        await talk.slack.deliver(talk.slack.mention("why?", ANN, THREAD))
        await eventually(talk.asked)
        async with talk.slack.holding("chat.postMessage") as begun:
            await talk.answer("So.")
            async with asyncio.timeout(60):
                await begun.wait()
            election.lose()
            await talk.slack.wait_for(lambda: not talk.slack.sockets)
            due = "SELECT due_at <= now() AND tries = 0 FROM slack_question"

            async def given_back() -> bool:
                return bool(await talk.desk.pool.fetchval(due))

            await eventually(given_back)
        async with talk.running():
            await talk.slack.wait_for(lambda: talk.slack.of("chat.postMessage"))


@pytest.mark.parametrize(("word", "sent"), [("ratelimited", 1), ("internal_error", 1), ("channel_not_found", 0)])
async def test_a_reply_is_tried_again_where_that_may_help(talk: Talk, word: str, sent: int) -> None:
    talk.slack.words["chat.postMessage"] = [word]
    async with talk.running():
        await talk.slack.deliver(talk.slack.mention("why?", ANN, THREAD))
        await talk.answer("So.")
        await eventually(lambda: _is(talk.counted(), {"answered" if sent else "given_up": 1.0}))
    assert len(talk.slack.of("chat.postMessage")) == sent


async def test_a_reply_that_is_never_taken_is_given_up(talk: Talk) -> None:
    talk.slack.words["chat.postMessage"] = ["internal_error"] * (MOST_TRIES + 1)
    async with talk.running():
        await talk.slack.deliver(talk.slack.mention("why?", ANN, THREAD))
        await talk.answer("So.")
        await eventually(lambda: _is(talk.counted(), {"given_up": 1.0}))
    assert len(talk.slack.words["chat.postMessage"]) == 1


async def test_more_questions_than_are_answered_wait_for_their_turn(talk: Talk) -> None:
    async with talk.running():
        for number in range(MOST_OPEN):
            await talk.slack.deliver(talk.slack.mention(f"why {number}?", ANN, THREAD))
            await eventually(lambda wanted=number + 1: _has(talk, wanted))  # type: ignore[misc]
        assert f"{MOST_OPEN} of your questions wait" in await talk.refusal("and why?")
    assert len(await talk.messages()) == MOST_OPEN


async def _has(talk: Talk, number: int) -> bool:
    return len(await talk.messages()) == number


async def test_a_list_that_cannot_be_read_lets_nobody_ask(talk: Talk) -> None:
    (talk.folder / "users.yaml").write_text("users: [")
    async with talk.running():
        assert "I cannot read the list of Slack users" in await talk.refusal("why?")
    assert await talk.messages() == []


async def test_an_investigation_that_is_deleted_is_not_asked_about(talk: Talk) -> None:
    await talk.desk.kube.delete("Investigation", talk.desk.namespace, "crash")
    async with talk.running():
        told = await talk.refusal("why?")
    assert f"Investigation {talk.desk.namespace}/crash is deleted" in told


async def test_without_the_component_the_operator_may_not_ask_for_others(talk: Talk) -> None:
    await talk.desk.kube.delete("ClusterRoleBinding", None, "tarsy-slack")
    try:
        async with talk.running():
            assert "The Kubernetes API refused your question" in await talk.refusal("why?")
        assert await talk.messages() == []
    finally:
        await rights.put_rights(talk.desk.kube, shipped("components/slack", "role"))
