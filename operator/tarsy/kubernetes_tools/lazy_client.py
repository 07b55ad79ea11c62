"""Opens the connection of a tool server to its API at the first request."""

import asyncio
import ssl
from collections.abc import Callable
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

import httpx2


class ApiAccess(Protocol):
    """Holds the address of an API and the CAs that are trusted there."""

    @property
    def url(self) -> str:
        """Address of the API."""

    def tls(self) -> ssl.SSLContext:
        """Returns the certificates to trust, and the client's."""


_A = TypeVar("_A", bound=ApiAccess)


class LazyClient(Generic[_A]):
    """Opens an HTTP client when it is first asked for; it may be entered again after its end.

    Args:
        find: finds where the API is; called when the client is opened.
        seconds: timeout of a connection and of each read.
    """

    def __init__(self, find: Callable[[], _A], seconds: float) -> None:
        self._find = find
        self._seconds = seconds
        self._opening = asyncio.Lock()
        self._open: tuple[_A, httpx2.AsyncClient] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        opened, self._open = self._open, None
        if opened is not None:
            await opened[1].aclose()

    async def connection(self) -> tuple[_A, httpx2.AsyncClient]:
        """Returns the access and the open client; raises what `find` and `tls` raise."""
        async with self._opening:
            if self._open is None:
                access = self._find()
                client = httpx2.AsyncClient(
                    verify=access.tls() if access.url.startswith("https://") else False,
                    timeout=self._seconds,
                    trust_env=False,
                    follow_redirects=False,
                )
                self._open = (access, client)
            return self._open
