"""Tests the comparison of watched and served kinds."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tarsy.controllers.machinery import watch_coverage
from tarsy.controllers.machinery.watch_coverage import WatchCoverage
from tarsy.kube.client import ApiError

FORBIDDEN = ApiError(403, "Forbidden", "no")


class Discovery:
    """Serves kinds by their plurals, and refuses to list some, by path."""

    def __init__(self) -> None:
        self.plurals: set[str] | None = None
        self.refused: set[str] = set()
        self.away = False
        self.listed: list[str] = []
        self.looks = asyncio.Semaphore(0)

    async def read(self, target: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        if self.away:
            raise ApiError(0, "Unreachable", "away")
        if query is not None:
            self.listed.append(target)
            if any(target.endswith(f"/{plural}") for plural in self.refused):
                raise FORBIDDEN
            return {}
        self.looks.release()
        if self.plurals is None:
            raise ApiError(404, "NotFound", "no such group")
        return {"resources": [{"name": name} for name in self.plurals] + [{"name": "alerts/status"}]}


@pytest.fixture(autouse=True)
def _fast(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISCOVERY_SECONDS", "SETTLE_SECONDS"):
        monkeypatch.setattr(watch_coverage, name, 0.001)
    monkeypatch.setattr(watch_coverage, "FIRST_PAUSES", ())


async def looked(discovery: Discovery, times: int = 3) -> None:
    """Waits for so many more looks."""
    discovery.looks = asyncio.Semaphore(0)
    async with asyncio.timeout(20):
        for _ in range(times):
            await discovery.looks.acquire()


async def started(discovery: Discovery, *namespaces: str) -> tuple[WatchCoverage, asyncio.Task[None]]:
    coverage = WatchCoverage(discovery, namespaces)  # type: ignore[arg-type]
    await coverage.start()
    return coverage, asyncio.create_task(coverage.until_outdated())


async def ended(task: asyncio.Task[None]) -> None:
    async with asyncio.timeout(20):
        await task


async def stopped(task: asyncio.Task[None]) -> None:
    assert not task.done()
    task.cancel()
    await asyncio.wait([task])


async def test_a_watch_that_was_started_with_all_kinds_goes_on() -> None:
    discovery = Discovery()
    discovery.plurals = {"alerts", "chains"}
    coverage, task = await started(discovery)
    await looked(discovery)
    assert coverage.why_not() is None
    assert len(discovery.listed) == 2, "each kind is listed once"
    await stopped(task)


async def test_a_kind_that_comes_later_ends_the_watch_once_no_more_come() -> None:
    discovery = Discovery()
    coverage, task = await started(discovery)
    await looked(discovery)
    assert coverage.why_not() is None
    discovery.plurals = {"alerts"}
    await ended(task)
    assert coverage.why_not() == "the API server serves alerts, which the operator does not watch yet"


async def test_a_kind_that_went_and_came_back_ends_the_watch() -> None:
    discovery = Discovery()
    discovery.plurals = {"alerts", "chains"}
    _, task = await started(discovery)
    discovery.plurals = {"chains"}
    await looked(discovery)
    discovery.plurals = {"alerts", "chains"}
    await ended(task)


async def test_a_kind_of_another_version_of_this_project_is_not_missed() -> None:
    discovery = Discovery()
    discovery.plurals = {"alerts"}
    coverage, task = await started(discovery)
    discovery.plurals = {"alerts", "novelties"}
    await looked(discovery)
    assert coverage.why_not() is None
    await stopped(task)


async def test_a_missing_right_is_told_by_namespace_until_it_is_given() -> None:
    discovery = Discovery()
    discovery.plurals, discovery.refused = {"alerts"}, {"alerts"}
    coverage, task = await started(discovery, "shop", "pay")
    await looked(discovery)
    assert coverage.why_not() == "alerts are not watched: the operator is not allowed to list them in namespace shop"
    discovery.refused = set()
    await looked(discovery)
    assert coverage.why_not() is None
    await stopped(task)


async def test_an_api_server_that_is_away_changes_nothing() -> None:
    discovery = Discovery()
    discovery.plurals = {"alerts"}
    coverage, task = await started(discovery)
    await looked(discovery)
    discovery.away = True
    await asyncio.sleep(0.02)
    assert coverage.why_not() is None
    await stopped(task)
