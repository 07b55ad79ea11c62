"""Opens the views that are built from fixtures, without a server."""

import contextlib
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page, Route

BUILT = Path(__file__).parents[2] / "build" / "page-fixtures"
ORIGIN = "http://fixtures.test"
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:"
SETTLED = """async () => {
  const frame = () => new Promise(requestAnimationFrame);
  for (let same = 0, before = ''; same < 3;) {
    await new Promise((done) => requestIdleCallback(done, {timeout: 200}));
    await frame();
    if (document.querySelector('[aria-busy=true]:not(.event)')) { same = 0; continue; }
    const now = `${document.body.innerHTML.length}/${document.documentElement.scrollHeight}/${scrollY}`;
    same = now === before ? same + 1 : 0;
    before = now;
  }
}"""


@contextlib.asynccontextmanager
async def new_page(browser: "Browser", **options: Any) -> AsyncIterator["Page"]:
    """Opens a page of 1280 x 800 pixels, with these options of its context."""
    context = await browser.new_context(viewport={"width": 1280, "height": 800}, **options)
    page = await context.new_page()
    page.set_default_timeout(30_000)
    yield page
    await context.close()


async def opened(page: "Page", path: str) -> None:
    """Opens a page of the build of fixtures, under the policy of the web UI."""

    async def answer(route: "Route") -> None:
        name = re.sub(r"[?#].*", "", route.request.url.removeprefix(f"{ORIGIN}/"))
        if not (BUILT / name).is_file():
            await route.abort()
            return
        await route.fulfill(path=BUILT / name, headers={"Content-Security-Policy": POLICY})

    await page.route("**/*", answer)
    await page.goto(f"{ORIGIN}/{path}")


async def drawn(page: "Page") -> None:
    """Waits until nothing moves: no request is open, and the document stays the same for three frames."""
    await page.locator("#root > *").first.wait_for()
    await page.evaluate(SETTLED)


async def opened_state(page: "Page", state: str) -> None:
    """Opens a state, and waits until it is drawn."""
    await opened(page, f"fixtures.html?state={state}")
    await drawn(page)
