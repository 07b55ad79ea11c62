"""Implements the older HTTP transport: one stream of server-sent events, and a POST for each message to the server.

It replaces the SDK's own client, where a response of more than 1 MiB ends the session, and a failed POST leaves its
call, and every later one, waiting until the timeout. Here the failed call gets an error that says whether the request
may have arrived, and other calls continue.
"""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urljoin

import anyio
import httpx2
import mcp_types as types
from anyio.streams.memory import MemoryObjectSendStream
from mcp.client._transport import TransportStreams
from mcp.shared.message import SessionMessage

from tarsy.mcp.connection_errors import no_answer, refusal_reason, unconnected
from tarsy.mcp.errors import OpenFailed
from tarsy.mcp.http_failures import LARGEST_ANSWER
from tarsy.mcp.sdk_http import failure_of

_log = logging.getLogger(__name__)
_POST_SECONDS = 30.0

_Incoming = MemoryObjectSendStream[SessionMessage | Exception]


@asynccontextmanager
async def sse(url: str, client: httpx2.AsyncClient, on_end: Callable[[], None]) -> AsyncIterator[TransportStreams]:
    """Opens the event stream as a transport of the SDK.

    Args:
        url: URL of the event stream.
        client: Sends the requests, over `tarsy.mcp.sdk_http.Wire`.
        on_end: Called when the server has ended the stream.

    Raises:
        OpenFailed: The server refuses, or does not send the endpoint for messages.
    """
    to_session, reading = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    headers = {"accept": "text/event-stream", "cache-control": "no-store"}
    try:
        async with _stream(client, url, headers) as response:
            if not response.is_success:
                raise OpenFailed(refusal_reason(response.status_code, url, sse=True))
            if "text/event-stream" not in response.headers.get("content-type", "").lower():
                raise OpenFailed(no_answer(response.headers.get("content-type", ""), url))
            events = aiter(httpx2.EventSource(response, max_event_size=LARGEST_ANSWER))
            messages_to = await _endpoint(url, events)

            async def read() -> None:
                try:
                    async with to_session:
                        async for event in events:
                            if event.event == "message" and event.data:
                                await _deliver(event.data, to_session)
                except (anyio.BrokenResourceError, anyio.ClosedResourceError, httpx2.TransportError) as error:
                    _log.debug("the stream of a tool server ended: %s", type(error).__name__)
                on_end()

            async with anyio.create_task_group() as tasks:

                async def write() -> None:
                    async for item in from_session:
                        tasks.start_soon(_post, client, messages_to, item.message, to_session)

                tasks.start_soon(read)
                tasks.start_soon(write)
                yield reading, writing
                tasks.cancel_scope.cancel()
    finally:
        for stream in (to_session, reading, writing, from_session):
            stream.close()


@asynccontextmanager
async def _stream(client: httpx2.AsyncClient, url: str, headers: dict[str, str]) -> AsyncIterator[httpx2.Response]:
    async with AsyncExitStack() as stack:
        try:
            response = await stack.enter_async_context(client.stream("GET", url, headers=headers))
        except httpx2.TransportError as error:
            raise OpenFailed(unconnected(error, url)) from error
        yield response


async def _endpoint(url: str, events: AsyncIterator[httpx2.ServerSentEvent]) -> str:
    async for event in events:
        if event.event == "endpoint":
            where = urljoin(url, event.data)
            if _origin(where) != _origin(url):
                raise OpenFailed("it requests that messages be sent to another host")
            return where
    raise OpenFailed("its stream ended before it sent the endpoint for messages")


def _origin(url: str) -> tuple[str, str, int | None]:
    parsed = httpx2.URL(url)
    return parsed.scheme, parsed.host, parsed.port


async def _deliver(data: str, to_session: _Incoming) -> None:
    try:
        message = types.jsonrpc_message_adapter.validate_json(data, by_name=False)
    except ValueError:
        _log.debug("a tool server sent an event of %d characters that is not JSON-RPC", len(data))
        return
    await to_session.send(SessionMessage(message))


async def _post(client: httpx2.AsyncClient, url: str, message: types.JSONRPCMessage, to_session: _Incoming) -> None:
    body = message.model_dump(by_alias=True, mode="json", exclude_unset=True)
    error: dict[str, Any] | None
    try:
        response = await client.post(url, json=body, timeout=httpx2.Timeout(_POST_SECONDS))
        error = failure_of(response)
    except httpx2.HTTPError as failed:
        error = {"code": types.CONNECTION_CLOSED, "message": f"the connection broke: {type(failed).__name__}"}
    if error is None or not isinstance(message, types.JSONRPCRequest):
        return
    answer = types.JSONRPCError(jsonrpc="2.0", id=message.id, error=types.ErrorData.model_validate(error))
    try:
        await to_session.send(SessionMessage(answer))
    except (anyio.BrokenResourceError, anyio.ClosedResourceError):
        _log.debug("a message to a tool server failed after its session had ended")
