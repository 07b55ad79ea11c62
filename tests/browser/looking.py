"""Takes screenshots of a view, and checks its accessibility."""

import asyncio
from typing import TYPE_CHECKING, Any

from browser.conftest import AXE, SCREENSHOTS

if TYPE_CHECKING:
    from playwright.async_api import Page

RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
LOOKS_AGAIN = 20
LOOKS = (("light", 1360), ("dark", 1360), ("light", 400))


async def looked_at(page: "Page", name: str) -> None:
    """Takes pictures in light, dark and narrow; each must be as WCAG AA asks, and not wider than the window."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    wrong: list[str] = []
    for scheme, width in LOOKS:
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")  # type: ignore[arg-type]
        await page.set_viewport_size({"width": width, "height": 850})
        await page.screenshot(path=SCREENSHOTS / f"{name}-{scheme}-{width}.png")
        wrong += [f"{name} {scheme} {width}: {one}" for one in await _lasting(page)]
    await page.emulate_media(color_scheme="light", reduced_motion="no-preference")
    await page.set_viewport_size({"width": 1360, "height": 850})
    assert not wrong, "\n".join(wrong)


async def _lasting(page: "Page") -> list[str]:
    """What is wrong, and stays so: on a slow machine a page is still drawing for a while."""
    for _ in range(LOOKS_AGAIN):
        wrong = await violations(page)
        if await page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wrong.append("is wider than the window")
        if not wrong:
            break
        await asyncio.sleep(0.25)
    return await _at_the_top(page) if wrong else wrong


async def _at_the_top(page: "Page") -> list[str]:
    """What is wrong where nothing is scrolled half under the sticky head, which makes a control too small for axe."""
    before = await page.evaluate("scrollY")
    await page.evaluate("scrollTo(0, 0)")
    wrong = await violations(page)
    await page.evaluate("top => scrollTo(0, top)", before)
    if await page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        wrong.append("is wider than the window")
    return wrong


async def violations(page: "Page") -> list[str]:
    """Returns the violations of WCAG A and AA that axe finds."""
    if not await page.evaluate("'axe' in window"):
        await page.evaluate(AXE.read_text())
    found: dict[str, Any] = await page.evaluate(
        "rules => axe.run(document, {runOnly: {type: 'tag', values: rules}, resultTypes: ['violations']})", RULES
    )
    return [
        f"{violation['id']}: {node['html'][:160]} {node.get('failureSummary', '')[:300]}"
        for violation in found["violations"]
        for node in violation["nodes"]
    ]
