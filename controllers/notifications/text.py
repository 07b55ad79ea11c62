"""Formats notifications about a run: JSON for a webhook, blocks for Slack; pure functions of the record.

Decision: nothing is told that is not in the record, where all text is masked, and all of it is bounded: by what Slack
takes (header 150, section 3,000 characters), counted after its escapes, so that no message is refused for its length.
The link to the page is a text and no button: Slack asks an app whose message has buttons who answers to them.
"""

import re
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlsplit

import orjson

from tarsy.controllers.notifications.request_text import run_values
from tarsy.record.approvals.git_change import MAX_CHANGES
from tarsy.record.finding import Finding
from tarsy.record.judging.shown_confidence import shown_confidence
from tarsy.record.reading.conditions import phase
from tarsy.record.run import InvestigationRecord
from tarsy.record.text import clean
from tarsy.store.runs.notices import NoticeOccasion

TEXT_LIMIT = 2900
HEADER_LIMIT = 150
PAGE_LIMIT = 1024
_PAGE = re.compile(r"https?://[A-Za-z0-9._~%:/\[\]-]+")
"""Nothing that Slack has a meaning of its own for, so that a link is never escaped nor cut."""

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


def page_address(text: str) -> str:
    """Validates the address of the web UI and returns it in the form that links begin with.

    Args:
        text: as an administrator wrote it, such as `https://tarsy.example.org`.

    Raises:
        ValueError: no such link can be made of it; says of what one can.
    """
    problem = f"{text!r} is not the address of a page; write http:// or https:// and a host, without a user, ? or #"
    try:
        parts = urlsplit(text)
        usable = _PAGE.fullmatch(text) is not None and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ValueError(problem)
    if len(text) > PAGE_LIMIT:
        raise ValueError(f"the address of the page has {len(text)} characters; {PAGE_LIMIT} at most")
    return text.rstrip("/")


def slack_link(page: str, record: InvestigationRecord) -> str:
    """Builds the link to a run in the web UI, whose router reads the part after `#` (`page/src/logic/route.ts`)."""
    return f"{page}/#/investigations/{quote(record.namespace, safe='')}/{quote(record.name, safe='')}"


def waiting_link(page: str, record: InvestigationRecord, occasion: NoticeOccasion) -> str:
    """Builds the link of a message: where people decide, if the run waits for them, else the run.

    Decision: a message contains no decision, nor a button for one: who answers it is nobody whom the cluster knows.

    Args:
        page: see `page_address`.
        record: of the run.
        occasion: what is told.
    """
    return f"{page}/#/approvals" if occasion == "waits" else slack_link(page, record)


def webhook_body(
    record: InvestigationRecord, occasion: NoticeOccasion, at: datetime, page: str | None = None, waits_for: str = ""
) -> bytes:
    """Makes the JSON for a webhook: the same bytes at every try.

    Args:
        record: of the run.
        occasion: what is told.
        at: when it came to be told.
        page: see `page_address`; without, there is no link.
        waits_for: sentence of a run that waits, as it was when it began to.
    """
    outcome = record.outcome
    failure = outcome.failure if outcome else None
    finding = outcome.finding if outcome else None
    data: dict[str, Any] = {
        "investigation": {"namespace": record.namespace, "name": record.name, "uid": str(record.id)},
        "alertType": record.alert_type,
        "chain": {"namespace": record.chain_namespace, "name": record.chain},
        "phase": _word(record, occasion),
        "startedAt": _time(record.started_at),
        "command": command(record, occasion),
        "url": None if page is None else waiting_link(page, record, occasion),
    }
    if occasion == "waits":
        data["waitsFor"] = _cut(waits_for, TEXT_LIMIT)
    if occasion == "ended":
        data |= {
            "finishedAt": _time(record.finished_at),
            "summary": _cut(_words(record), TEXT_LIMIT),
            "confidence": finding.confidence.value if finding else None,
            **({"changeInGit": _change_in_git(finding)} if finding and finding.changes_for_git else {}),
            **({"actions": actions} if (actions := _actions(record)) else {}),
            "failure": {"reason": failure.reason, "message": _cut(failure.message, TEXT_LIMIT)} if failure else None,
            "usage": {
                "modelCalls": record.model_calls,
                "toolCalls": record.tool_calls,
                "inputTokens": record.usage.input_tokens,
                "outputTokens": record.usage.output_tokens,
                "costUSD": None if record.cost_usd is None else float(record.cost_usd),
            },
        }
    body = {"type": f"investigation.{occasion}", "timestamp": _time(at), "data": data}
    return orjson.dumps(body)


def request_values(record: InvestigationRecord, occasion: NoticeOccasion, page: str | None = None) -> dict[str, str]:
    """Returns the values of a run by the names of the placeholders of requests.

    Args:
        record: of the run.
        occasion: what is told.
        page: see `page_address`; without, `url` is empty.
    """
    url = None if page is None else slack_link(page, record)
    return run_values(record, _word(record, occasion), clean(_words(record)), command(record, occasion), url)


def slack_message(
    record: InvestigationRecord, occasion: NoticeOccasion, page: str | None = None, waits_for: str = ""
) -> dict[str, Any]:
    """Makes the message for `chat.postMessage`, without its channel: a line for notifications, and blocks.

    Args:
        record: of the run.
        occasion: what is told.
        page: see `page_address`; without, there is no link.
        waits_for: sentence of a run that waits, as it was when it began to.
    """
    word = _word(record, occasion)
    title = " ".join(clean(f"{word}: {record.alert_type}").split())
    about = [f"*{mrkdwn(record.namespace, 63)}/{mrkdwn(record.name, 253)}*", f"chain {mrkdwn(record.chain, 253)}"]
    finding = record.outcome.finding if record.outcome else None
    if occasion == "ended":
        about.append(f"{record.usage.total_tokens:,} tokens")
        if finding is not None:
            about.append(f"confidence {shown_confidence(finding.confidence, record.high_verdicts)}")
    blocks: list[dict[str, Any]] = [
        {"type": "header", "text": {"type": "plain_text", "text": _cut(title, HEADER_LIMIT), "emoji": False}},
        {"type": "context", "elements": [{"type": "mrkdwn", "text": " · ".join(about)}]},
    ]
    if occasion == "ended" and _words(record).strip():
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": mrkdwn(_words(record), TEXT_LIMIT)}})
    if occasion == "ended" and finding is not None and finding.changes_for_git:
        told = f"Change to make in Git: {', '.join(_change_in_git(finding))}"
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": mrkdwn(told, TEXT_LIMIT)}})
    if occasion == "ended" and (actions := _actions(record)):
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": mrkdwn(" ".join(actions), TEXT_LIMIT)}})
    if occasion == "waits" and waits_for:
        blocks.append({"type": "section", "text": {"type": "mrkdwn", "text": mrkdwn(waits_for, TEXT_LIMIT)}})
    more = [f"`{mrkdwn(command(record, occasion), 500)}`"]
    if page is not None:
        name = "See the calls that wait for you" if occasion == "waits" else "Open the investigation"
        more.append(f"<{waiting_link(page, record, occasion)}|{name}>")
    blocks.append({"type": "context", "elements": [{"type": "mrkdwn", "text": text} for text in more]})
    return {"text": mrkdwn(title, HEADER_LIMIT), "blocks": blocks, "unfurl_links": False, "unfurl_media": False}


def _word(record: InvestigationRecord, occasion: NoticeOccasion) -> str:
    match occasion:
        case "started":
            return "Started"
        case "waits":
            return "Waits for approval"
        case "ended":
            return phase(record)


def _change_in_git(finding: Finding) -> list[str]:
    """Names the objects that a person has to change in Git; the change itself is only for readers of the record."""
    return list(dict.fromkeys(one.object for change in finding.changes_for_git for one in change.objects))[:MAX_CHANGES]


def _actions(record: InvestigationRecord) -> list[str]:
    """Tells what stages of kind Action did, by the record."""
    return [stage.acted.whole_sentence for stage in record.stages if stage.acted is not None]


def _words(record: InvestigationRecord) -> str:
    """Returns the executive summary, else the analysis, else the reason why there is none."""
    outcome = record.outcome
    if outcome is None:
        return ""
    failure = outcome.failure.message if outcome.failure else ""
    return outcome.executive_summary or failure or outcome.final_analysis or ""


def command(record: InvestigationRecord, occasion: NoticeOccasion = "ended") -> str:
    """Returns the command that prints the whole timeline, or what waits for people."""
    if occasion == "waits":
        return f"kubectl tarsy approvals -n {record.namespace}"
    return f"kubectl tarsy timeline {record.name} -n {record.namespace}"


def _cut(text: str, limit: int) -> str:
    """Removes control characters and truncates to a number of characters."""
    text = clean(text)
    return text if len(text) <= limit else text[: limit - 1] + "…"


def mrkdwn(text: str, limit: int) -> str:
    """Escapes a text for Slack within a limit, so that it shows literally and mentions nobody."""
    escaped = [_ESCAPES.get(char, char) for char in clean(text)]
    if sum(map(len, escaped)) <= limit:
        return "".join(escaped)
    kept, room = [], limit - 1
    for piece in escaped:
        room -= len(piece)
        if room < 0:
            break
        kept.append(piece)
    return "".join(kept) + "…"


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
