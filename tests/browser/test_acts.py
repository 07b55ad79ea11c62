"""Uses the views with fixture data as a person does: follows links, presses keys, prints."""

import re
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from browser.conftest import SCREENSHOTS
from browser.fixture_pages import new_page, opened, opened_state

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def page(chromium: "Browser") -> AsyncIterator["Page"]:
    """A page of 1280 x 800 pixels."""
    async with new_page(chromium, timezone_id="UTC") as page:
        yield page


async def test_a_flaw_of_a_run_leads_to_the_list_of_those_that_have_it(page: "Page") -> None:
    await opened_state(page, "list-states")
    filtered = "**#/investigations?flaw=BudgetReached"
    await page.get_by_role("link", name="Budget reached", exact=True).click()
    await page.wait_for_url(filtered)
    assert await page.get_by_label("Flaw", exact=True).input_value() == "BudgetReached"
    count = page.get_by_label("Flaws of these investigations").get_by_role("link", name="Budget reached")
    assert await count.locator(".number").inner_text() == "1"
    await count.click()
    await page.wait_for_url("**#/investigations")
    await count.click()
    await page.wait_for_url(filtered)
    await page.get_by_role("link", name="Warning", exact=True).click()
    await page.wait_for_url("**#/investigations?flaw=BudgetReached&severity=Warning")
    await page.get_by_role("link", name="Clear filters").click()
    await page.wait_for_url("**#/investigations")


async def test_columns_sort_by_what_is_highest(page: "Page") -> None:
    await opened_state(page, "list-finished")
    for column, sort in (("Duration", "duration"), ("Investigation", "severity"), ("Finding", "confidence")):
        header = page.get_by_role("columnheader", name=column)
        await header.get_by_role("button").click()
        await page.wait_for_url(f"**#/investigations?sort={sort}")
        assert await header.get_attribute("aria-sort") == "descending"
    assert await page.get_by_label("Sort").input_value() == "confidence"


async def test_a_running_investigation_keeps_its_bars_and_its_buttons_in_sight(page: "Page") -> None:
    await opened_state(page, "investigation-running-budget")
    meter = page.get_by_role("meter", name="Iterations")
    assert await meter.get_attribute("aria-valuetext") == "17 of 20"
    for top in (0, 400, 10_000):
        await page.evaluate("top => scrollTo(0, top)", top)
        for one in (meter, page.get_by_role("button", name="Conclude"), page.get_by_role("heading", level=1)):
            box = await one.bounding_box()
            assert box is not None and 0 <= box["y"] < 800


async def test_a_finished_investigation_is_run_again_or_the_reason_why_not_is_told(page: "Page") -> None:
    await opened_state(page, "investigation-run-again")
    await page.get_by_role("alert").filter(has_text="submit the alert again").wait_for()
    await page.get_by_role("button", name="Close").click()
    assert await page.get_by_role("form", name="Run again").count() == 0
    await opened_state(page, "investigation-object-gone")
    assert await page.get_by_role("button", name="Run again").count() == 0, "its alert is not there any more"


async def _posted(page: "Page") -> list[dict[str, Any]]:
    """Returns the requests that would have changed something, once there is one."""
    await page.wait_for_function("window.posted.length > 0")
    return list(await page.evaluate("window.posted"))


async def test_an_alert_is_investigated_anew_with_another_chain_and_model(page: "Page") -> None:
    await opened_state(page, "investigation-run-again-form")
    form = page.get_by_role("form", name="Run again")
    await form.get_by_label("Chain").select_option("kubernetes-deep")
    await form.get_by_label("Model").select_option("second")
    await form.get_by_role("button", name="Start the run").click()
    await page.wait_for_url("**#/investigations/shop/kubepodcrashlooping-7f3a9c-retry-x8k2p")
    (sent,) = await _posted(page)
    assert sent["path"].endswith("/retries")
    assert sent["body"] == {"chain": "kubernetes-deep", "llmProvider": "second"}


async def test_a_finished_investigation_is_replayed_with_its_record(page: "Page") -> None:
    await opened_state(page, "investigation-replay-form")
    await page.get_by_role("button", name="Start the replay").click()
    (sent,) = await _posted(page)
    assert sent["path"] == "/namespaces/shop/investigations/kubepodcrashlooping-7f3a9c/replays"


async def test_events_that_arrive_while_a_reader_reads_are_counted(page: "Page") -> None:
    await opened_state(page, "investigation-running")
    await page.get_by_role("button", name="Pause").click()
    for seq in (900, 901):
        await page.evaluate(ARRIVES, seq)
        await page.get_by_role("button", name=f"{seq - 899} new event").wait_for()
    await page.get_by_role("button", name="2 new events").click()
    await page.get_by_role("button", name="Pause").wait_for()
    await page.locator(".event", has_text="It arrives later: 901.").wait_for()


async def test_two_investigations_are_compared_and_their_differences_are_marked(page: "Page") -> None:
    await opened_state(page, "compare")
    second = page.get_by_role("region", name="kubepodcrashlooping-7f3a9c-replay-6rvsk")
    assert await second.locator(".apart dt").all_inner_texts() == ["Chain", "Confidence"]
    assert "−74%" in await second.inner_text()
    await page.get_by_text("1 call is the same, then:").wait_for()
    await page.get_by_role("link", name="Swap sides").click()
    await page.wait_for_url("**#/compare/shop/kubepodcrashlooping-7f3a9c-replay-6rvsk/kubepodcrashlooping-7f3a9c")


async def test_a_call_is_approved_or_rejected_with_the_digest_of_what_is_shown(page: "Page") -> None:
    for decision, button in (("Approve", "Approve"), ("Reject", "Reject")):
        await opened_state(page, "approval")
        form = page.get_by_role("form", name="Your decision")
        await form.get_by_label("Reason (optional)").fill("Seen in the logs too.")
        await form.get_by_role("button", name=button).click()
        (sent,) = await _posted(page)
        digest = await page.locator("code", has_text="sha256:").inner_text()
        assert sent["path"].endswith("/decisions")
        assert sent["body"] == {"decision": decision, "argumentsDigest": digest, "reason": "Seen in the logs too."}


async def test_a_destructive_call_is_approved_only_by_who_types_its_name(page: "Page") -> None:
    await opened_state(page, "approval-destructive")
    form = page.get_by_role("form", name="Your decision")
    approve = form.get_by_role("button", name="Approve")
    assert await approve.is_disabled()
    await form.get_by_label("To approve this destructive call").fill("checkout-6f7d9c8b54-k8x2p")
    assert await approve.is_enabled()


ARRIVES = """seq => window.tell({
  type: 'timelineEvent.closed', channel: 'investigation:shop/kubepodcrashlooping-7f3a9c', id: String(seq),
  question: null,
  investigation: {namespace: 'shop', name: 'kubepodcrashlooping-7f3a9c', uid: '5b6f0d52-9a3e-4f0e-8a53-0d2f6f3a1c01'},
  event: {
    id: `00000000-0000-4000-8000-000000000${seq}`, seq, revision: seq, type: 'llm_response', status: 'completed',
    content: `It arrives later: ${seq}.`, metadata: {}, stage: 'investigate', agent: 'kubernetes-agent', parent: null,
    stageId: 'stage-0', execution: 'execution-kubernetes-agent', modelCall: null, toolCall: null,
    createdAt: '2026-11-22T03:12:00Z', updatedAt: '2026-11-22T03:12:00Z', truncated: false,
  },
})"""


async def test_several_findings_are_claimed_at_once(page: "Page") -> None:
    await opened_state(page, "reviews")
    for box in await page.get_by_role("checkbox").all():
        await box.check()
    together = page.locator("section.card", has_text="2 ")
    await together.get_by_role("button", name="I review it").click()
    (sent,) = await _posted(page)
    assert sent["path"] == "/namespaces/shop/reviews"
    assert sent["body"] == {"action": "Claim", "investigations": ["kubepodcrashlooping-7f3a9c", "checkout-latency-3b1"]}


async def test_a_finding_is_claimed_and_reviewed(page: "Page") -> None:
    await opened_state(page, "investigation-review")
    review = page.locator("section.card", has=page.get_by_role("heading", name="Was it right?"))
    await review.get_by_text("I look at the release.").wait_for()
    await review.get_by_role("button", name="I review it").click()
    (claimed,) = await _posted(page)
    assert claimed["body"] == {"action": "Claim", "investigations": ["kubepodcrashlooping-7f3a9c"]}
    await page.evaluate("window.posted = []")
    await review.get_by_label("Root cause").fill("ConfigMap/checkout-config")
    await review.get_by_role("button", name="Right", exact=True).click()
    await review.get_by_text("Your Review was created.").wait_for()
    (sent,) = await _posted(page)
    assert sent["body"]["verdict"] == "Right"
    assert sent["body"]["rootCause"] == {"kind": "ConfigMap", "name": "checkout-config"}


NOTIFICATION = """
window.told = [];
window.Notification = class {
  static get permission() { return localStorage.getItem('permission') ?? 'default'; }
  static async requestPermission() {
    localStorage.setItem('permission', window.mayNotify ?? 'granted');
    return Notification.permission;
  }
  constructor(title, options) { window.told.push([title, options.body]); }
  close() {}
};
"""


async def test_the_palette_leads_to_views_actions_and_investigations(page: "Page") -> None:
    await opened_state(page, "list-states")
    await page.keyboard.press("Control+k")
    palette = page.get_by_role("combobox", name="Commands")
    assert await palette.evaluate("input => input === document.activeElement")
    await palette.fill("usage")
    await palette.press("Enter")
    await page.wait_for_url("**#/usage")
    assert await palette.count() == 0
    await page.keyboard.press("Control+k")
    await palette.fill("nodememory")
    await page.get_by_role("option", name="NodeMemoryPressure").wait_for()
    await palette.press("ArrowDown")
    await palette.press("ArrowUp")
    await palette.press("Enter")
    await page.wait_for_url("**#/investigations/shop/nodememorypressure-*")
    await page.keyboard.press("Control+k")
    await palette.fill("light and dark")
    await palette.press("Enter")
    assert await page.evaluate("document.documentElement.dataset.theme") == "dark"
    await page.keyboard.press("Meta+k")
    await palette.fill("no such thing")
    await page.get_by_text("Nothing matches.").wait_for()
    await palette.press("Escape")
    assert await palette.count() == 0


async def test_the_keys_are_shown_by_a_question_mark_and_do_what_is_said(page: "Page") -> None:
    await opened_state(page, "investigation-succeeded-high")
    await page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    await keys.get_by_text("Open all events of a timeline").wait_for()
    await page.keyboard.press("o")
    assert await page.locator(".folded-event").count() > 0, "keys of a view do nothing while a dialog is open"
    await keys.get_by_role("button", name="Close").click()
    assert await keys.count() == 0
    await page.keyboard.press("o")
    await page.get_by_role("button", name="Fold all").wait_for()
    assert await page.locator(".folded-event").count() == 0
    await opened_state(page, "investigation-running")
    await page.keyboard.press("f")
    await page.get_by_role("button", name="Follow").wait_for()
    await page.keyboard.press("f")
    await page.get_by_role("button", name="Pause").wait_for()


async def test_a_new_version_of_the_server_is_told_and_put_off(page: "Page") -> None:
    await opened_state(page, "list-new-version")
    notice = page.get_by_role("status").filter(has_text="A new version of TARSy is running.")
    await notice.get_by_role("button", name="Later").click()
    assert await notice.count() == 0
    await page.reload()
    await notice.get_by_role("button", name="Reload").wait_for()


async def test_a_lost_connection_tells_how_old_the_data_is(page: "Page") -> None:
    await opened_state(page, "investigation-connection-lost")
    lost = page.get_by_role("status").filter(has_text="Connection lost")
    assert re.search(r"data of \d\d:\d\d:\d\d", await lost.inner_text())


async def test_a_followed_investigation_notifies_of_its_end(page: "Page") -> None:
    await page.add_init_script(NOTIFICATION)
    await opened_state(page, "investigation-running")
    assert await page.evaluate("Notification.permission") == "default", "nobody is asked before a click"
    follow = page.get_by_role("button", name="Notify me")
    await follow.click()
    await page.get_by_role("button", name="Notifying me", pressed=True).wait_for()
    # The same investigation has ended, and another view is open.
    await opened(page, "fixtures.html?state=investigation-succeeded-high#/system")
    await page.wait_for_function("window.told.length > 0")
    ((title, text),) = await page.evaluate("window.told")
    assert title == "Succeeded: KubePodCrashLooping" and text.startswith("checkout in namespace shop crash loops")
    assert await page.evaluate("localStorage.getItem('tarsy-followed')") == "[]", "it is told once"


async def test_who_blocks_notifications_is_told_so(page: "Page") -> None:
    await page.add_init_script(NOTIFICATION + "window.mayNotify = 'denied';")
    await opened_state(page, "investigation-running")
    await page.get_by_role("button", name="Notify me").click()
    await page.get_by_text("Notifications are blocked in this browser.").wait_for()
    await page.get_by_role("button", name="Notify me", pressed=False).wait_for()


PRINTED = """() => ({
  events: document.querySelectorAll('.event').length,
  folded: document.querySelectorAll('.folded-event').length,
  closed: document.querySelectorAll('details:not([open])').length,
  more: [...document.querySelectorAll('button')].filter((one) => one.checkVisibility()).map((one) => one.innerText),
  frame: document.querySelector('.top').checkVisibility(),
  background: getComputedStyle(document.querySelector('.card')).backgroundColor,
  wide: document.documentElement.scrollWidth > innerWidth,
  last: (document.querySelector('.printed') ?? document.body).innerText.split('Back-off restarting failed').length - 1,
})"""


async def test_what_is_printed_is_complete_and_has_no_frame(page: "Page") -> None:
    await page.emulate_media(color_scheme="dark")
    await opened_state(page, "investigation-succeeded-high")
    await page.set_viewport_size({"width": 720, "height": 1000})
    shown = await page.evaluate(PRINTED)
    total = int((await page.locator(".timeline-bar .hint").inner_text()).split()[0])
    assert shown["folded"] > 0 and shown["closed"] > 0 and shown["frame"]
    await page.emulate_media(media="print")
    await page.locator(".printed").wait_for()
    printed = await page.evaluate(PRINTED)
    assert printed["events"] == total and printed["folded"] == 0 and printed["closed"] == 0
    assert printed["last"] == 40, "a long result is there to its last line"
    assert not printed["frame"] and not printed["wide"] and printed["background"] == "rgb(255, 255, 255)"
    assert not [text for text in printed["more"] if re.match("Show|Copy|Fold|Run again|Ask", text)]
    await page.get_by_text("#/investigations/shop/").first.wait_for()
    assert await page.locator(".facts").is_visible() and await page.locator(".claims").is_visible()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    await page.screenshot(path=SCREENSHOTS / "print.png", full_page=True)
    pages = (await page.pdf(format="A4")).count(b"/Type /Page\n")
    assert pages >= 3
    await page.emulate_media(media="screen")
    await page.locator(".folded-event").first.wait_for()
    assert (await page.evaluate(PRINTED))["closed"] == shown["closed"]


async def test_a_running_investigation_is_printed_whole_too(page: "Page") -> None:
    await opened_state(page, "investigation-running-parallel")
    total = int((await page.locator(".timeline-bar .hint").inner_text()).split()[0])
    await page.emulate_media(media="print")
    await page.locator(".printed").wait_for()
    assert await page.locator(".event").count() == total
    assert not await page.get_by_role("button", name="Cancel").is_visible()


async def test_an_investigation_is_shared_as_a_link_or_as_markdown(page: "Page") -> None:
    await page.add_init_script("""Object.defineProperty(navigator, 'clipboard', {
      value: {writeText: async (text) => void (window.copied = text)},
    });""")
    await opened_state(page, "investigation-share")
    share = page.get_by_role("group", name="Share")
    await share.get_by_role("button", name="Copy link").click()
    await share.get_by_role("button", name="Copied").wait_for()
    assert await page.evaluate("window.copied === location.href")
    await share.get_by_role("button", name="Copy as Markdown").click()
    await page.wait_for_function("window.copied.startsWith('# KubePodCrashLooping: shop/')")
    json = share.get_by_role("link", name="JSON")
    assert (await json.get_attribute("href") or "").startswith("/api/v1/namespaces/shop/investigations/")


async def test_a_stage_is_folded_to_one_line_and_a_citation_opens_it(page: "Page") -> None:
    await opened_state(page, "investigation-succeeded-high")
    head = page.get_by_role("button", name="investigate", exact=True).last
    await head.click()
    assert await head.get_attribute("aria-expanded") == "false"
    line = page.locator(".stage-row", has=head)
    assert re.search(r"kubernetes-agent · \d+ events, \d+ tool calls", await line.inner_text())
    assert await page.locator(".event", has_text="kubernetes.list_events").count() == 0
    await page.locator(".claims blockquote button").first.click()
    await page.locator(".event.chosen mark").wait_for()
    assert await head.get_attribute("aria-expanded") == "true"


async def test_a_result_that_was_handed_on_to_a_second_attempt_is_marked_in_the_timeline(page: "Page") -> None:
    await opened_state(page, "investigation-escalated")
    await page.get_by_label("Search in the timeline").fill("kubernetes.get_pods")
    await page.get_by_role("button", name="Open all").click()
    mark = page.locator(".event").get_by_text("from the first attempt")
    await mark.wait_for()
    assert await mark.is_visible()
