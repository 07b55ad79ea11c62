"""Who is the active controller, on a real API server; seconds are made short."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.lease import LeaderElection

pytestmark = pytest.mark.kubernetes
SECONDS = 3.0


class Line:
    """A client whose line to the API can be cut (an error at once) or blocked (no answer at all)."""

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self.cut = False
        self.blocked = False

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)

        async def call(*args: Any, **kwargs: Any) -> Any:
            if self.blocked:
                await asyncio.Event().wait()
            if self.cut:
                raise ApiError(0, "Unreachable", "cut")
            return await method(*args, **kwargs)

        return call


class Candidate:
    """One replica in the race."""

    def __init__(self, client: KubeClient, namespace: str, name: str) -> None:
        self.line = Line(client)
        self.election = LeaderElection(
            self.line,  # type: ignore[arg-type]
            namespace,
            "tarsy-controller",
            name,
            seconds=SECONDS,
            renew_seconds=0.3,
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Candidate"]:
        task = asyncio.create_task(self.election.run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.wait([task], timeout=5)

    @property
    def active(self) -> bool:
        assert self.election.active.is_set() != self.election.passive.is_set()
        return self.election.active.is_set()

    async def wins(self) -> float:
        """Waits until it is active; the seconds that took."""
        began = time.monotonic()
        async with asyncio.timeout(SECONDS * 4):
            await self.election.active.wait()
        return time.monotonic() - began


async def spec(kube: KubeClient, namespace: str) -> dict[str, Any]:
    found: dict[str, Any] = (await kube.get("Lease", namespace, "tarsy-controller"))["spec"]
    return found


async def test_only_one_of_two_is_active_and_it_renews(kube: KubeClient, namespace: str) -> None:
    async with Candidate(kube, namespace, "a").running() as a:
        await a.wins()
        first = await spec(kube, namespace)
        async with Candidate(kube, namespace, "b").running() as b:
            await asyncio.sleep(SECONDS + 1)
            assert a.active and not b.active
        last = await spec(kube, namespace)
        assert last["renewTime"] > first["renewTime"]
        assert last["acquireTime"] == first["acquireTime"]
        assert (last["holderIdentity"], last["leaseTransitions"]) == ("a", 0)


async def test_role_that_is_given_back_is_taken_at_once(kube: KubeClient, namespace: str) -> None:
    async with contextlib.AsyncExitStack() as of_a:
        a = await of_a.enter_async_context(Candidate(kube, namespace, "a").running())
        await a.wins()
        async with Candidate(kube, namespace, "b").running() as b:
            await asyncio.sleep(0.5)
            await of_a.aclose()
            assert not a.active
            assert await b.wins() < SECONDS / 2
            assert (await spec(kube, namespace))["leaseTransitions"] == 1


@pytest.mark.parametrize("how", ["cut", "blocked"])
async def test_role_is_taken_over_after_the_lease_and_never_held_by_two(
    kube: KubeClient, namespace: str, how: str
) -> None:
    async with Candidate(kube, namespace, "a").running() as a, Candidate(kube, namespace, "b").running() as b:
        await asyncio.wait(
            [asyncio.create_task(a.wins()), asyncio.create_task(b.wins())], return_when=asyncio.FIRST_COMPLETED
        )
        old, new = (a, b) if a.active else (b, a)
        setattr(old.line, how, True)
        began = time.monotonic()
        async with asyncio.timeout(SECONDS * 3):
            await old.election.passive.wait()
            dropped = time.monotonic() - began
            assert not new.active
            await new.election.active.wait()
        assert dropped < SECONDS
        assert time.monotonic() - began >= SECONDS * 0.9


async def test_role_is_kept_through_a_short_outage(kube: KubeClient, namespace: str) -> None:
    async with Candidate(kube, namespace, "a").running() as a:
        await a.wins()
        a.line.cut = True
        await asyncio.sleep(1)
        assert a.active
        a.line.cut = False
        await asyncio.sleep(SECONDS)
        assert a.active


async def test_candidate_of_the_same_name_takes_its_own_role_up_again(kube: KubeClient, namespace: str) -> None:
    """As after a crash of a pod whose name stays."""
    async with Candidate(kube, namespace, "a").running() as a:
        await a.wins()
        a.line.cut = True
    async with Candidate(kube, namespace, "a").running() as again:
        assert await again.wins() < SECONDS / 2
