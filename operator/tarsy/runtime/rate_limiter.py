"""Limits the rate of model calls of the runs of this process.

Places are given back by one task, not by the calls that had them: a call that is cut off must not wait for Postgres,
and what it held must be given back whatever else goes wrong. Should this process die, its leases lapse, and its places
with them.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, contextmanager
from typing import Protocol
from uuid import UUID, uuid4
from weakref import WeakValueDictionary

from tarsy.llm.limits import Permit, RateLimiter
from tarsy.llm.protocol import LLMClient, WaitChunk
from tarsy.observe.metric_table import LIMIT_WAIT
from tarsy.observe.metrics import Metrics
from tarsy.plan.model import ProviderPlan
from tarsy.store.errors import StoreError
from tarsy.store.runs.rate_limit_slots import Held, ProviderSlots, provider_key
from tarsy.store.runs.wakeups import TURN_CHANNEL

_log = logging.getLogger(__name__)

UNLIMITED_SECONDS = 2.0
"""Seconds for which a provider is assumed to have no limits: the maximum delay before a first limit takes effect."""

SHORTEST_WAIT = 0.05
RELEASE_SECONDS = 5.0
_AFTER_ERROR_SECONDS = 0.5
_MOST_UNLIMITED = 1000


class Wakeups(Protocol):
    """Wake-ups of one reader."""

    async def wait(self) -> bool:
        """Waits for a wake-up, or for a poll interval."""
        ...


_Subscribe = Callable[[str, str], AbstractContextManager[Wakeups]]
"""Subscribes to one payload of a channel."""


class SharedModels(Protocol):
    """Clients for the providers of plans, for all runs of a process."""

    def client(
        self, provider: ProviderPlan, turnstile: RateLimiter | None = None
    ) -> AbstractAsyncContextManager[LLMClient]:
        """A client whose calls pass through `turnstile`, if there is one."""
        ...


class RunModels:
    """Implements `engine.ports.Models` for one attempt of a run."""

    def __init__(self, models: SharedModels, turnstile: RateLimiter) -> None:
        self._models = models
        self._turnstile = turnstile

    def client(self, provider: ProviderPlan) -> AbstractAsyncContextManager[LLMClient]:
        """A client for one call, which waits for its turn."""
        return self._models.client(provider, self._turnstile)


class RateLimiters:
    """Gives turns to the runs of this process, and their places back while `run` runs.

    Args:
        slots: the places.
        subscribe: to the wake-ups of who is next.
        metrics: are told how long calls wait.
    """

    def __init__(self, slots: ProviderSlots, subscribe: _Subscribe, metrics: Metrics | None = None) -> None:
        self._metrics = metrics
        self._slots = slots
        self._subscribe = subscribe
        self._unlimited: dict[str, float] = {}
        self._asking: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._over: dict[UUID, int | None] = {}
        self._some = asyncio.Event()

    def of(self, run: UUID, attempt: int, remaining: Callable[[], float]) -> "RunRateLimiter":
        """The rate limiter of one attempt of a run; `remaining` returns the seconds that it may wait for Postgres."""
        return RunRateLimiter(self, run, attempt, remaining)

    def of_judges(self, lease_seconds: float) -> "RunRateLimiter":
        """The rate limiter of calls of judges, each of which counts as running for these seconds at most."""
        return RunRateLimiter(self, None, 0, lambda: RELEASE_SECONDS, lease_seconds)

    async def run(self) -> None:
        """Gives places back until it is cancelled; then what is left, if Postgres answers at once."""
        try:
            while True:
                await self._some.wait()
                self._some.clear()
                if not await self._release():
                    await asyncio.sleep(_AFTER_ERROR_SECONDS)
                    self._some.set()
        finally:
            if self._over:
                await self._release()

    async def take(
        self, ticket: UUID, provider: ProviderPlan, tokens: int, of: "RunRateLimiter"
    ) -> tuple[bool, Held | None]:
        """Takes a place for a call, or a place in the line.

        Args:
            ticket: id of the call, for `give_back`; a call that asks again uses the same one.
            provider: as in the run's plan.
            tokens: number of tokens that the call is expected to use.
            of: rate limiter of the attempt that makes the call.

        Returns:
            Whether the call has a place to give back, and the limit it waits for; None if it need not wait.
        """
        key = provider_key(provider.ref)
        if self._is_unlimited(key, provider):
            return False, None
        # One at a time: who waits for the provider's row keeps a connection that the record needs.
        async with self._asking.setdefault(key, asyncio.Lock()):
            if self._is_unlimited(key, provider):  # whoever asked before has the answer
                return False, None
            now = asyncio.get_running_loop().time()
            turn = await self._slots.take(
                ticket, provider, tokens, of.run, of.attempt, remaining=of.remaining, lease_seconds=of.lease_seconds
            )
            if not turn.limited:
                if len(self._unlimited) >= _MOST_UNLIMITED:
                    self._unlimited.clear()
                self._unlimited[key] = now + UNLIMITED_SECONDS
        return turn.limited, turn.held

    def _is_unlimited(self, key: str, provider: ProviderPlan) -> bool:
        """Whether Postgres had no limits for a provider a moment ago."""
        return provider.limits is None and self._unlimited.get(key, 0.0) > asyncio.get_running_loop().time()

    def give_back(self, ticket: UUID, used: int | None) -> None:
        """Gives a place back; neither waits nor raises."""
        self._over[ticket] = used
        self._some.set()

    def waited(self, seconds: float) -> None:
        """A call that had to wait has its turn, or waits no more."""
        if self._metrics is not None:
            self._metrics.observe(LIMIT_WAIT, seconds)

    def wakeups(self, ticket: UUID) -> AbstractContextManager[Wakeups]:
        """The wake-ups of a call that waits."""
        return self._subscribe(TURN_CHANNEL, str(ticket))

    async def _release(self) -> bool:
        batch = dict(self._over)
        try:
            async with asyncio.timeout(RELEASE_SECONDS):
                await self._slots.release(batch)
        except (StoreError, TimeoutError) as error:
            _log.warning(
                "the slots of %d model calls are not released yet: %s", len(batch), error or "no answer in time"
            )
            return False
        for ticket in batch:
            del self._over[ticket]
        return True


class RunRateLimiter:
    """Implements `llm.limits.RateLimiter` for one attempt of a run; without a run, for judges."""

    def __init__(
        self,
        all_of_them: RateLimiters,
        run: UUID | None,
        attempt: int,
        remaining: Callable[[], float],
        lease_seconds: float | None = None,
    ) -> None:
        self._all = all_of_them
        self.run = run
        self.attempt = attempt
        self.remaining = remaining
        self.lease_seconds = lease_seconds

    @contextmanager
    def ticket(self, provider: ProviderPlan, tokens: int) -> Iterator[Permit]:
        """A ticket for one call that is expected to use so many tokens."""
        ticket = _Ticket(self._all, self, provider, tokens)
        try:
            yield ticket
        finally:
            ticket.close()


class _Ticket:
    """One call's place."""

    def __init__(self, all_of_them: RateLimiters, of: RunRateLimiter, provider: ProviderPlan, tokens: int) -> None:
        self._all = all_of_them
        self._of = of
        self._provider = provider
        self._tokens = tokens
        self._id = uuid4()
        self._used: int | None = None
        self._has_place = False

    async def ask(self) -> WaitChunk | None:
        """Takes a place, or one in the line."""
        held = await self._take()
        return None if held is None else WaitChunk(held.limit, held.allowed)

    async def turn(self) -> None:
        """Waits for its turn: until it is woken, until something counts no more, or for a poll interval."""
        clock = asyncio.get_running_loop().time
        began = clock()
        try:
            with self._all.wakeups(self._id) as wakeups:
                while (held := await self._take()) is not None:
                    seconds = None if held.seconds is None else max(held.seconds, SHORTEST_WAIT)
                    try:
                        async with asyncio.timeout(seconds):
                            await wakeups.wait()
                    except TimeoutError:
                        continue
        finally:
            self._all.waited(clock() - began)

    def used(self, tokens: int) -> None:
        """Reports the usage of the call."""
        self._used = tokens

    def close(self) -> None:
        """Gives the place back."""
        if self._has_place:
            self._all.give_back(self._id, self._used)

    async def _take(self) -> Held | None:
        had, self._has_place = self._has_place, True  # whatever becomes of the question, there may be a place
        limited, held = await self._all.take(self._id, self._provider, self._tokens, self._of)
        self._has_place = had or limited
        return held
