"""Tests notifications: bounded, literal, without control characters or mentions."""

import dataclasses
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from for_each import for_each
from tarsy.controllers.notifications.text import (
    PAGE_LIMIT,
    mrkdwn,
    page_address,
    slack_link,
    slack_message,
    webhook_body,
)
from tarsy.record.approvals.acted import ExecutedCall, ModelWord, StageActed
from tarsy.record.approvals.git_change import ChangeForGit, ManagedObject
from tarsy.record.finding import Confidence, Finding
from tarsy.record.judging.shown_confidence import HighVerdicts
from tarsy.record.run import Failure, RunOutcome, StageKind, StageProgress, State
from tarsy.record.usage import Usage
from unit.controllers.builders import record

CHECKOUT = Path(__file__).parents[3]
AT = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
FINDING = Finding(summary="s", confidence=Confidence.HIGH)


def ended(state: State = State.COMPLETED, **outcome):
    return record(
        state,
        outcome=RunOutcome(state, **outcome),
        usage=Usage(input_tokens=1000, output_tokens=234),
        cost_usd=Decimal("0.5"),
    )


def section(message):
    return next(block["text"]["text"] for block in message["blocks"] if block["type"] == "section")


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("a" * 10, 10, "a" * 10),
        ("a" * 11, 10, "a" * 9 + "…"),
        ("<!here> & <@U1>", 80, "&lt;!here&gt; &amp; &lt;@U1&gt;"),
        ("aaaa&&", 14, "aaaa&amp;&amp;"),
        ("aaaa&&", 13, "aaaa&amp;…"),
        ("a\x1b[31m\x00b\nc", 80, "a[31mb\nc"),
    ],
)
def test_text_is_shown_literally_and_cut_between_its_escapes(text, limit, shown):
    assert mrkdwn(text, limit) == shown


@pytest.mark.parametrize("char", ["x", "&", "<", "é", "\U0001f525"])
def test_a_message_stays_within_what_slack_takes(char):
    told = ended(executive_summary=char * 100_000, finding=FINDING)
    told = record(State.COMPLETED, outcome=told.outcome, alert_type=char * 253)
    message = slack_message(told, "ended", "https://" + "p" * (PAGE_LIMIT - 8))
    assert len(message["blocks"]) <= 50
    assert all(len(block["elements"]) <= 10 for block in message["blocks"] if block["type"] == "context")
    assert len(message["blocks"][0]["text"]["text"]) <= 150
    assert 2890 <= len(section(message)) <= 3000
    assert all(len(e["text"]) <= 3000 for b in message["blocks"] if b["type"] == "context" for e in b["elements"])
    assert not message["unfurl_links"] and not message["unfurl_media"]


@pytest.mark.parametrize(
    ("state", "outcome", "said"),
    [
        (State.COMPLETED, {"executive_summary": "short", "final_analysis": "long"}, "short"),
        (State.COMPLETED, {"final_analysis": "long"}, "long"),
        (State.FAILED, {"failure": Failure("X", "why"), "final_analysis": "first stage"}, "why"),
    ],
)
def test_the_summary_is_told_else_the_analysis_else_why_there_is_none(state, outcome, said):
    assert section(slack_message(ended(state, **outcome), "ended")) == said
    assert json.loads(webhook_body(ended(state, **outcome), "ended", AT))["data"]["summary"] == said


def test_a_webhook_is_told_what_programs_need():
    body = json.loads(webhook_body(ended(final_analysis="a" * 5000, finding=FINDING), "ended", AT))
    data = body["data"]
    assert (body["type"], body["timestamp"]) == ("investigation.ended", "2026-11-22T12:00:00Z")
    assert (data["phase"], data["confidence"], data["failure"]) == ("Succeeded", "High", None)
    assert len(data["summary"]) == 2900
    assert (data["usage"]["inputTokens"], data["usage"]["costUSD"]) == (1000, 0.5)
    assert data["command"].startswith("kubectl tarsy timeline ")


@pytest.mark.parametrize(("right", "shown"), [(14, "High (14 of 20 right)"), (15, "High")])
def test_a_message_tells_how_often_high_was_right_where_that_is_too_seldom(right, shown):
    told = dataclasses.replace(ended(finding=FINDING), high_verdicts=HighVerdicts(right, 20))
    assert slack_message(told, "ended")["blocks"][1]["elements"][0]["text"].endswith(f" · confidence {shown}")
    assert json.loads(webhook_body(told, "ended", AT))["data"]["confidence"] == "High"


def test_objects_to_change_in_git_are_named_without_the_change():
    managed = [ManagedObject(object="Deployment shop/<b>", managed_by="Helm (release shop)")]
    changes = (ChangeForGit.limited("k8s.scale", managed, "+ secret: 1"),) * 2
    told = ended(final_analysis="a", finding=FINDING.model_copy(update={"changes_for_git": changes}))
    assert json.loads(webhook_body(told, "ended", AT))["data"]["changeInGit"] == ["Deployment shop/<b>"]
    message = slack_message(told, "ended")
    shown = [block["text"]["text"] for block in message["blocks"] if block["type"] == "section"]
    assert shown[-1] == "Change to make in Git: Deployment shop/&lt;b&gt;" and "secret" not in json.dumps(message)
    assert "changeInGit" not in json.loads(webhook_body(ended(finding=FINDING), "ended", AT))["data"]


def test_what_a_stage_did_is_told_by_the_record():
    calls = (ExecutedCall("call_0123456789ab", "k8s.scale", "completed"),)
    stage = StageProgress(
        1, "act", StageKind.ACTION, State.COMPLETED, 1, 1, AT, AT, None, StageActed(ModelWord.NO, calls)
    )
    told = dataclasses.replace(ended(final_analysis="a", finding=FINDING), stages=(stage,))
    sentence = (
        "An action was taken: k8s.scale (call_0123456789ab). The model says that it took no action, but the record has "
        "an approved call that was sent."
    )
    assert json.loads(webhook_body(told, "ended", AT))["data"]["actions"] == [sentence]
    shown = [block["text"]["text"] for block in slack_message(told, "ended")["blocks"] if block["type"] == "section"]
    assert shown[-1] == sentence
    assert "actions" not in json.loads(webhook_body(ended(finding=FINDING), "ended", AT))["data"]


def test_of_a_start_nothing_is_told_but_that():
    running = record(State.RUNNING)
    data = json.loads(webhook_body(running, "started", AT))["data"]
    assert data["phase"] == "Started" and "summary" not in data and "usage" not in data
    message = slack_message(running, "started")
    assert message["text"].startswith("Started: ")
    assert [block["type"] for block in message["blocks"]] == ["header", "context", "context"]


PAGE = "https://tarsy.example.org"


@pytest.mark.parametrize(
    ("written", "base"),
    [
        (PAGE, PAGE),
        (f"{PAGE}/", PAGE),
        ("http://127.0.0.1:8081", "http://127.0.0.1:8081"),
        ("http://[::1]:8081/", "http://[::1]:8081"),
        (f"{PAGE}/below/it/", f"{PAGE}/below/it"),
        ("https://" + "h" * (PAGE_LIMIT - 8), "https://" + "h" * (PAGE_LIMIT - 8)),
    ],
)
def test_an_address_of_the_page_is_taken_as_its_links_begin(written, base):
    assert page_address(written) == base


@for_each(
    "written",
    [
        "",
        "tarsy.example.org",
        "ftp://tarsy.example.org",
        "https://",
        "https:///below",
        "https://:443",
        "https://h:port",
        "https://h:99999",
        "https://[::1",
        "https://user:word@h",
        "https://h?x=1",
        "https://h/#/system",
        "https://h/a b",
        "https://h/<b>",
        "https://h/a|b",
        "https://h/a&b",
        "https://h\n",
        "https://hö",
    ],
)
def test_what_is_no_address_of_a_page_is_refused_with_what_is(written):
    with pytest.raises(ValueError, match="is not the address of a page; write http:// or https:// and a host"):
        page_address(written)


def test_an_address_that_slack_would_not_take_is_refused_with_the_limit():
    with pytest.raises(ValueError, match="has 1025 characters; 1024 at most"):
        page_address("https://" + "h" * (PAGE_LIMIT - 7))


@pytest.mark.parametrize("occasion", ["started", "ended"])
def test_what_is_told_links_to_the_pages_view_of_the_run_as_the_page_itself_does(occasion):
    told = ended(final_analysis="a")
    url = f"{PAGE}/#/investigations/{told.namespace}/{told.name}"
    assert slack_link(PAGE, told) == url
    assert json.loads(webhook_body(told, occasion, AT, PAGE))["data"]["url"] == url
    shown = slack_message(told, occasion, PAGE)["blocks"][-1]["elements"]
    assert [element["type"] for element in shown] == ["mrkdwn", "mrkdwn"]
    assert shown[1]["text"] == f"<{url}|Open the investigation>"
    router = (CHECKOUT / "operator" / "page" / "src" / "logic" / "route.ts").read_text("utf-8")
    assert "`#/investigations/${namespace}/${name}" in router


def test_without_an_address_of_the_page_nothing_links_to_it():
    told = ended(final_analysis="a")
    assert json.loads(webhook_body(told, "ended", AT))["data"]["url"] is None
    assert "|Open" not in str(slack_message(told, "ended"))


def test_run_that_waits_for_people_is_told_with_its_sentence_and_where_they_decide_but_no_decision():
    waits_for = "deploy.rollback waits for the approval of people until 2026-11-22 14:00 UTC."
    told = record(State.PARKED)
    data = json.loads(webhook_body(told, "waits", AT, PAGE, waits_for))["data"]
    assert (data["phase"], data["waitsFor"], data["url"]) == ("Waits for approval", waits_for, f"{PAGE}/#/approvals")
    assert data["command"] == f"kubectl tarsy approvals -n {told.namespace}"
    message = slack_message(told, "waits", PAGE, waits_for)
    assert section(message) == waits_for
    assert f"<{PAGE}/#/approvals|See the calls that wait for you>" in json.dumps(message)
    assert {block["type"] for block in message["blocks"]} <= {"header", "context", "section"}, "no button decides"
    without = slack_message(told, "waits")
    assert "#/approvals" not in json.dumps(without)
    assert "waitsFor" not in json.loads(webhook_body(told, "started", AT, PAGE))["data"]
