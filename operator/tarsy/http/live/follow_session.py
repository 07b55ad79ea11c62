"""Streams one investigation to one client, over WebSocket or server-sent events.

Decision: both transports share this module, so that authorization is checked again in one place, and both survive an
outage of Postgres.
"""

import asyncio

from tarsy.http.errors import BadRequest, HttpError, NotFound
from tarsy.http.live.authorization import StreamAuthorization
from tarsy.http.live.cursor import Cursor
from tarsy.http.live.hub import Hub
from tarsy.http.live.investigation_stream import InvestigationStream, StreamFollower
from tarsy.http.live.send_queue import SendQueue
from tarsy.record.run import InvestigationRecord
from tarsy.store.errors import StoreError

_AGAIN_SECONDS = 1.0


class FollowSession:
    """The subscription of one client to one investigation.

    Args:
        hub: provides the stream of the investigation.
        authorization: the authorization of the stream; `demand` has succeeded.
        record: the investigation.
        outbox: queue of messages to the client.
        limit: maximum number of past changes to send; None: all.
    """

    def __init__(
        self,
        hub: Hub,
        authorization: StreamAuthorization,
        record: InvestigationRecord,
        outbox: SendQueue,
        limit: int | None,
    ) -> None:
        self._hub = hub
        self._authorization = authorization
        self._record = record
        self._follower = StreamFollower(outbox)
        self._limit = limit
        self._wanted: Cursor | None = None

    def catch_up(self, after: Cursor) -> None:
        """Requests that the changes after a cursor be sent (again).

        Raises:
            BadRequest: the cursor is later than the end of the investigation.
        """
        if after.of(0) > self._record.revision and self._record.state.finished:
            last = self._record.revision
            raise BadRequest(f"after: must not be later than {last}, the last revision of the investigation")
        self._wanted = after
        self._follower.behind.set()

    async def run(self) -> None:
        """Follows until it is cancelled.

        Raises:
            HttpError: the caller is no longer authorized, or the record is gone.
        """
        async with self._hub.follow(self._record) as feed, asyncio.TaskGroup() as group:
            feed.add(self._follower)
            try:
                checking = group.create_task(self._check())
                telling = group.create_task(self._tell(feed))
                gone = group.create_task(feed.gone.wait())
                await asyncio.wait({checking, telling, gone}, return_when=asyncio.FIRST_COMPLETED)
                for task in (checking, telling, gone):
                    task.cancel()
            finally:
                feed.remove(self._follower)
        raise NotFound("the record of this investigation is no longer available")

    async def _check(self) -> None:
        while True:
            await asyncio.sleep(self._hub.check_seconds)
            await self._authorization.check()

    async def _tell(self, feed: InvestigationStream) -> None:
        while True:
            await self._follower.behind.wait()
            self._follower.behind.clear()
            if self._wanted is not None:
                self._follower.cursor, self._wanted = self._wanted, None
            try:
                await feed.catch_up(self._follower, self._limit)
            except StoreError:
                self._follower.behind.set()
                await asyncio.sleep(_AGAIN_SECONDS)


def closing_error(ended: BaseException) -> HttpError | None:
    """Returns the HttpError in an exception or group of exceptions; None without one."""
    if isinstance(ended, HttpError):
        return ended
    if isinstance(ended, BaseExceptionGroup):
        return next((found for one in ended.exceptions if (found := closing_error(one)) is not None), None)
    return None
