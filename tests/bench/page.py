"""The page in a browser: how soon a long list and a long timeline can be used, what it weighs, how smoothly words come.

The operator is the real one, on the embedded Kubernetes API; the browser, in a context of its own each time so that
nothing is cached, shares the machine with it. The investigations of the list are in the record, which is what a list is
made of, and have no objects.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import aiohttp
from tests.bench.bed import Bed, Tenant
from tests.bench.big_record import fill
from tests.bench.figures import Figure, Result, percentile, spread

from tarsy.http.authentication.frontends import COOKIE
from tarsy.http.web_ui import is_built
from tarsy.store.database import open_pool
from tarsy.store.migrate import migrate
from tarsy_dev.serving import until_serving
from tarsy_dev.sign_in_link import make_link
from tarsy_dev.stack import SYSTEM, running_stack

if TYPE_CHECKING:
    from playwright.async_api import Browser, CDPSession, Page

CHROMIUM = Path("/usr/bin/chromium")
SPACE = "page"
AGENTS = tuple(f"agent-{number}" for number in range(1, 6))
FRAME_MS = 1000 / 60
DROPPED = 1.5 * FRAME_MS
PATIENCE_MS = 120_000
WORD_MS = 20
ROWS = 50
TYPED = "pod-crash"
_COUNTERS = {
    "TaskDuration": "all",
    "ScriptDuration": "scripts",
    "LayoutDuration": "layout",
    "RecalcStyleDuration": "style",
}
_LIST = f"document.querySelectorAll('table.list tbody tr').length >= {ROWS}"
_FIRST_EVENTS = "document.querySelectorAll('.timeline .event').length > 3"
_TIMELINE = _FIRST_EVENTS + " && document.body.innerText.includes('%s events')"
_FRAMES = """() => {
  window.frames_ = [];
  const note = (at) => { window.frames_.push(at); window.noting = requestAnimationFrame(note); };
  window.noting = requestAnimationFrame(note);
}"""
_GAPS = """() => {
  cancelAnimationFrame(window.noting);
  return window.frames_.slice(1).map((at, place) => at - window.frames_[place]);
}"""
_KEYS = """() => {
  window.answers_ = [];
  const note = (key) => window.answers_.push(performance.now() - key.timeStamp);
  const answered = (key) => requestAnimationFrame(() => setTimeout(note, 0, key)); // after the frame is drawn
  addEventListener('keydown', answered, true);
}"""
_FOCUS = "(label) => document.querySelector(`input[aria-label='${label}']`).focus()"
_FIELD = """() => {
  const look = () => (document.querySelector('input[type=search]') ? (window.field_ = performance.now()) : again());
  const again = () => requestAnimationFrame(look);
  look();
}"""
_SHIFTS = """() => {
  window.shifted_ = 0;
  const sum = (all) => { for (const one of all.getEntries()) if (!one.hadRecentInput) window.shifted_ += one.value; };
  new PerformanceObserver(sum).observe({type: 'layout-shift', buffered: true});
}"""
_WEIGHT = """() => {
  const all = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
  const sum = (some) => some.reduce((bytes, one) => bytes + one.encodedBodySize, 0);
  const api = all.filter((one) => one.name.includes('/api/'));
  return [sum(all.filter((one) => !api.includes(one))), sum(api)];
}"""


async def run(quick: bool) -> Result:
    """Fills a record, opens list and timeline again and again, then watches five agents at once."""
    if why := _why_not():
        return Result(f"Not run: {why}.", [])
    from playwright.async_api import async_playwright

    items, events, loads, words = (200, 300, 2, 400) if quick else (10_000, 5_000, 10, 1_000)
    spoken = {name: [{"tokens": words, "per_token_ms": WORD_MS}] for name in AGENTS}
    script = {"agents": {**spoken, "synthesis-agent": [{"tokens": 20}]}}
    async with running_stack(api="embedded") as stack, async_playwright() as playwright:
        await stack.install(admission=False)
        pool = await open_pool(stack.database_url, min_size=1, max_size=4, application="tarsy bench")
        try:
            await migrate(pool)
            async with aiohttp.ClientSession() as http, _tenant(Bed(stack, pool, http), script) as tenant:
                uid = (await stack.client.get("Namespace", None, SPACE))["metadata"]["uid"]
                await fill(pool, SPACE, uid, [(uuid4(), "long")], events)
                await fill(pool, SPACE, uid, [(uuid4(), f"old-{number:05}") for number in range(items)], 1)
                browser = await playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
                try:
                    look = Look(tenant, browser)
                    search = "Search"
                    figures = await look.opened(f"list of {items:,}", "/investigations", _LIST, search, loads, "< 1 s")
                    path, search = f"/investigations/{SPACE}/long", "Search in the timeline"
                    name = f"timeline of {events:,}"
                    figures += await look.opened(f"{name}, first events", path, _FIRST_EVENTS, search, loads, "< 1 s")
                    figures += await look.opened(
                        f"{name}, all", path, _TIMELINE % f"{events:,}", search, loads // 2, ""
                    )
                    figures += await look.weighed()
                    figures += await look.streamed(words * WORD_MS / 1000)
                finally:
                    await browser.close()
        finally:
            await pool.close()
    how = (
        f"Chromium, each time without a cache, {loads} times ({loads // 2} for all events): from the navigation to "
        f"{ROWS} rows, or the timeline, on the screen, and to a key that its search box has taken. {len(AGENTS)} "
        f"agents side by side say {words} words each, one each {WORD_MS} ms; a frame is late that comes more than "
        f"{DROPPED:.0f} ms after the one before."
    )
    return Result(how, figures)


def _why_not() -> str:
    if not CHROMIUM.exists():
        return f"there is no {CHROMIUM}; apt-get install chromium"
    return "" if is_built() else "the page is not built; make page"


@contextlib.asynccontextmanager
async def _tenant(bed: Bed, script: dict[str, Any]) -> AsyncIterator[Tenant]:
    """A namespace whose chain is one stage of five agents, and somebody who may see it."""
    await make_link(bed.stack)
    async with bed.tenant(SPACE, script) as tenant:
        for name in AGENTS:
            await tenant.put("Agent", name, {"mcpServers": []})
        await tenant.chain(AGENTS)
        await until_serving(bed.stack)
        yield tenant


class Look:
    """A browser before the page."""

    def __init__(self, tenant: Tenant, browser: "Browser") -> None:
        self._tenant = tenant
        self._stack = tenant.bed.stack
        self._browser = browser

    @contextlib.asynccontextmanager
    async def _page(self, path: str) -> AsyncIterator[tuple["Page", "CDPSession"]]:
        """A view, navigated to in a new context by somebody who is signed in, and the counters of its main thread."""
        context = await self._browser.new_context(viewport={"width": 1360, "height": 850})
        try:
            token = await self._stack.client.create_token(SYSTEM, "you")
            await context.add_cookies([{"name": COOKIE, "value": token, "url": self._stack.http_url}])
            page = await context.new_page()
            await page.add_init_script(f"({_FIELD})()")
            page.set_default_timeout(PATIENCE_MS)
            devtools = await context.new_cdp_session(page)
            await devtools.send("Performance.enable")
            await page.goto(f"{self._stack.http_url}/#{path}", wait_until="commit")
            yield page, devtools
        finally:
            await context.close()

    async def opened(self, name: str, path: str, there: str, search: str, times: int, aim: str) -> list[Figure]:
        """How soon a view is there and answers a key, how soon it answers further ones, and how far it shifts."""
        fields, shown, usable, further, shifts, threads = [], [], [], list[float](), [], []
        for number in range(times + 1):
            async with self._page(path) as (page, devtools):
                at = await _seconds(page, there)
                await page.evaluate(_FOCUS, search)  # Playwright's own search for it would add its time
                await page.keyboard.press("z")
                taken = await _seconds(page, "document.activeElement.value === 'z'")
                spent = await _spent(devtools)
                await page.evaluate(_SHIFTS)
                await page.evaluate(_KEYS)
                await page.keyboard.type(TYPED, delay=150)
                await _seconds(page, f"window.answers_.length === {len(TYPED)}")
                if number:  # the first one warms up the server
                    fields.append(await page.evaluate("window.field_ / 1000"))
                    threads.append(1000 * spent["ThreadTime"])
                    shown.append(at)
                    usable.append(taken)
                    further += await page.evaluate("window.answers_")
                    shifts.append(await page.evaluate("window.shifted_"))
        return [
            *spread(f"{name}: its search field is there", fields, "s"),
            *spread(f"{name}: on the screen", shown, "s"),
            *spread(f"{name}: answers a key", usable, "s", aim),
            *spread(f"{name}: answers a key afterwards", further, "ms", "< 100 ms"),
            *spread(f"{name}: processor time of the main thread until then", threads, "ms"),
            Figure(f"{name}: layout shift, the most", max(shifts), "", "< 0.1"),
        ]

    async def weighed(self) -> list[Figure]:
        """What the first page loads, as it comes."""
        async with self._page("/investigations") as (page, _):
            await _seconds(page, _LIST)
            files, answers = await page.evaluate(_WEIGHT)
        return [
            Figure("first page: program and style, compressed", files / 1024, "KiB", "< 200 KiB"),
            Figure("first page: answers of the API", answers / 1024, "KiB"),
        ]

    async def streamed(self, seconds: float) -> list[Figure]:
        """Frames of a page on which five agents speak, and of the same page when they have ended."""
        await self._tenant.create("watched")
        name = await self._started("watched")
        async with self._page(f"/investigations/{SPACE}/{name}") as (page, devtools):
            await page.get_by_label("live").nth(len(AGENTS) - 1).wait_for()
            before = await _spent(devtools)
            await page.evaluate(_FRAMES)
            await asyncio.sleep(0.6 * seconds)  # what is measured takes time
            speaking = await page.get_by_label("live").count()
            gaps = await page.evaluate(_GAPS)
            after = await _spent(devtools)
            await self._tenant.settled("watched", 1)
            await page.locator(".title-row .badge.state-completed").wait_for()
            await page.evaluate(_FRAMES)
            await asyncio.sleep(min(5.0, seconds))
            idle = await page.evaluate(_GAPS)
        seen = after["Timestamp"] - before["Timestamp"]
        return [
            Figure("agents that spoke until the end of the count", speaking, "agents"),
            Figure("frames while they spoke", len(gaps), "frames", detail=[round(gap, 1) for gap in gaps]),
            Figure("frames that came late", _late(gaps), "%", "< 1 %"),
            Figure("a frame, p99", percentile(gaps, 0.99), "ms"),
            Figure("a frame, the longest", max(gaps), "ms"),
            Figure("late where nothing happens", _late(idle), "%"),
            *(
                Figure(
                    f"main thread while they spoke, {name}", 1000 * (after[counter] - before[counter]) / seen, "ms/s"
                )
                for counter, name in _COUNTERS.items()
            ),
        ]

    async def _started(self, prefix: str) -> str:
        """The name of the investigation of an alert, as soon as it is on record."""
        query = "SELECT name FROM investigation WHERE namespace = $1 AND name LIKE $2 || '%' AND state = 'running'"
        async with asyncio.timeout(PATIENCE_MS / 1000):
            while True:
                if name := await self._tenant.bed.pool.fetchval(query, SPACE, prefix):
                    return str(name)
                await asyncio.sleep(0.05)


async def _spent(devtools: "CDPSession") -> dict[str, float]:
    """Seconds that the main thread of a page has spent, by kind; unlike frames, they hardly depend on the load."""
    answer = await devtools.send("Performance.getMetrics")
    return {one["name"]: one["value"] for one in answer["metrics"]}


async def _seconds(page: "Page", there: str) -> float:
    """Seconds from the navigation to the first frame in which something is so; Playwright's own wait evaluates text."""
    look = f"const look = () => {there} ? resolve(performance.now() / 1000) : requestAnimationFrame(look); look();"
    async with asyncio.timeout(PATIENCE_MS / 1000):
        return float(await page.evaluate(f"() => new Promise((resolve) => {{ {look} }})"))


def _late(gaps: list[float]) -> float:
    return 100 * sum(gap > DROPPED for gap in gaps) / max(1, len(gaps))
