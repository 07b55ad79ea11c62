"""Reads what stands side by side in a wide window and below each other on a phone, by keys too."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from browser.fixture_pages import drawn, new_page, opened_state
from browser.looking import violations

if TYPE_CHECKING:
    from playwright.async_api import Browser, Locator, Page

pytestmark = pytest.mark.asyncio(loop_scope="session")

HEADS = {
    "examine": (("log-analyst", "Succeeded"), ("change-analyst", "Succeeded")),
    "verify": (("config-checker", "Succeeded"), ("node-checker", "Succeeded"), ("network-checker", "Failed")),
}
COVERED = """() => {
  const focused = document.activeElement;
  if (!focused || focused === document.body || focused.closest('.skip')) return null;
  const {left, right, top, bottom} = focused.getClientRects()[0];
  const [x, y] = [(left + right) / 2, (top + bottom) / 2];
  const there = x >= 0 && x <= innerWidth && y >= 0 && y <= innerHeight ? document.elementFromPoint(x, y) : null;
  const around = [focused, focused.closest('label')].filter(Boolean);
  const seen = there && around.some((one) => one.contains(there) || there.contains(one));
  const ringed = parseFloat(getComputedStyle(focused).outlineWidth) > 0 || focused.matches('.row-link');
  return seen && ringed ? null : `${focused.outerHTML.slice(0, 90)} at ${Math.round(x)}, ${Math.round(y)}`;
}"""
"""What has the focus and is hidden below something else, or has no ring; null: neither."""
STOPS = 40
WIDTHS = ((1280, 800), (400, 800))


@pytest_asyncio.fixture(loop_scope="session")
async def page(chromium: "Browser") -> AsyncIterator["Page"]:
    """A page of a reader who wants no movement."""
    async with new_page(chromium, timezone_id="UTC", reduced_motion="reduce") as page:
        yield page


async def _boxes(cells: "Locator") -> list[dict[str, Any]]:
    return list(await cells.evaluate_all("all => all.map((one) => one.getBoundingClientRect().toJSON())"))


@pytest.mark.parametrize("width", [1280, 400])
async def test_agents_of_a_stage_stand_beside_each_other_each_with_its_state_and_finding(
    page: "Page", width: int
) -> None:
    await page.set_viewport_size({"width": width, "height": 3000})  # so high that all rows are drawn
    await opened_state(page, "investigation-parallel")
    await page.locator(".stage-row", has_text="verify").wait_for()
    for agents in HEADS.values():
        heads = [page.locator(".agent-row", has_text=name) for name, _ in agents]
        for head, (_, state) in zip(heads, agents, strict=True):
            assert await head.locator(".badge").inner_text() == state
        (first, *others) = [(await _boxes(head))[0] for head in heads]
        for before, after in zip([first, *others], others, strict=False):
            beside = after["left"] >= before["right"] - 1 and abs(after["top"] - before["top"]) < 1
            below = after["top"] >= before["bottom"] and abs(after["left"] - before["left"]) < 1
            assert (beside, below) == ((True, False) if width >= 1000 else (False, True)), (before, after)
    for name in ("log-analyst", "change-analyst", "config-checker", "node-checker"):
        said = page.locator(".event", has_text=f"{name} finds that the key PAYMENT_API_URL is missing.")
        assert await said.count() == 1
        if width >= 1000:
            ((column,), (head,)) = await _boxes(said), await _boxes(page.locator(".agent-row", has_text=name))
            assert head["left"] <= column["left"] and column["right"] <= head["right"] + 1
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
    assert not await violations(page)


async def test_an_agent_beside_others_is_folded_and_chosen_by_keys(page: "Page") -> None:
    await opened_state(page, "investigation-parallel")
    fold = page.get_by_role("button", name="change-analyst", exact=True).last
    await fold.focus()
    await page.keyboard.press("Enter")
    assert await fold.get_attribute("aria-expanded") == "false"
    said = page.locator(".event", has_text="finds that the key PAYMENT_API_URL is missing.")
    assert await said.filter(has_text="change-analyst").count() == 0
    assert await said.filter(has_text="log-analyst").count() == 1
    await page.keyboard.press("Space")
    await said.filter(has_text="change-analyst").wait_for()
    agents = page.get_by_role("group", name="Agents of examine")
    await agents.get_by_role("button", name="log-analyst").focus()
    await page.keyboard.press("Enter")
    await agents.get_by_role("button", name="log-analyst", pressed=True).wait_for()
    assert await said.filter(has_text="change-analyst").count() == 0
    await page.get_by_role("button", name="kubernetes-agent").last.wait_for()  # the other stages stay
    event = page.locator(".event", has_text="log-analyst finds").locator(".fold")
    await event.focus()
    await page.keyboard.press("Enter")
    await page.locator(".event:not(.folded-event)", has_text="log-analyst finds that the key").wait_for()


@pytest.mark.parametrize(("width", "height"), WIDTHS)
@pytest.mark.parametrize("state", ["investigation-running-parallel", "investigation-parallel", "list-states"])
async def test_what_has_the_focus_is_in_sight_and_ringed(page: "Page", state: str, width: int, height: int) -> None:
    await page.set_viewport_size({"width": width, "height": height})
    await opened_state(page, state)
    hidden = []
    for _ in range(STOPS):
        await page.keyboard.press("Tab")
        await page.evaluate("new Promise(requestAnimationFrame)")
        if found := await page.evaluate(COVERED):
            hidden.append(found)
    assert not hidden


async def test_a_form_opens_below_the_buttons_which_stay_where_they_are(page: "Page") -> None:
    await opened_state(page, "investigation-succeeded-high")
    button = page.get_by_role("button", name="Run again")
    (before,) = await _boxes(button)
    await button.click()
    await page.get_by_role("form", name="Run again").wait_for()
    await drawn(page)
    assert await _boxes(button) == [before]


async def test_what_sticks_below_the_head_of_a_running_investigation_begins_at_its_end(page: "Page") -> None:
    for state in ("investigation-running-budget", "investigation-running-parallel", "investigation-parked"):
        await opened_state(page, state)
        await page.keyboard.press("f")
        await page.evaluate("scrollTo(0, 0)")
        ((head,), (side,), (main,)) = [await _boxes(page.locator(one)) for one in (".run-head", ".side", ".main")]
        assert abs(side["top"] - main["top"]) < 1, f"{state}: the columns begin at the same height"
        assert side["top"] >= head["bottom"]
    # This one is long enough to be scrolled, with its columns still below the head.
    await opened_state(page, "investigation-running-parallel")
    await page.keyboard.press("f")
    await page.evaluate("scrollTo(0, 300)")
    ((head,), (side,)) = [await _boxes(page.locator(one)) for one in (".run-head", ".side")]
    assert 0 <= side["top"] - head["bottom"] <= 24


async def test_a_narrow_list_begins_with_the_list_and_keeps_its_filters_behind_a_button(page: "Page") -> None:
    await page.set_viewport_size({"width": 400, "height": 800})
    await opened_state(page, "list-empty-filtered")
    button = page.get_by_role("button", name="Filters (2)")
    phase = page.get_by_label("Phase", exact=True)
    assert not await phase.is_visible()
    await button.click()
    assert await phase.is_visible() and await phase.input_value() == "failed"
    await button.click()
    assert not await phase.is_visible()
    await opened_state(page, "list-states")
    (first,) = await _boxes(page.locator(".runs tbody tr").first)
    assert first["top"] < 240
    assert not await violations(page)
