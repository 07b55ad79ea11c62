"""Sends the requests of httpx2 with aiohttp.

An SDK that takes an httpx2 client keeps its interface. aiohttp parses HTTP in C, and needs less CPU for a request.
Redirects are the caller's, and bodies of responses stay encoded: httpx2 decodes them.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import aiohttp
import httpx2
from yarl import URL

from tarsy.outbound.address_check import NotAllowed

NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ClientConnectionResetError, aiohttp.ConnectionTimeoutError)
"""Errors of aiohttp before anything of a request was sent."""
_NOT_PASSED_ON = {"connection", "content-length", "host", "transfer-encoding"}


class AiohttpTransport(httpx2.AsyncBaseTransport):
    """A transport of httpx2 over a session of aiohttp.

    Args:
        http: sends the requests; not closed with the transport. It must not decompress bodies.
    """

    def __init__(self, http: aiohttp.ClientSession) -> None:
        self._http = http

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends one request.

        Args:
            request: its body is read whole before it is sent.

        Raises:
            httpx2.ConnectError: connections to the host are not allowed, or none was accepted.
            httpx2.ConnectTimeout: the connection took too long.
            httpx2.ReadError: the connection broke; the server may have the request.
        """
        body = await request.aread()
        headers = [(name, value) for name, value in request.headers.multi_items() if name not in _NOT_PASSED_ON]
        with _as_httpx2():
            response = await self._http.request(
                request.method,
                URL(str(request.url), encoded=True),
                data=body or None,
                headers=headers,
                allow_redirects=False,
            )
        return httpx2.Response(response.status, headers=response.raw_headers, stream=_Stream(response))


class _Stream(httpx2.AsyncByteStream):
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _as_httpx2():
            async for part in self._response.content.iter_any():
                yield part

    async def aclose(self) -> None:
        """Closes the connection of a response that was not read to its end; others have returned theirs."""
        self._response.close()


@contextmanager
def _as_httpx2() -> Iterator[None]:
    """Raises errors of aiohttp as those of httpx2."""
    try:
        yield
    except NotAllowed as error:
        raise httpx2.ConnectError(str(error)) from error
    except aiohttp.ConnectionTimeoutError as error:
        raise httpx2.ConnectTimeout(str(error)) from error
    except NEVER_SENT as error:
        raise httpx2.ConnectError(str(error)) from error
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise httpx2.ReadError(str(error)) from error
