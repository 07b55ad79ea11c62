"""Formats replies in Slack: answers for the thread, refusals for the person who asked; pure functions.

All text but ours is escaped, so that it shows literally and mentions nobody, and is cut to what Slack takes.
"""

from collections.abc import Mapping
from typing import Any

from tarsy.controllers.notifications.text import TEXT_LIMIT, mrkdwn, slack_link
from tarsy.record.run import InvestigationRecord
from tarsy.store.slack import SlackQuestion

_REFUSAL_LIMIT = 1500
_COMMAND_LIMIT = 500

UNKNOWN_USER = (
    "I do not know your user in the cluster, so I cannot ask for you. Only people on your administrator's list of "
    "Slack users (ConfigMap tarsy-slack-users) can ask; ask your administrator to add you."
)
NOT_DECIDED_HERE = (
    "Calls cannot be approved or rejected, and runs cannot be stopped, from Slack. Use the web UI of TARSy, or "
    "kubectl tarsy."
)
NOTHING_ASKED = "Write your question after the mention."
NO_LIST = "I cannot read the list of Slack users, so I cannot ask for you. Tell your administrator: the log says why."


def public_reply(
    question: SlackQuestion, text: str, about: InvestigationRecord, page: str | None = None
) -> dict[str, Any]:
    """Makes the reply that all people in the thread see.

    Args:
        question: what was asked; its ids are checked.
        text: the answer, or the sentence why there is none.
        about: the investigation.
        page: address of the web UI; None: no link.
    """
    shown = mrkdwn(text.strip() or "There is no answer.", TEXT_LIMIT)
    more = [f"<@{question.person}>", f"`{mrkdwn(timeline_command(about), _COMMAND_LIMIT)}`"]
    if page is not None:
        more.append(f"<{slack_link(page, about)}|Open the investigation>")
    body = {
        "channel": question.channel,
        "thread_ts": question.thread,
        "text": mrkdwn(" ".join(text.split()), 150) or "There is no answer.",
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": shown}},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": each} for each in more]},
        ],
        "unfurl_links": False,
        "unfurl_media": False,
    }
    return {"method": "chat.postMessage", "body": body}


def private_reply(question: SlackQuestion, text: str) -> dict[str, Any]:
    """Makes the reply that only the person who asked sees.

    Args:
        question: what was asked; its ids are checked.
        text: one or two sentences.
    """
    body = {
        "channel": question.channel,
        "thread_ts": question.thread,
        "user": question.person,
        "text": mrkdwn(text, _REFUSAL_LIMIT),
    }
    return {"method": "chat.postEphemeral", "body": body}


def timeline_command(about: InvestigationRecord) -> str:
    """Returns the command that prints the investigation with its questions."""
    return f"kubectl tarsy timeline {about.name} -n {about.namespace}"


def method_and_body(reply: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Reads a reply as it was stored."""
    return str(reply["method"]), reply["body"]
