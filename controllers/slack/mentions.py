"""Reads what Slack sends about a message that mentions the app; pure functions of untrusted JSON."""

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tarsy.record.text import clean, without_invisible

MOST_QUESTION = 4000
"""Characters of a question. Slack takes ten times that; a question to read an incident with is shorter."""

_ID = re.compile(r"[A-Z][A-Z0-9]{1,31}")
_TS = re.compile(r"[0-9]{1,20}\.[0-9]{1,10}")
_EVENT_ID = re.compile(r"[A-Za-z0-9]{1,64}")
_MARK = re.compile(r"<([@#!]?)([^<>|]{0,2000})(?:\|([^<>]{0,2000}))?>")
_DECIDING = frozenset(
    (
        "approve",
        "approved",
        "approving",
        "reject",
        "rejected",
        "deny",
        "denied",
        "lgtm",
        "conclude",
        "cancel",
        "promote",
    )
)
_FEW_WORDS = 5


@dataclass(frozen=True, slots=True)
class Mentioned:
    """A message in a thread that mentions the app. `teams` are the workspaces that the event names."""

    event: str
    teams: frozenset[str]
    channel: str
    thread: str
    ts: str
    person: str
    text: str


def mentioned(payload: Mapping[str, Any]) -> Mentioned | None:
    """Reads the payload of an envelope; None: it is no message of a person in a thread that mentions the app.

    Messages outside of threads, those of bots (the app's own among them) and edits that Slack marks are none.
    """
    event = payload.get("event")
    if payload.get("type") != "event_callback" or not isinstance(event, Mapping) or event.get("type") != "app_mention":
        return None
    if event.get("bot_id") or event.get("subtype") or event.get("edited"):
        return None
    named = _matching(payload.get("event_id"), _EVENT_ID)
    channel, person = _matching(event.get("channel"), _ID), _matching(event.get("user"), _ID)
    thread, ts = _matching(event.get("thread_ts"), _TS), _matching(event.get("ts"), _TS)
    if not (named and channel and person and thread and ts) or thread == ts:
        return None
    text = event.get("text")
    if not isinstance(text, str):
        return None
    teams = (payload.get("team_id"), event.get("team"), event.get("user_team"), event.get("source_team"))
    words = question_text(text, _bots(payload))
    return Mentioned(named, frozenset(str(team) for team in teams if team), channel, thread, ts, person, words)


def question_text(text: str, bots: frozenset[str]) -> str:
    """Turns Slack's markup into plain text: mentions of the app go, entities are unescaped, links keep their address.

    Args:
        text: as Slack sends it.
        bots: user ids of the app.
    """

    def plain(mark: re.Match[str]) -> str:
        kind, target, label = mark.groups()
        if kind == "@":
            return "" if target in bots else f"@{label or target}"
        if kind == "#":
            return f"#{label or target}"
        if kind == "!":
            return f"@{(label or target).lstrip('@')}"
        return target

    read = html.unescape(_MARK.sub(plain, text))
    return without_invisible(clean(read)).text.strip()


def decides(question: str) -> bool:
    """Whether a message reads as a decision and not as a question: a few words that begin with such a word."""
    words = re.findall(r"[a-z]+|\?", question.lower())
    return 0 < len(words) <= _FEW_WORDS and "?" not in words and words[0] in _DECIDING


def _matching(value: object, form: re.Pattern[str]) -> str:
    """Returns a text that has the form; empty for everything else."""
    return value if isinstance(value, str) and form.fullmatch(value) else ""


def _bots(payload: Mapping[str, Any]) -> frozenset[str]:
    """The user ids under which the app is installed."""
    found = payload.get("authorizations")
    rows = [row for row in found if isinstance(row, Mapping)] if isinstance(found, list) else []
    return frozenset(str(row.get("user_id")) for row in rows if row.get("is_bot") is True)
