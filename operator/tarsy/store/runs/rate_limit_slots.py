"""Admits model calls under the rate limits of providers, exactly over all workers.

A call takes its slot in one transaction that locks the row of the provider, so counting and taking are one step. The
window is the last 60 seconds: a call counts from its admission with its expected tokens; tokens beyond those count from
its end, and unused ones are given back then. Slots and places in the queue belong to the attempt of a run: when its
lease expires, they are free. Those of judges, which belong to no run, have a lease of their own.

The limits are those of the newest generation of the provider that a plan or the controller has published. They are not
frozen in the plan, because a change of a limit should apply at once. The queue is first come, first served: a call that
needs more tokens than are free blocks those behind it, and one that needs more than a whole minute has is admitted
alone.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from tarsy.plan.model import CallLimits, ObjectRef, ProviderPlan
from tarsy.record.run import LeaseLost
from tarsy.store.database import call
from tarsy.store.queries import load
from tarsy.store.runs.wakeups import TURN_CHANNEL, NotifyFunction, silent

_NONE = CallLimits()


@dataclass(frozen=True, slots=True)
class Load:
    """Load of a provider without the call that asks.

    `tokens` and `requests` are those of the last minute; after `seconds` some of them no longer count. `behind`: other
    calls have waited longer.
    """

    running: int = 0
    requests: int = 0
    tokens: int = 0
    behind: bool = False
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """A call must wait: name of the limit (its field), its value, and the seconds after which a slot may be free."""

    limit: str
    allowed: int
    seconds: float | None = None


@dataclass(frozen=True, slots=True)
class SlotRequest:
    """Answer to a request for a slot: the call is admitted unless `held`; `limited`: its provider has limits."""

    limited: bool
    held: Held | None = None


def hold_slots(limits: CallLimits, load: Load, tokens: int) -> Held | None:
    """Decides whether a call must wait.

    Args:
        limits: of the provider.
        load: of the provider, without this call.
        tokens: that the call is expected to use.

    Returns:
        The limit that the call waits for; None when it is admitted.
    """
    at_once, requests, most = limits.max_concurrent, limits.requests_per_minute, limits.tokens_per_minute
    if at_once is not None and load.running >= at_once:
        return Held("maxConcurrent", at_once)
    if requests is not None and load.requests >= requests:
        return Held("requestsPerMinute", requests, load.seconds)
    if most is not None and load.tokens and load.tokens + tokens > most:
        return Held("tokensPerMinute", most, load.seconds)
    if not load.behind:
        return None
    if most is not None:  # requests and places are the same for all, so it is tokens that whoever is first waits for
        return Held("tokensPerMinute", most)
    return Held("requestsPerMinute", requests) if requests is not None else Held("maxConcurrent", at_once or 0)


def provider_key(ref: ObjectRef) -> str:
    """Returns the key under which calls of a provider are counted: its uid, so a recreated object starts at zero."""
    return ref.uid or f"{ref.namespace}/{ref.name}"


class ProviderSlots:
    """Takes and releases slots of all providers."""

    def __init__(self, pool: asyncpg.Pool, notify: NotifyFunction = silent) -> None:
        self._pool = pool
        self._notify = notify
        self._sql = load("slots")

    async def publish(self, ref: ObjectRef, limits: CallLimits | None) -> None:
        """Publishes the limits of a provider unless a newer generation has; wakes the next waiting call."""
        next_waiting = self._sql["first_waiting"](provider=provider_key(ref))

        async def write(connection: asyncpg.Connection) -> UUID | None:
            status = await self._publish(connection, ref, limits)
            return await connection.fetchval(*next_waiting) if status.endswith("1") else None

        self._wake(await call(self._pool, f"write the limits of LLMProvider {ref.namespace}/{ref.name}", write))

    async def take(
        self,
        ticket: UUID,
        provider: ProviderPlan,
        tokens: int,
        run: UUID | None,
        attempt: int,
        *,
        remaining: Callable[[], float] | None = None,
        lease_seconds: float | None = None,
    ) -> SlotRequest:
        """Takes a slot for a call, or a place in the queue, which it keeps when it asks again with the same ticket.

        Args:
            ticket: id of the call, for `release`.
            provider: as in the run's plan.
            tokens: that the call is expected to use.
            run: the investigation; None: a judge is called, and `lease_seconds` are given.
            attempt: the one that holds its lease.
            lease_seconds: time after which a call of a judge no longer counts as running.
            remaining: returns the seconds left; see `tarsy.store.database.call`.

        Raises:
            LeaseLost: another attempt owns the run.
            StoreError: Postgres is unavailable or refused.
        """
        key = provider_key(provider.ref)
        mine = {"ticket": ticket, "provider": key, "investigation": run, "attempt": attempt}
        lease = {"lease_seconds": lease_seconds}

        async def ask(connection: asyncpg.Connection) -> tuple[SlotRequest, UUID | None]:
            async with connection.transaction():
                limits = await self._limits(connection, key, provider)
                if limits == _NONE:
                    return SlotRequest(limited=False), None
                row = await connection.fetchrow(*self._sql["load"](**mine, **lease))
                if not row["held"]:
                    raise LeaseLost(f"Attempt {attempt} of investigation {run} does not hold the lease.")
                found = Load(row["running"], row["requests"], row["tokens"], row["behind"], row["seconds"])
                held = hold_slots(limits, found, tokens)
                admit_or_wait = self._sql["admit" if held is None else "wait"]
                await connection.execute(*admit_or_wait(**mine, **lease, tokens=tokens))
                return SlotRequest(limited=True, held=held), row["next"] if held is None else None

        turn, following = await call(self._pool, f"request a slot of {provider.ref.name}", ask, remaining=remaining)
        self._wake(following)  # there may be room for more than one
        return turn

    async def release(self, used: Mapping[UUID, int | None]) -> None:
        """Releases the slots and places of these tickets.

        Args:
            used: tokens that each call used; None: unknown, the expected tokens count.
        """

        async def write(connection: asyncpg.Connection) -> list[UUID]:
            rows = await connection.fetch(*self._sql["release"](tickets=list(used), used=list(used.values())))
            return [row["id"] for row in rows]

        for following in await call(self._pool, "release slots of model calls", write):
            self._wake(following)

    async def _limits(self, connection: asyncpg.Connection, key: str, provider: ProviderPlan) -> CallLimits:
        """Returns the limits in force and locks their row; without a row there are no limits."""
        row = await connection.fetchrow(*self._sql["limits"](provider=key))
        if (row is None and provider.limits) or (row is not None and row["generation"] < provider.ref.generation):
            await self._publish(connection, provider.ref, provider.limits)
            row = await connection.fetchrow(*self._sql["limits"](provider=key))
        if row is None:
            return _NONE
        return CallLimits(
            max_concurrent=row["max_concurrent"],
            requests_per_minute=row["requests_per_minute"],
            tokens_per_minute=row["tokens_per_minute"],
        )

    async def _publish(self, connection: asyncpg.Connection, ref: ObjectRef, limits: CallLimits | None) -> str:
        new = limits or _NONE
        status: str = await connection.execute(
            *self._sql["publish"](
                provider=provider_key(ref),
                generation=ref.generation,
                max_concurrent=new.max_concurrent,
                requests_per_minute=new.requests_per_minute,
                tokens_per_minute=new.tokens_per_minute,
            )
        )
        return status

    def _wake(self, ticket: UUID | None) -> None:
        if ticket is not None:
            self._notify(TURN_CHANNEL, str(ticket))
