"""Reads the views with fixture data as an on-call engineer does: what was asked for, what is known, what to do."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from browser.fixture_pages import new_page, opened_state

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.asyncio(loop_scope="session")

CLIPBOARD = """Object.defineProperty(navigator, 'clipboard', {
  value: {writeText: async (text) => void (window.copied = text)},
});"""


@pytest_asyncio.fixture(loop_scope="session")
async def page(chromium: "Browser") -> AsyncIterator["Page"]:
    """A page of 1280 x 800 pixels, two hours east of UTC."""
    async with new_page(chromium, timezone_id="Africa/Cairo") as page:
        yield page


async def test_what_has_not_started_is_listed_with_its_reason_and_remedy(page: "Page") -> None:
    await opened_state(page, "list-not-started")
    rows = page.get_by_role("region", name="Not started").locator("tbody tr")
    told = [" ".join((await row.inner_text()).split()) for row in await rows.all()]
    for row, phase, reason, remedy in (
        (0, "Waiting", "NoChain", "create one, or name one in spec.chainRef"),
        (1, "Pending", "PlanInvalid", "create it, or take the entry out"),
        (2, "Rejected", "AuthorUnknown", "create the Alert while the webhook is reachable"),
        (3, "Pending", "TARSy has not looked at it yet", "check that the operator runs"),
    ):
        assert all(text in told[row] for text in (phase, reason, remedy)), told[row]
    assert await rows.nth(1).get_by_role("link").count() == 1, "an investigation is a link"


async def test_an_investigation_that_was_not_accepted_tells_why_and_what_to_do(page: "Page") -> None:
    await opened_state(page, "investigation-not-accepted")
    await page.locator("[data-answer=cause]", has_text="PlanInvalid").wait_for()
    await page.locator("[data-answer=next]", has_text="Fix this").wait_for()
    assert await page.get_by_text("no record of investigation").count() == 0


async def test_an_alert_that_waits_or_was_rejected_tells_its_reason_after_it_was_submitted(page: "Page") -> None:
    for state, phase, reason in (
        ("submit-waiting-for-chain", "Waiting", "NoChain: No Chain accepts alerts of type TargetDown. Create one"),
        ("submit-rejected", "Rejected", "NotPermitted: user ann may not use chain"),
    ):
        await opened_state(page, state)
        await page.get_by_text(f"Alert bank/targetdown-1: {phase}.").wait_for()
        await page.get_by_role("alert").filter(has_text=reason).wait_for()


async def test_times_are_of_the_zone_that_was_picked_in_every_view(page: "Page") -> None:
    await opened_state(page, "list-states")
    first = page.locator(".runs tbody td:last-child").first
    assert (await first.inner_text()).startswith("05:10")
    await page.get_by_role("button", name="Local time").click()
    await page.get_by_role("button", name="UTC", pressed=True).wait_for()
    assert (await first.inner_text()).startswith("03:10")
    await opened_state(page, "investigation-succeeded-high")
    await page.get_by_role("button", name="UTC", pressed=True).wait_for()
    await page.get_by_text("22 Nov 2026, 03:04:30 UTC").wait_for()
    await page.evaluate(CLIPBOARD)
    await page.get_by_role("button", name="Share").click()
    await page.get_by_role("button", name="Copy as Markdown").click()
    await page.wait_for_function("window.copied.includes('22 Nov 2026')")
    assert "UTC" in await page.evaluate("window.copied") and "GMT+2" not in await page.evaluate("window.copied")
    await opened_state(page, "system-broken-server")
    await page.locator(".object-details").get_by_text("22 Nov 2026, 01:42:00 UTC").first.wait_for()


async def test_a_command_of_the_next_steps_is_copied_alone(page: "Page") -> None:
    await page.add_init_script(CLIPBOARD)
    await opened_state(page, "investigation-succeeded-high")
    steps = page.locator("section.card", has=page.get_by_role("heading", name="What to do next"))
    await steps.get_by_role("button", name="Copy").click()
    assert await page.evaluate("window.copied") == "kubectl -n shop rollout restart deployment/checkout"


async def test_every_phase_is_listed_what_goes_on_apart_from_what_has_ended_and_counted(page: "Page") -> None:
    await opened_state(page, "list-states")
    for name, phases in (
        ("Active", {"Queued", "Running", "Concluding", "Parked"}),
        ("Finished", {"Succeeded", "Failed", "Cancelled", "TimedOut"}),
    ):
        section = page.get_by_role("region", name=name, exact=True)
        assert set(await section.locator("td .badge").all_inner_texts()) == phases
        assert (await section.get_by_role("heading").inner_text()).split() == [
            name,
            str(await section.locator("tbody tr").count()),
        ]
    told = " ".join((await page.get_by_role("region", name="Finished").inner_text()).split())
    for badge in ("Critical", "Warning", "Recurred", "Settled", "High (12 of 20 right)", "Low", "Evidence missing"):
        assert badge in told, badge
    await opened_state(page, "list-finished")
    await page.get_by_role("heading", name="Finished 1,000+").wait_for()


async def test_rows_of_one_alert_differ_in_what_is_shown_of_their_names(page: "Page") -> None:
    await opened_state(page, "list-states")
    ends = """names => names.map((name) => {
      const range = document.createRange();
      range.selectNodeContents(name.lastChild);
      return [name.lastChild.data, range.getBoundingClientRect().right <= name.getBoundingClientRect().right + 1];
    })"""
    shown = await page.locator(".runs .where").evaluate_all(ends)
    assert len({end for end, _ in shown}) == len(shown) and all(within for _, within in shown)


async def test_an_alert_is_laid_out_by_labels_annotations_and_links(page: "Page") -> None:
    await opened_state(page, "investigation-succeeded-high")
    card = page.locator("section.card", has=page.get_by_role("heading", name="Alert", exact=True))
    pairs = await card.locator(".alert-parts > div").all_inner_texts()
    told = dict(" ".join(pair.split()).split(" ", 1) for pair in pairs)
    assert told["pod"] == "checkout-6f7d9c8b54-k8x2p" and told["severity"] == "critical"
    assert told["summary"] == "Pod shop/checkout-6f7d9c8b54-k8x2p is crash looping."
    link = card.get_by_role("link", name="runbook_url")
    assert (await link.get_attribute("href") or "").startswith("https://runbooks.prometheus-operator.dev/")
    await card.get_by_text("Text of the alert").click()
    await card.get_by_label("Text of the alert").get_by_text('"alertname"').wait_for()


async def test_a_running_investigation_tells_who_does_what_and_a_finding_why_it_is_not_surer(page: "Page") -> None:
    await opened_state(page, "investigation-running-parallel")
    work = page.get_by_role("list", name="At work").get_by_role("listitem")
    told = [" ".join(one.split()) for one in await work.all_inner_texts()]
    assert told == ["log-analyst Response", "change-analyst Response", "node-analyst Response"]
    head = page.locator(".run-head")
    for text in ("KubePodCrashLooping", "Running", "examine", "47 s of 30 m 0 s"):
        assert text in " ".join((await head.inner_text()).split()), text
    await opened_state(page, "investigation-succeeded-low")
    await page.locator(".doubts", has_text="1 claim is not supported by the record.").wait_for()


async def test_a_confidence_that_reviewers_doubt_says_why(page: "Page") -> None:
    await opened_state(page, "investigation-succeeded-not-calibrated")
    await page.locator(".doubts", has_text="High (12 of 20 right)").wait_for()


async def test_hypotheses_of_sub_agents_show_their_verdict_and_evidence(page: "Page") -> None:
    await opened_state(page, "investigation-sub-agents")
    tree = page.locator("section.card", has=page.get_by_role("heading", name="Sub-agents and their hypotheses"))
    await tree.get_by_text("checkout cannot reach its database").wait_for()
    assert "Unresolved" in await tree.inner_text()
    await tree.get_by_role("button", name="kubernetes.get_logs").click()
    await page.locator(".event.chosen mark", has_text="connection refused").wait_for()


async def test_the_quality_of_findings_and_the_room_in_quotas_are_shown(page: "Page") -> None:
    await opened_state(page, "usage")
    quotas = page.locator("section.card", has=page.get_by_role("heading", name="Quotas"))
    assert await quotas.get_by_role("meter", name="Investigations").get_attribute("aria-valuetext") == "30 of 30"
    await quotas.get_by_text("investigations wait.").wait_for()
    reviews = page.locator("section.card", has=page.get_by_role("heading", name="Reviews of findings"))
    row = reviews.get_by_role("row", name="High confidence")
    assert (await row.inner_text()).split()[-4:] == ["18", "1", "2", "86%"]
    recurrences = page.locator("section.card", has=page.get_by_role("heading", name="Recurrences"))
    await recurrences.get_by_text("10 of 83 of the findings with a known outcome recurred").wait_for()
    evaluations = page.locator("section.card", has=page.get_by_role("heading", name="Evaluations"))
    await evaluations.get_by_text("shop/checkout").first.wait_for()


async def test_usage_is_of_any_group_and_tells_what_a_finding_costs(page: "Page") -> None:
    await opened_state(page, "usage")
    figures = page.locator(".figures.large > div", has_text="Cost a finding")
    assert " ".join((await figures.inner_text()).split()) == "Cost a finding $0.36"
    chart = page.locator("figure", has=page.get_by_role("group", name="Cost, 24 Oct to 22 Nov"))
    ticks = await chart.locator(".plot-axis text").all_text_contents()
    assert "$0" in ticks and "22 Nov" in ticks, "both axes have their values"
    for group in ("chain", "model", "namespace", "author"):
        await page.get_by_label("Group by").select_option(group)
        await page.wait_for_url(f"**#/usage?by={group}&days=30")
    await opened_state(page, "reviews-not-calibrated")
    calibration = page.get_by_role("row").filter(has_text="12 of 20").filter(has_text="39 to 78%")
    await calibration.locator(".c-doubted, .c-High", has_text="High").wait_for()


async def test_workers_tell_whether_they_live_and_how_full_they_are(page: "Page") -> None:
    await opened_state(page, "system-draining")
    told = [" ".join(one.split()) for one in await page.locator(".workers li").all_inner_texts()]
    for one, state, load in ((told[0], "Draining", "runs 3/20"), (told[1], "Alive", "runs 0/20")):
        assert one.startswith(state) and load in one and "last heartbeat 2.0 s ago" in one
    await opened_state(page, "system-no-worker")
    await page.locator(".answers", has_text="No worker is alive.").wait_for()


async def test_the_share_of_an_unknown_cost_is_not_shown_as_zero(page: "Page") -> None:
    await opened_state(page, "usage-partly-priced")
    row = page.get_by_role("row", name="a-local-model-without-rates").first
    assert await row.get_by_role("meter").count() == 0
    assert "0%" not in await row.inner_text()


async def test_the_link_of_the_view_is_in_sight_in_a_narrow_window(page: "Page") -> None:
    await page.set_viewport_size({"width": 400, "height": 800})
    await opened_state(page, "usage")
    box = await page.get_by_role("navigation", name="Views").get_by_role("link", name="Usage").bounding_box()
    assert box is not None and box["x"] >= 0 and box["x"] + box["width"] <= 400


async def test_the_last_runs_and_the_failures_of_an_object_are_shown_with_its_conditions(page: "Page") -> None:
    await opened_state(page, "system-broken-server")
    details = page.locator(".object-details")
    for text in (
        "Available: False",
        "connection refused at http://prometheus-mcp",
        "Chain tarsy-library/kubernetes-deep",
    ):
        await details.get_by_text(text).first.wait_for()
    await details.get_by_role("link", name="shop/checkout-crash-1f2e3d4c").wait_for()
    strip = page.locator(".objects > li", has=page.get_by_role("button", name="tarsy-library/prometheus"))
    assert await strip.locator(".hour.h-bad").count() == 2


async def test_a_server_that_is_away_is_tried_again(page: "Page") -> None:
    await opened_state(page, "server-away")
    await page.get_by_role("alert").filter(has_text="the server is starting").wait_for()
    await page.get_by_role("button", name="Try again").click()
    await page.get_by_role("alert").filter(has_text="the server is starting").wait_for()
