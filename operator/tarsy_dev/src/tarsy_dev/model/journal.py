"""Records the requests and responses of the server, so that tests can check calls and billing."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any

SECRET_HEADERS = {"authorization", "api-key", "x-api-key", "cookie"}


class RequestOutcome(StrEnum):
    """Lists the ends of a request; `disconnected` is the client's doing, `cut` and `malformed` are the script's."""

    PENDING = "pending"
    FINISHED = "finished"
    ERROR = "error"
    CUT = "cut"
    MALFORMED = "malformed"
    DISCONNECTED = "disconnected"


@dataclass(slots=True)
class ServedRequest:
    """One request. `entry` is the script's path to the answer, `usage` what it cost (None: nothing was billed),
    `tools` those that the model may call.

    `received` and `ended` are seconds since the epoch.
    """

    number: int
    path: str
    agent: str | None
    turn: int
    entry: str | None
    model: str
    stream: bool
    messages: Sequence[Mapping[str, Any]]
    tools: Sequence[str]
    headers: Mapping[str, str]
    gate: str | None = None
    outcome: RequestOutcome = RequestOutcome.PENDING
    status: int = 200
    chunks: int = 0
    usage: Mapping[str, Any] | None = None
    received: float = field(default_factory=time.time)
    ended: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """The record as JSON data."""
        return asdict(self)


def render_journal(headers: Mapping[str, str]) -> dict[str, str]:
    """Headers without those that carry credentials, names in lower case."""
    return {key.lower(): value for key, value in headers.items() if key.lower() not in SECRET_HEADERS}


class Journal:
    """All requests in their order, and a way to wait for one."""

    def __init__(self) -> None:
        self.requests: list[ServedRequest] = []
        self._changed = asyncio.Condition()

    async def note(self, served: ServedRequest) -> None:
        """Adds a request."""
        self.requests.append(served)
        await self.tell()

    async def tell(self) -> None:
        """Wakes those who wait for a change."""
        async with self._changed:
            self._changed.notify_all()

    async def wait_for(self, condition: Callable[[Sequence[ServedRequest]], bool], seconds: float) -> None:
        """Waits until the condition holds. Raises TimeoutError: not within so many seconds."""
        async with asyncio.timeout(seconds), self._changed:
            await self._changed.wait_for(lambda: condition(self.requests))
