"""Tests the view System: what waits, which object is broken, and what would run, by mouse and by keys."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from browser.fixture_pages import ORIGIN, drawn, new_page, opened_state

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def page(chromium: "Browser") -> "AsyncIterator[Page]":
    """A page of a window of 1280 x 800 pixels."""
    async with new_page(chromium) as page:
        yield page


async def test_what_waits_the_longest_comes_first_with_its_reason(page: "Page") -> None:
    await opened_state(page, "system")
    rows = page.locator(".waiting li")
    assert [text.split()[0] for text in await rows.locator(".why-waits").all_inner_texts()] == [
        "NoChain",
        "WaitingForApproval",
        "WaitingForQuota",
        "NoPlace",
    ]
    question = rows.nth(3).get_by_role("link")
    assert await question.get_attribute("href") == "#/investigations/shop/checkout-crash-1f2e3d4c"


async def test_keys_open_an_object_and_lead_to_what_uses_it(page: "Page") -> None:
    await opened_state(page, "system")
    row = page.get_by_role("button", name="tarsy-library/prometheus")
    assert await row.get_attribute("aria-expanded") == "false"
    await row.focus()
    await page.keyboard.press("Enter")
    details = page.locator(".object-details")
    await details.get_by_text("http://prometheus-mcp.monitoring.svc:8080", exact=True).wait_for()
    await details.get_by_role("link", name="shop/checkout-crash-1f2e3d4c").wait_for()
    await details.get_by_role("link", name="Chain tarsy-library/kubernetes-deep").click()
    await page.locator(".object-details", has_text="KubePodCrashLooping").wait_for()
    assert "object=Chain" in page.url


async def test_filters_are_in_the_address_and_are_cleared(page: "Page") -> None:
    await opened_state(page, "system-many")
    objects = page.locator(".objects > li")
    every = 200
    assert await objects.count() == every
    await page.get_by_role("searchbox", name="Search objects").fill("chain-1")
    await page.get_by_text("10 objects", exact=True).wait_for()
    assert "search=chain-1" in page.url
    await page.get_by_role("combobox", name="Any health").select_option("NotReady")
    await page.get_by_text("No object matches the filters.").wait_for()
    await page.get_by_role("button", name="Clear filters").click()
    await page.get_by_text(f"{every} objects").wait_for()


async def test_a_plan_is_a_tree_with_the_source_of_each_setting(page: "Page") -> None:
    await opened_state(page, "system-plan")
    tree = page.locator(".plan-tree")
    await tree.get_by_text("Chain tarsy-library/kubernetes-deep spec.strategy").first.wait_for()
    await page.locator(".plan-warnings", has_text="metrics-agent: server tarsy-library/prometheus").wait_for()
    await tree.locator("summary", has_text="sub-agent (at most 3)").click()
    await tree.get_by_text("Agent tarsy-library/metrics-agent spec.mcpServers").wait_for()
    await page.get_by_role("combobox", name="Chain", exact=True).select_option("shop/checkout")
    await page.wait_for_url("**plan=shop%2Fcheckout**")


async def test_an_object_leads_to_the_plan_of_its_chain(page: "Page") -> None:
    await opened_state(page, "system-broken-chain")
    await page.get_by_role("link", name="Show the plan of this chain").click()
    await page.wait_for_url("**plan=shop%2Fcheckout**")
    await page.goto(f"{ORIGIN}/fixtures.html?state=system-plan-errors")
    await drawn(page)
    await page.get_by_text("No investigation would start:").wait_for()
    assert await page.locator(".plan-tree").count() == 0


async def test_the_health_of_an_object_over_time_is_told_by_keys_and_by_the_pointer(page: "Page") -> None:
    await opened_state(page, "system")
    told = "Health of MCPServer tarsy-library/prometheus: 5 of 24 parts with a problem, 7 changes"
    strip = page.get_by_role("slider", name=told, exact=True)
    tip = page.locator(".health-tip")
    await strip.focus()
    await tip.get_by_text("Degraded since").wait_for()
    assert "connection refused" in (await strip.get_attribute("aria-valuetext") or "")
    await page.keyboard.press("Home")
    await tip.get_by_text("Ready").wait_for()
    assert await strip.get_attribute("aria-valuenow") == "1"
    await page.keyboard.press("Escape")
    await tip.wait_for(state="detached")
    await page.get_by_role("searchbox").focus()
    box = await strip.bounding_box()
    assert box is not None
    await page.mouse.move(box["x"] + box["width"] * 4.5 / 24, box["y"] + box["height"] / 2)
    await tip.get_by_text("2 changes").wait_for()
    await page.mouse.move(0, 0)
    await tip.wait_for(state="detached")


async def test_changes_of_conditions_are_a_table_of_the_object_and_the_period_is_in_the_address(page: "Page") -> None:
    await opened_state(page, "system-broken-server")
    rows = page.locator(".transitions tbody tr")
    first = await rows.first.inner_text()
    assert "True → False" in first and "http://prometheus-mcp.monitoring.svc:8080" in first
    assert "an earlier object of this name" in await rows.last.inner_text()
    await page.get_by_role("combobox", name="Period of health").select_option("Last 7 days")
    await page.wait_for_url("**period=7d**")
    await opened_state(page, "system-broken-chain")
    await page.get_by_text("No change of its conditions is recorded.").wait_for()
