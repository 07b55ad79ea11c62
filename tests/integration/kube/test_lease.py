"""Tests leader election on a real API server, with short leases where one must expire."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from e2e.waiting import until
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.lease import LeaderElection

SHORT, LONG = 5.0, 60.0
"""A lease that ends by itself soon, and one that lasts though this process stands still for a while."""


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

    def __init__(self, client: KubeClient, namespace: str, name: str, seconds: float = LONG) -> None:
        self.line = Line(client)
        self.election = LeaderElection(
            self.line,  # type: ignore[arg-type]
            namespace,
            "tarsy-controller",
            name,
            seconds=seconds,
            renew_seconds=0.3,
        )

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["Candidate"]:
        task = asyncio.create_task(self.election.run())
        try:
            yield self
        finally:
            task.cancel()
            await asyncio.wait([task], timeout=LONG)

    @property
    def active(self) -> bool:
        assert self.election.active.is_set() != self.election.passive.is_set()
        return self.election.active.is_set()

    async def wins(self) -> None:
        """Waits until it is active, for less than a long lease lasts."""
        async with asyncio.timeout(LONG / 2):
            await self.election.active.wait()


async def spec(kube: KubeClient, namespace: str) -> dict[str, Any]:
    found: dict[str, Any] = (await kube.get("Lease", namespace, "tarsy-controller"))["spec"]
    return found


async def renewed(kube: KubeClient, namespace: str, times: int = 1) -> None:
    """Waits until the lease was renewed so many times from now."""
    for _ in range(times):
        before = (await spec(kube, namespace))["renewTime"]

        async def again(before: str = before) -> bool:
            return bool((await spec(kube, namespace))["renewTime"] > before)

        await until("the lease is renewed", again)


async def test_only_one_of_two_is_active_and_it_renews(kube: KubeClient, namespace: str) -> None:
    async with Candidate(kube, namespace, "a").running() as a:
        await a.wins()
        first = await spec(kube, namespace)
        async with Candidate(kube, namespace, "b").running() as b:
            await renewed(kube, namespace, times=5)
            assert a.active and not b.active
        last = await spec(kube, namespace)
        assert last["renewTime"] > first["renewTime"]
        assert last["acquireTime"] == first["acquireTime"]
        assert (last["holderIdentity"], last["leaseTransitions"]) == ("a", 0)


async def test_role_that_is_given_back_is_taken_at_once(
    kube: KubeClient, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tarsy.kube.lease.GIVE_BACK_SECONDS", LONG)
    async with contextlib.AsyncExitStack() as of_a:
        a = await of_a.enter_async_context(Candidate(kube, namespace, "a").running())
        await a.wins()
        async with Candidate(kube, namespace, "b").running() as b:
            await renewed(kube, namespace)
            await of_a.aclose()
            assert not a.active
            await b.wins()
            assert (await spec(kube, namespace))["leaseTransitions"] == 1


@pytest.mark.parametrize("how", ["cut", "blocked"])
async def test_role_is_taken_over_after_the_lease_and_never_held_by_two(
    kube: KubeClient, namespace: str, how: str
) -> None:
    async with Candidate(kube, namespace, "a", SHORT).running() as old:
        await old.wins()
        async with Candidate(kube, namespace, "b", SHORT).running() as new:
            setattr(old.line, how, True)
            began = time.monotonic()
            async with asyncio.timeout(60):
                await old.election.passive.wait()
                assert not new.active
                await new.election.active.wait()
            assert time.monotonic() - began >= SHORT * 0.8


async def test_role_is_kept_through_a_short_outage(kube: KubeClient, namespace: str) -> None:
    async with Candidate(kube, namespace, "a").running() as a:
        await a.wins()
        a.line.cut = True
        await asyncio.sleep(1)
        assert a.active
        a.line.cut = False
        await renewed(kube, namespace)
        assert a.active


async def test_candidate_of_the_same_name_takes_its_own_role_up_again(kube: KubeClient, namespace: str) -> None:
    """As after a crash of a pod whose name stays."""
    async with Candidate(kube, namespace, "a").running() as a:
        await a.wins()
        a.line.cut = True
    async with Candidate(kube, namespace, "a").running() as again:
        await again.wins()
