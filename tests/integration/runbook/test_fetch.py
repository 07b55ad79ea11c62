"""Fetching runbooks over HTTP: what is read, what is refused, and who gets a token."""

from __future__ import annotations

import asyncio
import gzip
import socket
from typing import Any

import pytest
from aiohttp import web

from integration.runbook.library import Library, Names
from tarsy.outbound.address_check import Found
from tarsy.plan.model import SecretKey
from tarsy.runbook.errors import RunbookUnavailable
from tarsy.runbook.fetch import MAX_BYTES, MAX_REDIRECTS, Fetcher
from tarsy.runbook.sources import RunbookSource, sources

TOKEN = SecretKey(namespace="team-a", name="wiki", key="token")


class Tokens:
    """Reads tokens; what was asked for is noted."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, key: SecretKey) -> str:
        self.asked.append(key.name)
        if key.name == "gone":
            raise RunbookUnavailable("Secret team-a/gone does not exist; create it")
        return f"token-of-{key.name}"


def fetcher(names: Names | None = None, **rest: Any) -> Fetcher:
    return Fetcher(Tokens(), look_up=names or Names(), **rest)


def trusted(library: Library, *hosts: str, token: SecretKey | None = None) -> tuple[RunbookSource, ...]:
    named = [f"{host}:{library.port}" for host in hosts or ("wiki.test",)]
    return sources(named, [RunbookSource(named[0], token=token)] if token else [])


async def refusal(work: Any) -> str:
    with pytest.raises(RunbookUnavailable) as raised:
        await work
    return str(raised.value)


async def test_a_runbook_is_read_as_text(library: Library) -> None:
    library.put("/crash.md", "\ufeff# Crash\n\nLook at the logs: é.\n")
    assert await fetcher().fetch(library.url("/crash.md"), trusted(library)) == "# Crash\n\nLook at the logs: é.\n"


async def test_bytes_that_are_no_text_do_not_stop_it(library: Library) -> None:
    library.put("/crash.md", b"look \xff here")
    assert await fetcher().fetch(library.url("/crash.md"), trusted(library)) == "look \ufffd here"


@pytest.mark.parametrize(("size", "good"), [(MAX_BYTES - 1, True), (MAX_BYTES, True), (MAX_BYTES + 1, False)])
async def test_a_runbook_has_at_most_256_kib(library: Library, size: int, good: bool) -> None:
    library.put("/big.md", "x" * size)
    work = fetcher().fetch(library.url("/big.md"), trusted(library))
    if good:
        assert len(await work) == size
    else:
        assert "more than 262144 bytes" in await refusal(work)


async def test_a_text_without_an_end_is_cut_off_at_the_limit(library: Library) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b"x" * 65_536)
            sent += 65_536
            await asyncio.sleep(0)

    library.pages["/endless.md"] = endless
    assert "more than" in await refusal(fetcher().fetch(library.url("/endless.md"), trusted(library)))
    assert sent < 64 * MAX_BYTES


async def test_a_compressed_answer_is_refused_unopened(library: Library) -> None:
    library.put("/bomb.md", gzip.compress(b"x" * 10_000_000), headers={"Content-Encoding": "gzip"})
    assert "compressed" in await refusal(fetcher().fetch(library.url("/bomb.md"), trusted(library)))


async def test_an_answer_that_does_not_come_is_given_up(library: Library) -> None:
    library.silent("/slow.md")
    work = fetcher(timeout_seconds=0.2).fetch(library.url("/slow.md"), trusted(library))
    assert await refusal(work) == "no response within 0.2 seconds"


@pytest.mark.parametrize(
    ("path", "message"),
    [("/nothing.md", "host wiki.test responded with status 404"), ("/empty.md", "it is empty; add text to it")],
)
async def test_what_is_no_runbook_is_told_without_what_the_server_said(
    library: Library, path: str, message: str
) -> None:
    library.put("/empty.md", " \n")
    assert await refusal(fetcher().fetch(library.url(path), trusted(library))) == message


async def test_a_host_that_cannot_be_reached_is_told_by_kind(library: Library) -> None:
    work = fetcher(Names(wiki_test=["127.0.0.2"])).fetch("http://wiki.test:1/a", sources(["wiki.test:1"], []))
    assert (await refusal(work)).startswith("it could not be fetched (ClientConnector")


async def test_it_is_kept_for_a_minute_and_only_for_the_same_sources(library: Library) -> None:
    now = 0.0
    one = fetcher(clock=lambda: now)
    library.put("/crash.md", "first")
    url = library.url("/crash.md")
    assert await one.fetch(url, trusted(library)) == "first"
    library.put("/crash.md", "second")
    now = 59.0
    assert await one.fetch(url, trusted(library)) == "first"
    assert await one.fetch(url, trusted(library, token=TOKEN)) == "second"
    now = 60.0
    assert await one.fetch(url, trusted(library)) == "second"
    assert len(library.asked) == 3


async def test_a_failure_is_not_kept(library: Library) -> None:
    one, url = fetcher(), library.url("/crash.md")
    await refusal(one.fetch(url, trusted(library)))
    library.put("/crash.md", "there")
    assert await one.fetch(url, trusted(library)) == "there"


async def test_a_token_goes_to_its_own_host_and_not_where_that_leads(library: Library) -> None:
    library.redirect("/moved.md", library.url("/crash.md", "other.test"))
    library.put("/crash.md", "text")
    among = trusted(library, "wiki.test", "other.test", token=TOKEN)
    assert await fetcher().fetch(library.url("/moved.md"), among) == "text"
    assert library.asked == [
        ("wiki.test", "/moved.md", "Bearer token-of-wiki"),
        ("other.test", "/crash.md", None),
    ]


async def test_a_redirect_within_a_host_keeps_its_token(library: Library) -> None:
    library.redirect("/moved.md", "crash.md")
    library.put("/crash.md", "text")
    assert await fetcher().fetch(library.url("/moved.md"), trusted(library, token=TOKEN)) == "text"
    assert [token for _, _, token in library.asked] == ["Bearer token-of-wiki"] * 2


async def test_a_token_that_cannot_be_read_is_told_and_nothing_is_asked(library: Library) -> None:
    gone = SecretKey(namespace="team-a", name="gone", key="token")
    work = fetcher().fetch(library.url("/crash.md"), trusted(library, token=gone))
    assert await refusal(work) == "Secret team-a/gone does not exist; create it"
    assert library.asked == []


@pytest.mark.parametrize(
    "location",
    ["http://evil.test/x", "http://127.0.0.1/x", "file:///etc/passwd", "http://user@wiki.test/x", "//evil.test/x"],
)
async def test_a_redirect_off_the_list_is_not_followed(library: Library, location: str) -> None:
    names = Names()
    library.redirect("/moved.md", location)
    await refusal(fetcher(names).fetch(library.url("/moved.md"), trusted(library)))
    assert names.asked == ["wiki.test"]


async def test_redirects_have_an_end(library: Library) -> None:
    library.redirect("/round.md", "round.md")
    assert "redirected more than" in await refusal(fetcher().fetch(library.url("/round.md"), trusted(library)))
    assert len(library.asked) == MAX_REDIRECTS + 1


@pytest.mark.parametrize("address", ["127.0.0.1", "10.96.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1"])
async def test_a_namespaces_host_with_an_inner_address_is_refused_before_it_is_asked(address: str) -> None:
    work = fetcher(Names(wiki_test=[address])).fetch("https://wiki.test/a", sources((), [RunbookSource("wiki.test")]))
    assert await refusal(work) == (
        "host wiki.test has an address that is not public; "
        "ask the administrator to start the operator with --runbook-host for it"
    )


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "169.254.169.254"])
async def test_an_inner_address_on_a_namespaces_list_is_refused(host: str) -> None:
    names = Names()
    work = fetcher(names).fetch(f"https://{host}/a", (RunbookSource(host.strip("[]")),))
    assert "not public" in await refusal(work)


async def test_a_redirect_of_a_trusted_host_to_a_namespaces_host_is_judged_as_that(library: Library) -> None:
    library.redirect("/moved.md", "https://wiki.example/x")
    among = sources([f"wiki.test:{library.port}"], [RunbookSource("wiki.example")])
    assert "not public" in await refusal(fetcher().fetch(library.url("/moved.md"), among))


async def test_the_address_that_was_checked_is_the_one_that_is_connected_to(library: Library) -> None:
    """A name whose second answer is an inner address: it is asked once, and the first answer counts."""
    library.put("/crash.md", "text")
    names = Names(wiki_test=["127.0.0.1", "10.96.0.1"])
    checked: list[str] = []

    def public(address: str) -> bool:
        checked.append(address)
        return address == "127.0.0.1"

    one = fetcher(names, public=public)
    # https to a server without it: that the handshake fails shows that the checked address was connected to.
    url = library.url("/crash.md").replace("http:", "https:")
    message = await refusal(one.fetch(url, (RunbookSource(f"wiki.test:{library.port}"),)))
    assert message.startswith("it could not be fetched (Client")
    assert (names.asked, checked) == (["wiki.test"], ["127.0.0.1"])


@pytest.mark.parametrize(
    "host", ["\U0001fbf1\U0001fbf2\U0001fbf7.0.0.1", "127.1", "2130706433", "127.0.0.1\\@wiki.test"]
)
async def test_a_url_that_clients_might_read_in_different_ways_is_not_fetched(library: Library, host: str) -> None:
    library.put("/crash.md", "text")
    names = Names()
    url = f"http://{host}:{library.port}/crash.md"
    assert (await refusal(fetcher(names).fetch(url, trusted(library)))).startswith("the URL")
    library.redirect("/there", url)
    assert await refusal(fetcher(names).fetch(library.url("/there"), trusted(library)))
    assert [path for _, path, _ in library.asked] == ["/there"]


async def test_a_host_that_is_not_found_is_said_in_a_sentence(library: Library) -> None:
    async def nobody(name: str, port: int) -> Found:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    one = Fetcher(Tokens(), look_up=nobody)
    assert "host wiki.test is not found" in await refusal(one.fetch(library.url("/a"), trusted(library)))
