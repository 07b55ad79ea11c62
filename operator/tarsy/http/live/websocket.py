"""Serves the WebSocket: many subscriptions over one connection, within limits.

A bearer token authenticates the connection; each subscription is authorized in its own namespace, and again while it
lasts. Decision: a connection that is too slow, sends too many actions or has an invalid token is closed with a reason,
and the server stores nothing for it: a client that reconnects sends its last id.

| close code | reason |
|---|---|
| 1003 | the client sent something other than text |
| 1008 | the token is no longer valid, or the client sends too many actions |
| 1012 | the server is shutting down; reconnect |
| 1013 | the client reads too slowly; reconnect with the last id |
"""

import asyncio
import logging

from aiohttp import WSCloseCode, WSMsgType, web
from pydantic import ValidationError

from tarsy.http.authentication.frontends import require_own_page
from tarsy.http.errors import BadRequest, Conflict, HttpError, NotFound, TooManyRequests, Unauthorized
from tarsy.http.failures import as_http_error
from tarsy.http.live.authorization import StreamAuthorization, Topic, read_topic
from tarsy.http.live.cursor import Cursor, read_cursor
from tarsy.http.live.follow_session import FollowSession, closing_error
from tarsy.http.live.investigation_stream import CATCH_UP
from tarsy.http.live.lists import Watcher
from tarsy.http.live.messages import (
    CatchUp,
    ClientAction,
    ErrorMessage,
    Ping,
    PongMessage,
    Subscribe,
    SubscribedMessage,
    Unsubscribe,
    UnsubscribedMessage,
    written,
)
from tarsy.http.live.send_queue import QueuedMessage, SendQueue
from tarsy.http.models import View
from tarsy.http.route import CheckedRequest, Route
from tarsy.store.errors import StoreError

PROTOCOL = "v1.tarsy.dev"
"""Name of the subprotocol; browsers offer it beside the one that contains their token."""
SUBSCRIPTIONS = 50
ACTION_BYTES = 8_192
ACTIONS_AT_ONCE = 60
ACTIONS_A_SECOND = 5.0
"""Rate limit of actions: a burst, and a sustained rate."""
_WRITE_SECONDS = 10.0
PING_SECONDS = 25.0
_log = logging.getLogger(__name__)
_ASK_SECONDS = 15.0
_CLOSE_SECONDS = 2.0


class _Close(Exception):
    """Closes the connection with a code and a reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


async def follow_by_websocket(ask: CheckedRequest) -> web.StreamResponse:
    """Serves one connection until either side closes it."""
    require_own_page(ask.request, ask.services.origins)
    ws = web.WebSocketResponse(
        heartbeat=PING_SECONDS,
        max_msg_size=ACTION_BYTES,
        compress=False,
        protocols=(PROTOCOL,),
        timeout=_CLOSE_SECONDS,
    )
    if not ws.can_prepare(ask.request).ok:
        raise BadRequest("this path requires a WebSocket upgrade")
    with ask.services.hub.admit(ask.caller.username):
        ask.untimed()
        await ws.prepare(ask.request)
        await _Connection(ask, ws).run()
    return ws


class _Connection:
    """An open connection."""

    def __init__(self, ask: CheckedRequest, ws: web.WebSocketResponse) -> None:
        self._ask = ask
        self._ws = ws
        self._outbox = SendQueue()
        self._subscriptions: dict[str, asyncio.Task[None]] = {}
        self._sessions: dict[str, FollowSession] = {}
        self._clock = asyncio.get_running_loop().time
        self._allowance, self._counted = float(ACTIONS_AT_ONCE), self._clock()

    async def run(self) -> None:
        """Serves until the connection ends."""
        close = _Close(WSCloseCode.OK, "")
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._write()), group.create_task(self._watch())]
                await self._listen(group)
                for task in (*tasks, *self._subscriptions.values()):
                    task.cancel()
        except* _Close as closed:
            close = next(one for one in _leaves(closed) if isinstance(one, _Close))
        except* ConnectionError:
            pass  # the client disconnected
        except* Exception:
            _log.exception("a WebSocket connection failed")
            close = _Close(WSCloseCode.INTERNAL_ERROR, "internal error; see the log of the server")
        await self._close(close)

    async def _close(self, close: _Close) -> None:
        try:
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._ws.close(code=close.code, message=close.reason.encode(), drain=False)
        except TimeoutError:
            if (transport := self._ask.request.transport) is not None:
                transport.abort()

    async def _write(self) -> None:
        while notes := await self._outbox.take():
            for note in notes:
                try:
                    async with asyncio.timeout(_WRITE_SECONDS):
                        await self._ws.send_str(note.data)
                except TimeoutError:
                    raise _slow() from None

    async def _watch(self) -> None:
        """Closes the connection when the process shuts down, or the client is too slow."""
        overrun = asyncio.create_task(self._outbox.overrun.wait())
        stopping = asyncio.create_task(self._ask.services.stopping.wait())
        try:
            await asyncio.wait({overrun, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if self._outbox.overrun.is_set():
                raise _slow()
            raise _Close(WSCloseCode.SERVICE_RESTART, "the server is shutting down; reconnect")
        finally:
            overrun.cancel()
            stopping.cancel()

    async def _listen(self, group: asyncio.TaskGroup) -> None:
        async for message in self._ws:
            if message.type is not WSMsgType.TEXT:
                raise _Close(WSCloseCode.UNSUPPORTED_DATA, "send JSON as text")
            self._count()
            await self._act(message.data, group)

    def _count(self) -> None:
        now = self._clock()
        self._allowance = min(ACTIONS_AT_ONCE, self._allowance + (now - self._counted) * ACTIONS_A_SECOND) - 1
        self._counted = now
        if self._allowance < 0:
            raise _Close(WSCloseCode.POLICY_VIOLATION, f"more than {ACTIONS_A_SECOND:g} actions a second")

    async def _act(self, text: str, group: asyncio.TaskGroup) -> None:
        channel = None
        try:
            action = ClientAction.model_validate_json(text).root
            match action:
                case Ping():
                    self._tell(PongMessage())
                    return
                case Subscribe() | CatchUp() | Unsubscribe():
                    channel = action.channel
            async with asyncio.timeout(_ASK_SECONDS):
                await self._act_on(action, group)
        except ValidationError:
            text = "invalid action: send JSON with the action subscribe, unsubscribe, catchup or ping"
            self._refuse(None, BadRequest(text))
        except TimeoutError:
            self._refuse(channel, HttpError("the permission could not be checked in time; try again"))
        except (HttpError, StoreError) as error:
            self._refuse(channel, as_http_error(error))

    async def _act_on(self, action: Subscribe | CatchUp | Unsubscribe, group: asyncio.TaskGroup) -> None:
        channel = read_topic(action.channel).channel
        match action:
            case Subscribe(after=after):
                if channel in self._subscriptions:
                    raise Conflict("this channel is already subscribed; send catchup instead")
                if len(self._subscriptions) >= SUBSCRIPTIONS:
                    raise TooManyRequests(f"a connection can have at most {SUBSCRIPTIONS} subscriptions")
                await self._subscribe(read_topic(channel), _cursor(after), group)
            case CatchUp(after=after):
                if channel not in self._sessions:
                    raise NotFound("this channel is not subscribed, or does not support catchup: read lists with REST")
                self._sessions[channel].catch_up(_cursor(after))
            case Unsubscribe():
                if channel not in self._subscriptions:
                    raise NotFound("this channel is not subscribed")
                self._subscriptions.pop(channel).cancel()
                self._sessions.pop(channel, None)
                self._tell(UnsubscribedMessage(channel=channel))

    async def _subscribe(self, topic: Topic, after: Cursor, group: asyncio.TaskGroup) -> None:
        authorization, hub, channel = StreamAuthorization(self._ask, topic), self._ask.services.hub, topic.channel
        await authorization.demand()
        if topic.name is None:
            watcher = Watcher(self._outbox, topic.namespace, authorization.namespace_uid)
            await hub.lists.add(watcher)
            self._tell(SubscribedMessage(channel=channel))
            self._subscriptions[channel] = group.create_task(self._watching(channel, watcher, authorization))
            return
        record = await authorization.record()
        session = FollowSession(hub, authorization, record, self._outbox, CATCH_UP)
        session.catch_up(after)
        self._tell(SubscribedMessage(channel=channel))
        self._sessions[channel] = session
        self._subscriptions[channel] = group.create_task(self._follow(channel, session))

    async def _watching(self, channel: str, watcher: Watcher, authorization: StreamAuthorization) -> None:
        try:
            while True:
                await asyncio.sleep(self._ask.services.hub.check_seconds)
                await authorization.check()
        except HttpError as error:
            self._end(channel, error)
        finally:
            self._ask.services.hub.lists.remove(watcher)

    async def _follow(self, channel: str, session: FollowSession) -> None:
        try:
            await session.run()
        except (HttpError, BaseExceptionGroup) as ended:
            if (error := closing_error(ended)) is None:
                raise
            self._end(channel, error)

    def _end(self, channel: str, error: HttpError) -> None:
        """Ends a subscription; closes the connection if the token is no longer valid."""
        if isinstance(error, Unauthorized):
            raise _Close(WSCloseCode.POLICY_VIOLATION, "the token is no longer valid")
        if self._subscriptions.get(channel) is asyncio.current_task():
            del self._subscriptions[channel]
            self._sessions.pop(channel, None)
            self._refuse(channel, error)

    def _refuse(self, channel: str | None, error: HttpError) -> None:
        self._tell(ErrorMessage(channel=channel, reason=error.reason, message=error.message))

    def _tell(self, message: View) -> None:
        self._outbox.offer(QueuedMessage("answer", written(message)))


def _cursor(after: int | str | None) -> Cursor:
    if isinstance(after, int):
        return Cursor({0: after})
    return Cursor() if after is None else read_cursor(after)


def _slow() -> _Close:
    return _Close(WSCloseCode.TRY_AGAIN_LATER, "the client reads too slowly; reconnect with the last id")


def _leaves(group: BaseExceptionGroup[BaseException]) -> list[BaseException]:
    found: list[BaseException] = []
    for one in group.exceptions:
        found += _leaves(one) if isinstance(one, BaseExceptionGroup) else [one]
    return found


ROUTES = (
    Route(
        method="GET",
        path="/ws",
        operation="followByWebSocket",
        summary="Follow investigations and lists over a WebSocket: it receives ClientAction and sends ServerMessage",
        handler=follow_by_websocket,
        status=101,
    ),
)
