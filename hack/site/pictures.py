"""Makes the pictures of README and docs: diagrams, the terminal, the web UI.

`make pictures` runs it. It needs Chromium and Node. Terminal, web UI and Headlamp plugin show one investigation that
this script runs on the embedded Kubernetes API with the scripted model of `tarsy demo`. Headlamp is not here: the
plugin's view is shown in a page of its own (operator/headlamp/host), whose requests go to that API.
"""

import argparse
import asyncio
import contextlib
import io
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final
from uuid import UUID

from hack.components import CHECKOUT
from hack.site.diagrams import PICTURES, picture, sources
from playwright.async_api import Browser, Page, Route, async_playwright
from rich.console import Console, Group
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tarsy.cli.runs.render import RunSummary, event_block, outcome_block
from tarsy.http.web_ui import is_built
from tarsy.store.database import open_pool
from tarsy.store.reading.reads import Reads
from tarsy_dev.model import demo_script
from tarsy_dev.objects import put
from tarsy_dev.sample import SHOP, let_agents_read, put_before, put_scenario, sample_alert
from tarsy_dev.serving import until_serving
from tarsy_dev.sign_in_link import SignInLink, make_link
from tarsy_dev.stack import Stack, running_stack

CHROMIUM: Final = "/usr/bin/chromium"
MERMAID: Final = Path(__file__).parent / "mermaid" / "node_modules" / "mermaid" / "dist" / "mermaid.min.js"
ASSETS: Final = CHECKOUT / "docs" / "assets"
FIXTURES: Final = CHECKOUT / "build" / "page-fixtures"
FIXTURES_ORIGIN: Final = "http://fixtures.test"
STATES: Final = {
    "needs-you.png": ("approval", "Your decision"),
    "on-call-list.png": ("list-states", "KubePodCrashLooping"),
    "on-call-running.png": ("investigation-running-parallel", "Conclude"),
    "on-call-finding.png": ("investigation-succeeded-medium", "What to do next"),
}
"""Pictures of the web UI: the state of the fixtures, and a text that shows when it is drawn."""
HEADLAMP: Final = CHECKOUT / "build" / "headlamp-host"
HEADLAMP_ORIGIN: Final = "http://headlamp.test"
SECONDS: Final = 120.0
COLUMNS: Final = 104
_FIRST: Final = 2
"""Timeline events that the picture of the terminal shows before the outcome."""
_SETTINGS: Final = """{
  startOnLoad: false, theme: 'neutral', htmlLabels: false, flowchart: {htmlLabels: false}, fontFamily: 'sans-serif',
  deterministicIds: true
}"""


async def make_diagrams(browser: Browser) -> None:
    """Draws each diagram of docs/ that has no picture, and removes pictures without a diagram."""
    texts = [path.read_text(encoding="utf-8") for path in sorted((CHECKOUT / "docs").rglob("*.md"))]
    wanted = {picture(source): source for text in texts for source in sources(text)}
    PICTURES.mkdir(parents=True, exist_ok=True)
    for old in PICTURES.glob("*.svg"):
        if old.name not in wanted:
            old.unlink()
    page = await browser.new_page()
    await page.set_content("<!doctype html><body></body>")
    await page.add_script_tag(path=MERMAID)
    for name, source in wanted.items():
        if not (PICTURES / name).exists():
            drawn = await page.evaluate(
                f"async (source) => {{ mermaid.initialize({_SETTINGS}); "
                "return (await mermaid.render('d', source)).svg }",
                source,
            )
            (PICTURES / name).write_text(drawn + "\n", encoding="utf-8")
    await page.close()


async def make_terminal(reads: Reads, run: UUID, name: str) -> None:
    """Draws the timeline of a finished run as the terminal shows it, most of its events left out."""
    record = await reads.record(run)
    assert record is not None
    events = sorted(await reads.timeline(run, 0, 500), key=lambda event: event.seq)
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True, highlight=False)
    console.print(Text(f"$ kubectl tarsy timeline {name} -n {SHOP}", style="bold"))
    console.print(Group(*(event_block(event, full=False) for event in events[:_FIRST])))
    console.print(Text(f"         … {len(events) - _FIRST} more events", style="dim"))
    console.print(outcome_block(RunSummary.of_record(record)))
    drawn = console.export_svg(title="kubectl tarsy", theme=MONOKAI, unique_id="timeline")
    # The picture names no font of another host: that of the reader's machine serves.
    drawn = re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL).replace("Fira Code", "ui-monospace")
    text = "\n".join(line.rstrip() for line in drawn.splitlines() if line.strip())
    (ASSETS / "timeline.svg").write_text(text + "\n", encoding="utf-8")


async def make_web_ui(browser: Browser, link: SignInLink, name: str) -> None:
    """Takes a picture of a finished investigation in the web UI."""
    context = await browser.new_context(viewport={"width": 1360, "height": 850}, color_scheme="light")
    page = await context.new_page()
    page.set_default_timeout(SECONDS * 1000)
    await page.goto(link.to(f"/investigations/{SHOP}/{name}"))
    await page.get_by_role("heading", name="Finding").wait_for()
    await page.locator(".title-row .badge.state-completed").wait_for()
    await page.get_by_role("heading", name="Executive summary").wait_for()
    await _drawn(page)
    await page.screenshot(path=ASSETS / "web-ui.png")
    await context.close()


async def _drawn(page: Page) -> None:
    """Waits until no text is shown before it is parsed, and no request is open."""
    await page.wait_for_function("!document.querySelector('[aria-busy=true]:not(.event)')")


async def make_states(browser: Browser) -> None:
    """Takes a picture of each view in `STATES`, from fixture data."""

    async def answer(route: Route) -> None:
        name = re.sub(r"[?#].*", "", route.request.url.removeprefix(f"{FIXTURES_ORIGIN}/"))
        found = FIXTURES / name
        await (route.fulfill(path=found) if found.is_file() else route.abort())

    for name, (state, shown) in STATES.items():
        context = await browser.new_context(
            viewport={"width": 1360, "height": 850}, color_scheme="light", timezone_id="UTC", reduced_motion="reduce"
        )
        page = await context.new_page()
        page.set_default_timeout(SECONDS * 1000)
        await page.route("**/*", answer)
        await page.goto(f"{FIXTURES_ORIGIN}/fixtures.html?state={state}")
        await page.get_by_text(shown).first.wait_for()
        await _drawn(page)
        await page.screenshot(path=ASSETS / name)
        await context.close()


async def make_headlamp(browser: Browser, stack: Stack, name: str) -> None:
    """Takes a picture of a finished investigation in the view of the Headlamp plugin."""
    context = await browser.new_context(viewport={"width": 1140, "height": 1250}, color_scheme="light")
    page = await context.new_page()
    page.set_default_timeout(SECONDS * 1000)

    async def answer(route: Route) -> None:
        path = route.request.url.removeprefix(HEADLAMP_ORIGIN)
        if path.startswith("/k8s/"):
            body = route.request.post_data_json
            found = await stack.client.request(route.request.method, path.removeprefix("/k8s"), body=body)
            await route.fulfill(json=found)
        else:
            await route.fulfill(path=HEADLAMP / re.sub(r"[?#].*", "", path).lstrip("/"))

    await page.route("**/*", answer)
    await page.goto(f"{HEADLAMP_ORIGIN}/index.html?namespace={SHOP}&name={name}")
    await page.get_by_role("heading", name="Timeline").wait_for()
    await page.get_by_text("Confidence:").wait_for()
    await page.screenshot(path=ASSETS / "headlamp.png")
    await context.close()


@contextlib.asynccontextmanager
async def _finished_run() -> AsyncIterator[tuple[Stack, SignInLink, UUID, str]]:
    async with running_stack(durable=False, api="embedded") as stack:
        await put_before(stack.client)
        await stack.install()
        await stack.use_model(demo_script())
        await let_agents_read(stack.client, SHOP)
        await put_scenario(stack.client, "crash-loop")
        link = await make_link(stack)
        operator = stack.operator(**link.environment)
        try:
            await until_serving(stack)
            await put(stack.client, await sample_alert(stack.client, "crash-loop"))
            run, name = await _finished(stack)
            yield stack, link, run, name
        finally:
            await operator.stop()


async def _finished(stack: Stack) -> tuple[UUID, str]:
    async with asyncio.timeout(SECONDS):
        while True:
            for found in await stack.client.list("Investigation", SHOP):
                if (found.get("status") or {}).get("phase") == "Succeeded":
                    return UUID(found["metadata"]["uid"]), found["metadata"]["name"]
            await asyncio.sleep(0.5)


async def make_pictures(*, diagrams_only: bool) -> None:
    """Makes all pictures, or the diagrams only."""
    if not diagrams_only and not is_built():
        raise SystemExit("the web UI is not built: run `make page`")
    if not diagrams_only and not HEADLAMP.is_dir():
        raise SystemExit("the page of the Headlamp plugin is not built: run `make headlamp-host`")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        await make_diagrams(browser)
        if not diagrams_only:
            await make_states(browser)
            async with _finished_run() as (stack, link, run, name):
                pool = await open_pool(stack.database_url, max_size=2, application="pictures")
                try:
                    await make_terminal(Reads(pool), run, name)
                finally:
                    await pool.close()
                await make_web_ui(browser, link, name)
                await make_headlamp(browser, stack, name)
        await browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--diagrams", action="store_true", help="make the diagrams only")
    asyncio.run(make_pictures(diagrams_only=parser.parse_args().diagrams))
