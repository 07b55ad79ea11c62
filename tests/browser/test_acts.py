"""Uses the views with fixture data as a person does: follows links, presses keys, prints."""

from collections.abc import AsyncIterator, Iterator
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from browser.fixture_pages import opened_state

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest.fixture(autouse=True)
def gate() -> Iterator[None]:
    """Replaces the fixture of the folder: no stack is needed here."""
    yield


@pytest_asyncio.fixture(loop_scope="session")
async def page(chromium: "Browser") -> AsyncIterator["Page"]:
    """A page of 1280 x 800 pixels."""
    context = await chromium.new_context(viewport={"width": 1280, "height": 800}, timezone_id="UTC")
    page = await context.new_page()
    page.set_default_timeout(30_000)
    yield page
    await context.close()


async def test_a_flaw_of_a_run_leads_to_the_list_of_those_that_have_it(page: "Page") -> None:
    await opened_state(page, "list-states")
    await page.get_by_role("link", name="Budget reached").click()
    await page.wait_for_url("**#/investigations?flaw=BudgetReached")
    assert await page.get_by_label("Flaw").input_value() == "BudgetReached"
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
