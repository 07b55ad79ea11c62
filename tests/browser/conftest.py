"""Starts one stack with the web UI and a browser; skips the tests unless both are requested.

Decision: the model answers when a test opens its gate, so what is seen on the way is there as long as it is looked at,
however slow the machine is. Everything else is as `tarsy dev` runs it: the shipped library, the page as it was built,
the sign-in by link, and the page's own strict policy.
"""

import asyncio
import contextlib
import os
import uuid
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from tarsy.http.web_ui import is_built
from tarsy_dev.model import ScriptedModel, demo_script, parse_script
from tarsy_dev.model.script import Script
from tarsy_dev.objects import manifest, put, put_all
from tarsy_dev.operator_process import OperatorProcess
from tarsy_dev.serving import until_serving
from tarsy_dev.sign_in_link import SignInLink, make_link
from tarsy_dev.stack import Stack, running_stack

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

CHROMIUM = Path("/usr/bin/chromium")
SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
AXE = Path(__file__).parents[2] / "operator" / "page" / "node_modules" / "axe-core" / "axe.min.js"
SECONDS = 90.0
GATE = "triage"
CHAT = """
agents:
  chat-agent:
    - text: >-
        The key was renamed in revision 7, by the release 1.8.0. **Restore PAYMENT_API_URL** to bring it back.
"""


def _why_not() -> str:
    if not os.environ.get("TARSY_BROWSER"):
        return "a browser was not asked for: make test-browser"
    if not CHROMIUM.exists():
        return f"there is no {CHROMIUM}: make test-browser installs it"
    if not is_built():
        return "the page is not built: make page"
    return ""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skips all of this folder where there is nothing to drive, and says why."""
    reason = _why_not()
    for item in items:
        if reason and item.nodeid.startswith("tests/browser/"):
            item.add_marker(pytest.mark.skip(reason=reason))


@dataclass
class Site:
    """The running product, and the browser before it."""

    stack: Stack
    operator: OperatorProcess
    browser: "Browser"
    faults: list[str] = field(default_factory=list)

    @property
    def model(self) -> ScriptedModel:
        """The scripted model."""
        assert self.stack.model is not None
        return self.stack.model

    @contextlib.asynccontextmanager
    async def page(self, **options: Any) -> AsyncIterator["Page"]:
        """A page in a browser of its own; what it complains about is a fault."""
        context = await self.browser.new_context(viewport={"width": 1360, "height": 850}, **options)
        page = await context.new_page()
        page.set_default_timeout(SECONDS * 1000)
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda said: said.type == "error" and self._heard(said.text))
        try:
            yield page
        finally:
            await context.close()

    def _heard(self, text: str) -> None:
        # A refusal, and a server that is away, are shown to people by the page; the browser mentions them as well.
        if not any(known in text for known in ("the server responded with a status of", "ERR_", "WebSocket")):
            self.faults.append(text)

    async def signed_in(self, page: "Page", path: str = "/") -> None:
        """Opens the page as the owner of this stack."""
        await page.context.add_cookies(
            [{"name": "tarsy-session", "value": await self.token("tarsy-system", "you"), "url": self.stack.http_url}]
        )
        await page.goto(f"{self.stack.http_url}/#{path}")

    async def link(self) -> SignInLink:
        """A link that nobody has used."""
        return await make_link(self.stack)

    async def token(self, namespace: str, account: str) -> str:
        """A token of a ServiceAccount."""
        return await self.stack.client.create_token(namespace, account)

    async def alert(self, namespace: str = "shop") -> str:
        """Applies the demo's alert; the path of its investigation on the page, once it is accepted."""
        client, name = self.stack.client, f"alert-{uuid.uuid4().hex[:6]}"
        (alert,) = manifest("samples/demo/alert-kubepodcrashlooping.yaml")
        await put(client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        await put(client, {**alert, "metadata": {"name": name, "namespace": namespace}})
        async with asyncio.timeout(SECONDS):
            while True:
                for found in await client.list("Investigation", namespace):
                    accepted = (found.get("status") or {}).get("record")
                    if found["spec"].get("alertRef", {}).get("name") == name and accepted:
                        return f"/investigations/{namespace}/{found['metadata']['name']}"
                await asyncio.sleep(0.1)


def script() -> Script:
    """The demo's, its last answer of triage behind a gate, and an answer to questions."""
    demo, chat = demo_script(), parse_script(CHAT)
    triage = demo.agents["kubernetes-agent"]
    *first, last = triage.entries
    gated = triage.model_copy(update={"entries": (*first, last.model_copy(update={"gate": GATE}))})
    return demo.model_copy(update={"agents": {**demo.agents, **chat.agents, "kubernetes-agent": gated}})


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def site() -> AsyncIterator[Site]:
    """One product and one browser for all tests."""
    from playwright.async_api import async_playwright

    async with running_stack(durable=False, api="embedded") as stack, async_playwright() as playwright:
        await stack.install()
        await stack.use_model(script())
        await put_all(stack.client, manifest("samples/demo/crashloop.yaml"))
        link = await make_link(stack)
        operator = stack.operator(**link.environment)
        keeper = asyncio.create_task(operator.keep_running())
        browser = await playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        try:
            await until_serving(stack)
            yield Site(stack, operator, browser)
        finally:
            await browser.close()
            keeper.cancel()
            await asyncio.wait([keeper])
            await operator.stop()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def chromium() -> AsyncIterator["Browser"]:
    """A browser without a server."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest.fixture(autouse=True)
def gate(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test of the stack begins with the gate closed, and its pages complain about nothing."""
    if "site" not in request.fixturenames:
        yield
        return
    site: Site = request.getfixturevalue("site")
    site.model.close_gate(GATE)
    site.faults.clear()
    yield
    site.model.open_gate(GATE)
    assert site.faults == []
