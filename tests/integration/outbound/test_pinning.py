"""Tests that aiohttp and httpx2 connect only to checked addresses, whatever DNS returns meanwhile."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import aiohttp
import httpx2
import pytest
from aiohttp import web

from tarsy.outbound.address_check import AddressCheck, Found, NotAllowed, Of
from tarsy.outbound.connector import PinnedConnector
from tarsy.outbound.transport import PinnedTransport
from tarsy.plan.destinations import Destinations

HOST = "tools.example"
POD = Of(Destinations.of(["127.0.0.0/30"], in_pod=True), "shop")


class Names:
    """Answers each lookup with the next of its lists of addresses, the last again and again."""

    def __init__(self, *answers: tuple[str, ...]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    async def __call__(self, name: str, port: int) -> Found:
        self.asked.append(name)
        addresses = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return Found(addresses)


class Here:
    """A web server on loopback; notes the Host header and the connection of each request."""

    def __init__(self) -> None:
        self.port = 0
        self.hosts: list[str] = []
        self.connections: set[object] = set()

    async def answer(self, request: web.Request) -> web.Response:
        """Answers one request."""
        self.hosts.append(request.host)
        self.connections.add(request.transport)
        return web.Response(text="here")


@pytest.fixture
async def here() -> AsyncIterator[Here]:
    made, app = Here(), web.Application()
    app.router.add_get("/{path:.*}", made.answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.port = runner.addresses[0][1]
    yield made
    await runner.cleanup()


Get = Callable[[str], Awaitable[str]]
Open = Callable[[Names], Get]


@pytest.fixture(params=["aiohttp", "httpx2"])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Callable[[Names, AddressCheck], Get]]:
    """Makes a client that is pinned: of a URL, the body that is found there."""
    async with AsyncExitStack() as stack:

        def make(names: Names, judge: AddressCheck = POD, host: str = HOST) -> Get:
            if request.param == "aiohttp":
                session = aiohttp.ClientSession(
                    connector=PinnedConnector(host, judge, look_up=names, ttl_dns_cache=0),
                    timeout=aiohttp.ClientTimeout(connect=5),
                )
                stack.push_async_callback(session.close)

                async def of_aiohttp(url: str) -> str:
                    async with session.get(url, allow_redirects=False) as response:
                        return await response.text()

                return of_aiohttp
            http = httpx2.AsyncClient(transport=PinnedTransport(judge, look_up=names), trust_env=False, timeout=5)
            stack.push_async_callback(http.aclose)

            async def of_httpx2(url: str) -> str:
                return (await http.get(url)).text

            return of_httpx2

        yield make  # type: ignore[misc]


def why(error: BaseException | None) -> str:
    """What forbade it; empty where nothing did."""
    while error is not None and not isinstance(error, NotAllowed):
        error = error.__cause__ or error.__context__
    return str(error or "")


async def refused(work: Awaitable[str]) -> str:
    with pytest.raises((aiohttp.ClientError, httpx2.HTTPError, NotAllowed)) as raised:
        async with asyncio.timeout(30):
            await work
    return why(raised.value)


async def test_a_name_is_connected_to_at_its_judged_address_with_its_own_host_header(
    here: Here, client: Callable[..., Get]
) -> None:
    names = Names(("127.0.0.1",))
    assert await client(names)(f"http://{HOST}:{here.port}/a") == "here"
    assert here.hosts == [f"{HOST}:{here.port}"] and names.asked == [f"{HOST}."]


async def test_a_connection_is_used_again_without_another_lookup(here: Here, client: Callable[..., Get]) -> None:
    names = Names(("127.0.0.1",))
    get = client(names)
    for _ in range(3):
        await get(f"http://{HOST}:{here.port}/")
    assert (len(names.asked), len(here.connections), len(here.hosts)) == (1, 1, 3)


async def test_a_name_that_rebinds_is_connected_to_where_it_was_judged_and_refused_afterwards(
    here: Here, client: Callable[..., Get]
) -> None:
    names = Names(("127.0.0.1",), ("127.0.0.9",))
    assert await client(names)(f"http://{HOST}:{here.port}/") == "here"
    assert "operator's own pod" in await refused(client(names)(f"http://{HOST}:{here.port}/"))
    assert len(here.hosts) == 1


@pytest.mark.parametrize("address", ["127.0.0.9", "169.254.169.254", "10.0.0.1", "::1"])
async def test_an_address_that_is_not_allowed_is_not_connected_to(
    here: Here, client: Callable[..., Get], address: str
) -> None:
    assert "host tools.example" in await refused(client(Names((address,)))(f"http://{HOST}:{here.port}/"))
    assert "host tools.example" in await refused(client(Names(("127.0.0.1", address)))(f"http://{HOST}:{here.port}/"))
    assert here.hosts == []


async def test_a_literal_is_judged_too(here: Here, client: Callable[..., Get]) -> None:
    names = Names(("127.0.0.1",))
    assert await client(names, POD, "127.0.0.1")(f"http://127.0.0.1:{here.port}/") == "here"
    closed = Of(Destinations(in_pod=True), "shop")
    assert "operator's own pod" in await refused(client(names, closed, "127.0.0.1")(f"http://127.0.0.1:{here.port}/"))
    assert names.asked == [] and len(here.hosts) == 1


@pytest.mark.parametrize(
    "spelled", ["\U0001fbf1\U0001fbf2\U0001fbf7.0.0.9", "\uff11\uff12\uff17.0.0.9", "127.0.0.\u2468"]
)
async def test_a_client_that_was_given_what_nobody_judged_still_connects_to_nothing_that_is_not_allowed(
    here: Here, client: Callable[..., Get], spelled: str
) -> None:
    with pytest.raises((aiohttp.ClientError, httpx2.HTTPError, httpx2.InvalidURL, NotAllowed, ValueError)):
        await client(Names(("127.0.0.9",)), POD, "127.0.0.9")(f"http://{spelled}:{here.port}/")
    assert here.hosts == []


async def test_the_next_address_is_tried_where_one_takes_no_connection(here: Here, client: Callable[..., Get]) -> None:
    assert await client(Names(("127.0.0.2", "127.0.0.1")))(f"http://{HOST}:{here.port}/") == "here"


async def test_a_name_that_is_not_found_is_said(here: Here, client: Callable[..., Get]) -> None:
    with pytest.raises((aiohttp.ClientError, httpx2.HTTPError), match=r"host tools\.example is not found"):
        await client(Names(()))(f"http://{HOST}:{here.port}/")


async def test_proxies_of_the_environment_are_not_asked(
    here: Here, client: Callable[..., Get], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert await client(Names(("127.0.0.1",)))(f"http://{HOST}:{here.port}/") == "here"


async def test_a_connector_of_one_host_connects_to_no_other(here: Here) -> None:
    async with aiohttp.ClientSession(connector=PinnedConnector(HOST, POD, look_up=Names(("127.0.0.1",)))) as session:
        with pytest.raises(NotAllowed, match="the host that was checked"):
            await session.get(f"http://other.example:{here.port}/")
