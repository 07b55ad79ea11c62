"""Tests what is read of an event from Slack."""

from typing import Any

import pytest

from tarsy.controllers.slack.mentions import decides, mentioned, question_text
from wire.slack import BOT, CHANNEL, TEAM, Slack

USER, THREAD = "U0000000ANN", "1700000000.000100"
BOTS = frozenset({BOT})


def event(**change: Any) -> dict[str, Any]:
    return Slack().mention("why did it fail?", USER, THREAD, **change)


def test_a_mention_in_a_thread_is_read() -> None:
    found = mentioned(event())
    assert found is not None
    assert (found.channel, found.thread, found.person, found.text) == (CHANNEL, THREAD, USER, "why did it fail?")
    assert found.teams == {TEAM}


@pytest.mark.parametrize(
    "change",
    [
        {"type": "message"},
        {"type": "reaction_added"},
        {"bot_id": "B1"},
        {"subtype": "bot_message"},
        {"edited": {"user": USER, "ts": "1.1"}},
        {"thread_ts": None},
        {"thread_ts": "x"},
        {"channel": "../x"},
        {"channel": "C" * 40},
        {"user": None},
        {"user": "u1"},
        {"text": None},
        {"text": 7},
        {"ts": "1", "thread_ts": "1"},
    ],
)
def test_everything_else_is_none(change: dict[str, Any]) -> None:
    assert mentioned(event(**change)) is None


def test_a_message_that_begins_a_thread_is_none() -> None:
    assert mentioned(event(ts=THREAD)) is None


@pytest.mark.parametrize("payload", [{}, {"type": "event_callback"}, {"type": "event_callback", "event": []}])
def test_other_payloads_are_none(payload: dict[str, Any]) -> None:
    assert mentioned(payload) is None


def test_people_of_a_shared_channel_bring_their_workspace() -> None:
    found = mentioned(event(user_team="T0000000999"))
    assert found is not None and found.teams == {TEAM, "T0000000999"}


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (f"<@{BOT}> why?", "why?"),
        (f"why <@{BOT}>?", "why ?"),
        (f"<@{BOT}|tarsy> why?", "why?"),
        (f"<@{BOT}> ask <@U0000000BOB> or <@U1|bob>", "ask @U0000000BOB or @bob"),
        ("see <#C1|alerts> and <#C2>", "see #alerts and #C2"),
        ("<!channel> <!here|@here> <!subteam^S1|@sre>", "@channel @here @sre"),
        ("<https://example.org/a?b=1&amp;c=2|a link>", "https://example.org/a?b=1&c=2"),
        ("a &lt;b&gt; &amp;amp; c", "a <b> &amp; c"),
        ("<unclosed", "<unclosed"),
        ("a\u202e\u200bb\x00\x07c", "abc"),
        ("", ""),
    ],
)
def test_markup_becomes_plain_text(text: str, plain: str) -> None:
    assert question_text(text, BOTS) == plain


@pytest.mark.parametrize("text", ["approve", "Approve!", "approve it now please", "LGTM", "reject this", "cancel"])
def test_a_decision_is_recognized(text: str) -> None:
    assert decides(text)


@pytest.mark.parametrize(
    "text", ["", "approve?", "why approve", "deny rules of the network policy block what exactly", "what was approved"]
)
def test_a_question_is_no_decision(text: str) -> None:
    assert not decides(text)
