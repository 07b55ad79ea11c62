"""Draws every view in every state from fixtures, and checks accessibility and layout in both themes and widths.

Decision: no pictures are compared, because fonts differ between machines. What a picture would show to be wrong is
computed from the boxes of the texts (layout.js): they may not overlap, break after every few letters, or be wider than
the window. The pictures are in build/screenshots for people.
"""

import asyncio
import gzip
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from browser.conftest import SCREENSHOTS, SECONDS
from browser.fixture_pages import ORIGIN, drawn, opened
from browser.looking import violations
from tarsy.http.web_ui import FOLDER, read_page

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page, Route

pytestmark = pytest.mark.asyncio(loop_scope="session")

LAYOUT = (Path(__file__).parent / "layout.js").read_text()
QUESTIONS = (Path(__file__).parent / "answers.js").read_text()
"""What is happening, what is the cause and how sure is that, what to do next: each view of an investigation answers."""
LOOKS = (("light", 1280, 800), ("dark", 1280, 800), ("light", 400, 800), ("dark", 400, 800))
PARTS = 3
"""Tests that the states are dealt out to, so that each has time on a slow machine."""
FIRST_LOAD = 200_000
"""Compressed bytes of the HTML and of what it loads at once."""
WIDE = 1280
LEAST_STATES = 40
ROWS = 25
DAYS = 30
SAME = 5
"""Rows of a list of five alerts, three of them alike, with the group opened."""
UNANSWERED = """() => {
  const shown = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const range = document.createRange();
    range.selectNodeContents(node);
    const box = range.getBoundingClientRect();
    if (box.width > 0 && box.bottom <= innerHeight && box.top >= 0) shown.push(node.data);
  }
  const text = shown.join('').replace(/\\s+/g, ' ');
  return window.answers.filter((answer) => !text.includes(answer));
}"""


async def _states(page: "Page") -> list[str]:
    await opened(page, "fixtures.html")
    await page.get_by_role("heading", name="Fixtures").wait_for()
    return [str(link) for link in await page.locator("a").evaluate_all("links => links.map(one => one.search)")]


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(("scheme", "width", "height"), LOOKS, ids=lambda value: str(value))
async def test_every_state_is_accessible_and_readable(
    chromium: "Browser", scheme: str, width: int, height: int, part: int
) -> None:
    context = await chromium.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,  # type: ignore[arg-type]
        reduced_motion="reduce",
        timezone_id="UTC",
    )
    page = await context.new_page()
    page.set_default_timeout(SECONDS * 1000)
    faults: list[str] = []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda said: faults.append(said.text) if said.type == "error" else None)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    states = await _states(page)
    assert len(states) > LEAST_STATES
    for state in states[part::PARTS]:
        name = state.removeprefix("?state=")
        await page.goto(f"{ORIGIN}/fixtures.html{state}")
        await drawn(page)
        await page.screenshot(path=SCREENSHOTS / f"state-{name}-{scheme}-{width}.png")
        wrong = list(await page.evaluate(LAYOUT))
        if width == WIDE:
            wrong += [f"does not answer within the window: {one}" for one in await page.evaluate(UNANSWERED)]
        if width == WIDE and name.startswith("investigation-"):
            wrong += [f"does not answer within the window: {one}?" for one in await page.evaluate(QUESTIONS)]
        # A control that is scrolled half under the sticky head counts as too small.
        await page.evaluate("scrollTo(0, 0)")
        wrong += await violations(page)
        faults += [f"{name}: {one}" for one in wrong]
    await context.close()
    assert not faults, "\n".join(faults)


async def test_the_first_load_is_small_and_contains_no_fixtures() -> None:
    index = (FOLDER / "index.html").read_text()
    assets = set(re.findall(r'"/page/assets/([^"]+)"', index))
    assert assets
    files = read_page()
    assert sum(len(gzip.compress(files[name].body)) for name in ("index.html", *assets)) <= FIRST_LOAD
    assert not [name for name, file in files.items() if b"checkout-6f7d9c8b54" in file.body]


async def test_the_strip_of_changes_leads_to_its_tool_calls(chromium: "Browser") -> None:
    page = await chromium.new_page(viewport={"width": 1280, "height": 800})
    await opened(page, "fixtures.html?state=investigation-succeeded-high")
    strip = page.locator("section.card", has=page.get_by_role("heading", name="Changes around the onset"))
    await strip.get_by_text("First candidate").wait_for()
    await strip.locator(".first-candidate").get_by_role("button", name="ConfigMap shop/checkout-config").click()
    await page.locator(".event.chosen", has_text="tarsy.changes").wait_for()
    await strip.get_by_role("button", name="container-exits-at-start").click()
    await page.locator(".event.chosen", has_text="tarsy.triage").wait_for()
    await strip.get_by_role("button", name="Show more").click()
    await strip.get_by_text("NetworkPolicy shop/payments-ingress").wait_for()
    await page.close()


async def test_an_investigation_without_changes_has_no_strip(chromium: "Browser") -> None:
    page = await chromium.new_page()
    await opened(page, "fixtures.html?state=investigation-succeeded-low")
    await page.get_by_role("heading", name="Finding").wait_for()
    await drawn(page)
    assert await page.get_by_role("heading", name="Changes").count() == 0
    await page.close()


async def test_a_cell_of_a_suite_leads_to_its_samples_and_they_to_their_investigations(chromium: "Browser") -> None:
    page = await chromium.new_page(viewport={"width": 1280, "height": 800})
    await opened(page, "fixtures.html?state=suite-cell#/suites/shop/checkout")
    await page.get_by_role("button", name="memory-limit, checkout-9b47cf24").click()
    samples = page.locator("section.card", has=page.get_by_role("heading", name="Samples: memory-limit"))
    await samples.get_by_text("No supported claim blames").first.wait_for()
    link = samples.get_by_role("link", name="checkout-9b47cf24-memory-limit-0")
    assert await link.get_attribute("href") == "#/investigations/shop/checkout-9b47cf24-memory-limit-0"
    await page.close()


async def test_a_list_shows_25_investigations_in_a_window_of_900_pixels(chromium: "Browser") -> None:
    page = await chromium.new_page(viewport={"width": 1280, "height": 900})
    await opened(page, "fixtures.html?state=list-finished")
    await page.locator(".runs tbody tr").nth(30).wait_for()
    within = "rows => rows.filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length"
    assert await page.locator(".runs tbody tr").evaluate_all(within) >= ROWS
    row = page.locator(".runs tbody tr").nth(3)
    await row.locator("td").nth(3).click(force=True)  # a whole row is a link: it lies above its cells
    await page.wait_for_url("**#/investigations/shop/**")
    await page.close()


async def test_identical_alerts_share_a_row_and_a_hit_is_marked(chromium: "Browser") -> None:
    page = await chromium.new_page(viewport={"width": 1280, "height": 900})
    await opened(page, "fixtures.html?state=list-grouped")
    await page.locator(".alike", has_text="×3").wait_for()
    assert await page.locator(".runs tbody tr").count() == SAME
    await page.goto(f"{ORIGIN}/fixtures.html?state=list-found")
    await page.locator("mark", has_text="PAYMENT_API").first.wait_for()
    await page.close()


async def test_a_citation_opens_its_event_with_the_quote_marked_and_a_finished_timeline_is_folded(
    chromium: "Browser",
) -> None:
    page = await chromium.new_page(viewport={"width": 1280, "height": 800})
    await opened(page, "fixtures.html?state=investigation-succeeded-high")
    await page.locator(".claims blockquote button").first.click()
    mark = page.locator(".event.chosen mark")
    await mark.wait_for()
    assert await mark.inner_text() == "required environment variable PAYMENT_API_URL is not set"
    step = page.locator(".step", has_text="kubernetes.list_events")
    assert await step.locator(".event").count() == 0, "a step is one line"
    await step.locator(".fold").click()
    await step.locator(".event", has_text="kubernetes.list_events").wait_for()
    await page.get_by_role("button", name="kubernetes-agent").last.click()
    assert await step.count() == 0, "an agent is one line"
    await page.get_by_role("button", name="kubernetes-agent").last.click()
    await page.get_by_role("button", name="Open all").click()
    assert await page.locator(".folded-event").count() == 0
    await page.close()


async def test_a_reader_pauses_and_follows_a_running_timeline(chromium: "Browser") -> None:
    page = await chromium.new_page(viewport={"width": 1280, "height": 800})
    await opened(page, "fixtures.html?state=investigation-running")
    await page.get_by_role("button", name="Pause").click()
    await page.get_by_role("button", name="Follow").click()
    await page.get_by_role("button", name="Pause").wait_for()
    await page.close()


async def test_the_end_of_a_running_timeline_stays_in_view_until_the_reader_scrolls_up(chromium: "Browser") -> None:
    page = await chromium.new_page(viewport={"width": 1280, "height": 500}, bypass_csp=True)
    await opened(page, "fixtures.html?state=investigation-running")
    await page.locator(".timeline .row:last-child .event").wait_for()
    grow = "(more) => { document.querySelector('.timeline .row:last-child .event').style.minHeight = `${more}px`; }"
    at_end = "document.querySelector('.timeline').getBoundingClientRect().bottom <= innerHeight"
    for height in (700, 1400):
        await page.evaluate(grow, height)
        await page.wait_for_function(f"document.querySelector('.timeline').clientHeight > {height} && {at_end}")
    await page.mouse.move(300, 300)
    await page.mouse.wheel(0, -600)
    await page.get_by_role("button", name="Follow").wait_for()
    await page.evaluate(grow, 2100)
    await page.wait_for_function("document.querySelector('.timeline').clientHeight > 2100")
    assert not await page.evaluate(at_end)
    await page.close()


async def test_keys_select_a_day_of_a_chart_and_its_values_are_a_table_too(chromium: "Browser") -> None:
    page = await chromium.new_page(viewport={"width": 1280, "height": 800}, timezone_id="UTC")
    await opened(page, "fixtures.html?state=usage")
    chart = page.locator("figure", has=page.get_by_role("group", name="Cost, 24 Oct to 22 Nov"))
    for key, shown in (
        ("ArrowLeft", "22 Nov"),
        ("ArrowLeft", "21 Nov"),
        ("Home", "24 Oct"),
        ("Escape", "Whole period"),
    ):
        await chart.locator(".plot").press(key)
        await chart.locator(".chart-at", has_text=shown).wait_for()
        said = await chart.locator("[aria-live]").inner_text()
        assert said.startswith("" if key == "Escape" else f"{shown}: $") and bool(said) is (key != "Escape")
    await chart.get_by_text("Show as a table").click()
    await chart.locator("tbody tr").nth(DAYS - 1).wait_for()
    assert await chart.locator("tbody tr").count() == DAYS
    await page.get_by_label("Group by").select_option("author")
    await page.wait_for_url("**#/usage?by=author&days=30")
    await page.close()


async def test_nothing_moves_when_the_charting_library_arrives(chromium: "Browser") -> None:
    page = await chromium.new_page(viewport={"width": 1280, "height": 800})
    arrives = asyncio.Event()

    async def late(route: "Route") -> None:
        await arrives.wait()
        await route.fallback()

    await opened(page, "fixtures.html")
    await page.route(re.compile(r"/(StackedBars|RateLines)-"), late)
    await page.goto(f"{ORIGIN}/fixtures.html?state=usage")
    cards = page.locator("section.card")
    await cards.nth(4).wait_for()
    before = [await card.bounding_box() for card in await cards.all()]
    assert await page.locator(".plot-box").count() == 0
    arrives.set()
    await page.locator(".plot-axis text").first.wait_for()
    assert [await card.bounding_box() for card in await cards.all()] == before
    await page.close()
