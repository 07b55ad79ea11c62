"""Fetches a runbook by URL.

Decision: redirects are followed by hand. Each hop is judged as if it had been asked for itself (list, scheme, address)
and gets the token of its own host or none, so nothing that a server answers leads off the list or takes a token along.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable

import aiohttp
from yarl import URL

from tarsy.outbound.address_check import NotAllowed, Resolve, check_addresses, is_address, resolve_host
from tarsy.outbound.connector import PinnedConnector
from tarsy.plan.destinations import Destinations, is_public
from tarsy.plan.model import SecretKey
from tarsy.plan.place import Place
from tarsy.runbook.addresses import SourceJudge
from tarsy.runbook.errors import RunbookUnavailable
from tarsy.runbook.sources import RunbookSource, raw_form, source_of

_ANYWHERE = Destinations()
MAX_BYTES = 262_144
TIMEOUT_SECONDS = 30.0
_CACHE_SECONDS = 60.0
MAX_REDIRECTS = 5
MAX_CACHED = 64

ReadToken = Callable[[SecretKey], Awaitable[str]]
"""Reads a token; raises RunbookUnavailable when it cannot be read."""


class Fetcher:
    """Fetches runbooks, and keeps each for a minute.

    Args:
        read_token: see `ReadToken`.
        destinations: says how names are looked up.
        look_up: resolves names.
        public: whether an address is public (`is_public`).
        clock: monotonic seconds.
        timeout_seconds: of one runbook, with all redirects.
    """

    def __init__(
        self,
        read_token: ReadToken,
        *,
        destinations: Destinations = _ANYWHERE,
        look_up: Resolve = resolve_host,
        public: Callable[[str], bool] = is_public,
        clock: Callable[[], float] = time.monotonic,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._read_token = read_token
        self._destinations = destinations
        self._look_up = look_up
        self._public = public
        self._clock = clock
        self._timeout_seconds = timeout_seconds
        self._cache: OrderedDict[tuple[str, tuple[RunbookSource, ...]], tuple[float, str]] = OrderedDict()

    async def fetch(self, url: str, among: tuple[RunbookSource, ...]) -> str:
        """Returns the text at a URL.

        What is kept is kept for the same sources only: who has no token does not get what another's token fetched.

        Raises:
            RunbookUnavailable: the URL is not of a source, or gives no text within size and time.
        """
        now = self._clock()
        kept = self._cache.get((url, among))
        if kept is not None and kept[0] > now:
            return kept[1]
        try:
            async with asyncio.timeout(self._timeout_seconds):
                text = await self._fetch(url, among)
        except TimeoutError:
            raise RunbookUnavailable(f"no response within {self._timeout_seconds:g} seconds") from None
        except NotAllowed as error:
            raise RunbookUnavailable(str(error)) from None
        except aiohttp.ClientConnectorDNSError as error:
            raise RunbookUnavailable(error.os_error.strerror or "its host is not found") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            # Its text may repeat what a server answered; its kind does not.
            raise RunbookUnavailable(f"it could not be fetched ({type(error).__name__})") from None
        self._cache[url, among] = (now + _CACHE_SECONDS, text)
        self._cache.move_to_end((url, among))
        while len(self._cache) > MAX_CACHED:
            self._cache.popitem(last=False)
        return text

    async def _fetch(self, url: str, among: tuple[RunbookSource, ...]) -> str:
        current = raw_form(URL(_place(url).url))
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._ask(current, source_of(current, among))
            if isinstance(answer, str):
                return answer
            current = raw_form(URL(_place(str(answer)).url))
        raise RunbookUnavailable(f"it was redirected more than {MAX_REDIRECTS} times")

    async def _ask(self, url: URL, source: RunbookSource) -> str | URL:
        """Sends one request; returns the text, or the URL of a redirect."""
        judge = SourceJudge(source, self._public, self._destinations)
        host = _place(str(url)).host
        if is_address(host):  # before a token is read for it
            check_addresses(host, host, judge)
        headers = {"Accept": "text/plain, text/markdown, */*;q=0.5", "Accept-Encoding": "identity"}
        if source.token is not None:
            headers["Authorization"] = f"Bearer {await self._read_token(source.token)}"
        connector = PinnedConnector(host, judge, look_up=self._look_up)
        async with (
            aiohttp.ClientSession(
                connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
            ) as session,
            session.get(url, headers=headers, allow_redirects=False) as response,
        ):
            location = response.headers.get("Location")
            if response.status in (301, 302, 303, 307, 308) and location:
                return url.join(URL(location))
            if response.status != 200:
                raise RunbookUnavailable(f"host {host} responded with status {response.status}")
            if response.headers.get("Content-Encoding", "identity") != "identity":
                raise RunbookUnavailable(f"host {host} sent a compressed response, which is not accepted")
            return _text(await _read(response.content, host))


async def _read(content: aiohttp.StreamReader, host: str) -> bytes:
    body = bytearray()
    async for chunk in content.iter_any():
        body += chunk
        if len(body) > MAX_BYTES:
            raise RunbookUnavailable(f"host {host} sent more than {MAX_BYTES} bytes (256 KiB); shorten it")
    return bytes(body)


def _text(body: bytes) -> str:
    text = body.decode("utf-8", "replace").removeprefix("\ufeff")
    if not text.strip():
        raise RunbookUnavailable("it is empty; add text to it")
    return text


def _place(url: str) -> Place:
    try:
        return Place.of(url)
    except ValueError as error:
        raise RunbookUnavailable(str(error)) from None
