"""Tests the web UI in a browser."""

import asyncio
import re
from typing import Any

import pytest

from browser.conftest import GATE, SECONDS, Site
from browser.looking import looked_at
from e2e.waiting import until
from tarsy.resources.meta import API_VERSION
from tarsy_dev.objects import put
from tarsy_dev.stack import LIBRARY

pytestmark = pytest.mark.asyncio(loop_scope="session")

GROWTH = """() => {
  window.lengths = new Set();
  new MutationObserver(() => {
    for (const event of document.querySelectorAll('.event[aria-busy=true]')) window.lengths.add(event.innerText.length);
  }).observe(document.body, {subtree: true, childList: true, characterData: true});
}"""


async def test_a_newcomer_watches_a_whole_investigation_from_the_link_on(site: Site) -> None:
    path, link = await site.alert(), await site.link()
    async with site.page() as page:
        await page.goto(link.to(path))
        await page.get_by_role("heading", name="KubePodCrashLooping").wait_for()
        assert link.code not in page.url
        await page.get_by_text("kubernetes.get_logs").first.wait_for()
        await page.locator(".title-row .badge.state-running").wait_for()
        await page.evaluate(GROWTH)
        await looked_at(page, "investigation-running")
        site.model.open_gate(GATE)
        await page.get_by_role("heading", name="Finding").wait_for()
        await page.locator(".title-row .badge.state-completed").wait_for()
        assert len(await page.evaluate("[...window.lengths]")) > 3, "words did not stream"
        await page.get_by_role("heading", name="Executive summary").wait_for()
        await looked_at(page, "investigation")
        await page.get_by_role("list", name="Stages").get_by_role("button").nth(1).click()
        await page.locator("button[aria-pressed]", has_text=re.compile("^log-analyst$")).wait_for()


async def test_a_link_signs_in_only_once(site: Site) -> None:
    link = await site.link()
    async with site.page() as page:
        await page.goto(link.to())
        await page.get_by_role("button", name="Sign out").wait_for()
    async with site.page() as page:
        await page.goto(link.to())
        await page.get_by_label("Kubernetes token").wait_for()
        await page.get_by_text("kubectl create token you -n tarsy-system").wait_for()
        await looked_at(page, "sign-in")


async def test_a_link_that_is_pasted_into_an_open_tab_signs_in_and_a_used_one_says_how_else(site: Site) -> None:
    used = await site.link()
    async with site.page() as page:
        await page.goto(site.stack.http_url)
        await page.get_by_label("Kubernetes token").wait_for()
        await page.goto(used.to())  # the same document: only what stands behind the # changes
        await page.get_by_role("button", name="Sign out").wait_for()
        assert used.code not in page.url
    async with site.page() as page:
        await page.goto(site.stack.http_url)
        await page.get_by_label("Kubernetes token").wait_for()
        for _ in range(2):
            await page.goto(used.to())
            await page.wait_for_url(lambda url: used.code not in url)  # the text may still be that of the first time
            await page.get_by_text("This link has been used").wait_for()


async def test_a_citation_leads_to_the_call_that_it_quotes_and_the_address_to_the_same_place(site: Site) -> None:
    site.model.open_gate(GATE)
    path = await site.alert()
    async with site.page() as page:
        await site.signed_in(page, path)
        await page.get_by_role("heading", name="Finding").wait_for()
        await page.locator(".claims blockquote button").first.click()
        cited = page.locator(".event.chosen mark")
        await cited.get_by_text("required environment variable PAYMENT_API_URL").wait_for()
        assert re.search(r"\?event=[0-9a-f-]{36}&quote=", page.url)
        await page.reload()
        await cited.get_by_text("required environment variable PAYMENT_API_URL").wait_for()


async def test_a_question_is_answered_under_the_finding(site: Site) -> None:
    site.model.open_gate(GATE)
    path = await site.alert()
    async with site.page() as page:
        await site.signed_in(page, path)
        await page.get_by_label("Ask a question").fill("Which release renamed the key?")
        await page.get_by_role("button", name="Ask", exact=True).click()
        await page.locator(".asked", has_text="Which release renamed the key?").wait_for()
        await page.locator(".answer strong", has_text="Restore PAYMENT_API_URL").wait_for()
        await page.get_by_role("button", name="Ask", exact=True).wait_for()
        await page.get_by_label("Ask a question").scroll_into_view_if_needed()
        await looked_at(page, "chat")


async def test_an_investigation_is_cancelled_by_whoever_is_sure(site: Site) -> None:
    path = await site.alert()
    async with site.page() as page:
        await site.signed_in(page, path)
        await page.get_by_role("button", name="Cancel", exact=True).click()
        await page.get_by_role("button", name="Yes, cancel").click()
        await page.locator(".title-row .badge.state-cancelled").wait_for()
        assert await page.get_by_role("button", name="Conclude").count() == 0
        assert await page.get_by_label("Ask a question").count() == 0


async def test_the_page_goes_on_when_the_server_was_restarted(site: Site) -> None:
    path = await site.alert()
    async with site.page() as page:
        await site.signed_in(page, path)
        await page.get_by_text("kubernetes.get_logs").first.wait_for()
        await page.evaluate("window.sameDocument = true")
        site.operator.terminate()
        await page.get_by_text("Connection lost").wait_for()
        await page.get_by_text("Connection lost").wait_for(state="detached")
        site.model.open_gate(GATE)
        await page.get_by_role("heading", name="Finding").wait_for()
        assert await page.evaluate("window.sameDocument")
        calls = page.locator(".event.e-llm_tool_call", has_text="kubernetes.list_events")
        assert await calls.count() <= 1


async def test_a_list_is_live_filtered_by_its_address_and_used_by_keys(site: Site) -> None:
    async with site.page() as page:
        await site.signed_in(page)
        path = await site.alert()
        name = path.rpartition("/")[2]
        row = page.get_by_role("row").filter(has_text=name)
        await row.locator(".badge.state-running").wait_for()
        site.model.open_gate(GATE)
        await row.locator(".badge.state-completed").wait_for()
        await row.get_by_text("crash loops because revision 7").wait_for()
        await looked_at(page, "list")
        await page.get_by_label("Phase").select_option("failed")
        await page.get_by_text("No investigations match the filters.").wait_for()
        assert "state=failed" in page.url
        await page.reload()
        await page.get_by_text("No investigations match the filters.").wait_for()
        await page.get_by_role("link", name="Clear filters").click()
        await row.wait_for()
        await page.keyboard.press("/")
        assert await page.evaluate("document.activeElement.getAttribute('type')") == "search"
        await page.keyboard.press("Escape")
        await page.keyboard.press("k")
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="KubePodCrashLooping").wait_for()


async def test_who_may_see_one_namespace_sees_nothing_of_another(site: Site) -> None:
    site.model.open_gate(GATE)
    hidden, shown = await site.alert("shop"), await site.alert("bank")
    await _viewer(site, "bank")
    async with site.page() as page:
        await page.goto(f"{site.stack.http_url}/")
        await page.get_by_label("Kubernetes token").fill(await site.token("bank", "teller"))
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_role("link", name="KubePodCrashLooping").first.wait_for()
        namespaces = await page.get_by_label("Namespace").locator("option").all_inner_texts()
        assert namespaces == ["All namespaces", "bank"]
        assert await page.get_by_text("shop/").count() == 0
        await page.goto(f"{site.stack.http_url}/#{hidden}")
        await page.get_by_role("alert").filter(has_text="may not get investigations").wait_for()
        await page.goto(f"{site.stack.http_url}/#{shown}/trace")
        await page.get_by_text("The trace requires a separate permission").wait_for()
        await page.get_by_role("button", name="Sign out").click()
        await page.get_by_label("Kubernetes token").wait_for()
        await page.reload()
        await page.get_by_label("Kubernetes token").wait_for()


async def test_a_bad_token_is_refused_in_words(site: Site) -> None:
    async with site.page() as page:
        await page.goto(f"{site.stack.http_url}/")
        await page.get_by_label("Kubernetes token").fill("e30.e30.bad")
        await page.get_by_role("button", name="Sign in").click()
        await page.get_by_role("alert").filter(has_text="token").wait_for()


async def test_the_trace_shows_each_call_with_all_that_was_said(site: Site) -> None:
    site.model.open_gate(GATE)
    path = await site.alert()
    async with site.page() as page:
        await site.signed_in(page, path)
        await page.get_by_role("heading", name="Finding").wait_for()
        await page.get_by_role("link", name="Trace").click()
        await page.locator(".bar-row.llm").first.click()
        await page.locator(".said.role-system").first.wait_for()
        await page.get_by_role("heading", name="Response").wait_for()
        await looked_at(page, "trace")
        await page.locator(".bar-row.mcp").first.click()
        await page.get_by_role("heading", name="Result").wait_for()


async def test_an_alert_is_submitted_and_its_investigation_opens(site: Site) -> None:
    site.model.open_gate(GATE)
    async with site.page() as page:
        await site.signed_in(page, "/submit")
        await page.locator("form").get_by_label("Namespace").select_option("shop")
        await page.get_by_label("Alert type").fill("KubePodCrashLooping")
        await page.get_by_label("Alert", exact=True).fill("The pods of checkout in shop crash.")
        await looked_at(page, "submit")
        await page.get_by_role("button", name="Submit").click()
        await page.locator(".title-row .badge").wait_for()
        await page.get_by_text("The pods of checkout in shop crash.").wait_for()


async def test_an_alert_brings_the_single_tools_that_were_picked(site: Site) -> None:
    site.model.open_gate(GATE)
    await _lab(site)
    async with site.page() as page:
        await site.signed_in(page, "/submit")
        await page.locator("form").get_by_label("Namespace").select_option("lab")
        await page.get_by_label("Alert type").fill("KubePodCrashLooping")
        await page.get_by_label("Alert", exact=True).fill("The pods of checkout in shop crash.")
        await page.get_by_role("checkbox", name="kubernetes").check()
        await page.get_by_text("Select tools").click()
        await page.get_by_role("group", name="Tools of kubernetes").get_by_label("get_resource").uncheck()
        server = await site.stack.client.get("MCPServer", "lab", "kubernetes")
        rest = sorted(tool for tool in server["status"]["tools"] if tool != "get_resource")
        await page.get_by_text(f"{len(rest)} of {len(rest) + 1} tools").wait_for()
        await page.get_by_label("URL context").select_option("Off")
        await page.get_by_role("button", name="Submit").scroll_into_view_if_needed()
        await looked_at(page, "submit-tools")
        await page.get_by_role("button", name="Submit").click()
        await page.locator(".title-row .badge").wait_for()
    (alert,) = await site.stack.client.list("Alert", "lab")
    picked = [{"name": "kubernetes", "tools": rest}]
    assert (alert["spec"]["mcpServers"], alert["spec"]["nativeTools"]) == (picked, {"urlContext": False})


async def test_a_list_is_of_the_time_that_was_picked_and_the_address_holds_it(site: Site) -> None:
    site.model.open_gate(GATE)
    name = (await site.alert()).rpartition("/")[2]
    async with site.page(timezone_id="America/New_York") as page:
        await site.signed_in(page)
        row = page.get_by_role("row").filter(has_text=name)
        await row.wait_for()
        await page.get_by_label("Accepted").select_option("Custom range …")
        await page.get_by_label("Until").fill("2020-01-01T12:00")
        await page.get_by_text("No investigations match the filters.").wait_for()
        assert "until=2020-01-01T17%3A00%3A00Z" in page.url
        await page.get_by_label("Since").fill("2019-07-01T12:00")
        await page.wait_for_url("**/*since=2019-07-01T16%3A00%3A00Z*")
        await page.reload()
        assert await page.get_by_label("Until").input_value() == "2020-01-01T12:00"
        await looked_at(page, "list-between")
        await page.get_by_label("Until").fill("")
        await row.wait_for()
        assert "until" not in page.url and "since" in page.url


async def test_whom_a_proxy_signed_in_reads_and_is_told_why_they_do_not_write(site: Site) -> None:
    """The server's half, over TLS, is in integration/http/test_page_proxy.py."""
    path = await site.alert()
    session = {"username": "ann", "groups": ["on-call"], "byProxy": True, "hasToken": False}
    async with site.page() as page:
        await page.route("**/api/v1/session", lambda route: route.fulfill(json=session))
        await site.signed_in(page, path)
        await page.get_by_text("read-only", exact=True).wait_for()
        await page.locator(".who", has_text="ann").wait_for()
        for name in ("Cancel", "Conclude", "Sign out"):
            assert await page.get_by_role("button", name=name, exact=True).count() == 0
        site.model.open_gate(GATE)
        await page.get_by_role("note").filter(has_text="does not forward your Kubernetes token").wait_for()
        assert await page.get_by_label("Ask a question").count() == 0
        await looked_at(page, "investigation-read-only")
        await page.get_by_role("link", name="Submit").click()
        await page.get_by_role("note").filter(has_text="Write with kubectl").wait_for()
        assert await page.locator("form").count() == 0
        await looked_at(page, "submit-read-only")


async def test_what_there_is_and_what_was_used_is_shown(site: Site) -> None:
    site.model.open_gate(GATE)
    path = await site.alert()
    async with site.page() as page:
        await site.signed_in(page, path)
        await page.get_by_role("heading", name="Finding").wait_for()
        await page.get_by_role("link", name="System").click()
        await page.get_by_text("tarsy-library/kubernetes").first.wait_for()
        await looked_at(page, "system")
        await page.get_by_role("link", name="Usage").click()
        await page.get_by_label("Group by").select_option("model")
        await page.get_by_role("rowheader", name="scripted-demo").wait_for()
        await looked_at(page, "usage")


async def _lab(site: Site) -> None:
    """A namespace with a tool server whose tools are known, and a model that has tools of its own."""
    client = site.stack.client
    await put(client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "lab"}})
    spec = (await client.get("MCPServer", LIBRARY, "kubernetes"))["spec"]
    model = {"type": "google", "model": "gemini-3-pro", "apiKeySecretRef": {"name": "key", "key": "key"}}
    for kind, name, wanted in (("MCPServer", "kubernetes", spec), ("LLMProvider", "gemini", model)):
        meta = {"name": name, "namespace": "lab"}
        await put(client, {"apiVersion": API_VERSION, "kind": kind, "metadata": meta, "spec": wanted})

    async def known() -> bool:
        return bool((await client.get("MCPServer", "lab", "kubernetes")).get("status", {}).get("tools"))

    await until("the tools of the server are known", known, SECONDS)


async def _viewer(site: Site, namespace: str) -> None:
    account: dict[str, Any] = {"name": "teller", "namespace": namespace}
    await put(site.stack.client, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "RoleBinding",
        "metadata": account,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "tarsy-viewer"},
        "subjects": [{"kind": "ServiceAccount", **account}],
    }
    await put(site.stack.client, binding)


async def test_a_view_that_is_opened_sends_its_requests_once_and_before_the_program_has_come(site: Site) -> None:
    site.model.open_gate(GATE)
    path = await site.alert()
    async with site.page() as page:
        sent: list[str] = []
        released = asyncio.Event()

        async def held(route: Any) -> None:
            await released.wait()
            await route.continue_()

        await site.signed_in(page, path)
        await page.get_by_role("heading", name="Finding").wait_for()
        await page.locator(".title-row .badge.state-completed").wait_for()
        await page.get_by_role("heading", name="Executive summary").wait_for()
        await page.wait_for_load_state("networkidle")
        await page.route(re.compile(r"/assets/start-[^/]*\.js$"), held)
        page.on("request", lambda request: sent.append(request.url.removeprefix(site.stack.http_url)))
        namespace, name = path.split("/")[2:]
        run = f"/api/v1/namespaces/{namespace}/investigations/{name}"
        early = ["/api/v1/session", "/api/v1/namespaces", run, f"{run}/events?after=0&limit=200"]
        async with page.expect_response(lambda answer: early[-1] in answer.url):
            await page.reload(wait_until="commit")
        assert [one for one in sent if "/api/" in one] == early
        released.set()
        await page.get_by_role("heading", name="Finding").wait_for()
        await page.wait_for_load_state("networkidle")
        assert [sent.count(one) for one in early] == [1, 1, 1, 1]
