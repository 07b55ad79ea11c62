"""Tests the limits of reads of evidence: at once, of one caller, in a minute; and slots of cancelled requests."""

import asyncio
import threading
from collections.abc import Mapping
from typing import Any

import pytest

from tarsy.http.errors import TooManyRequests
from tarsy.http.evidence import computing
from tarsy.http.evidence.limits import EvidenceSlots
from tarsy.http.routes import evidence
from tarsy.http.views.evidence import ChangesView
from tarsy.kube.client import ApiError
from tarsy.kube.response_room import ResponseRoom, ResponseTooLarge
from unit.http.api import FakeKube, client


class Clock:
    """A clock that a test moves."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_caller_has_at_most_so_many_reads_at_once() -> None:
    slots = EvidenceSlots(9, 2)
    first, _ = slots.take("ann"), slots.take("ann")
    with pytest.raises(TooManyRequests, match="you already have 2 reads of evidence in progress") as refused:
        slots.take("ann")
    assert refused.value.headers == {"Retry-After": "2"}
    slots.take("bob")
    first()
    first()  # gives back once
    slots.take("ann")
    with pytest.raises(TooManyRequests):
        slots.take("ann")


def test_all_callers_together_have_at_most_so_many_reads_at_once() -> None:
    slots = EvidenceSlots(3, 2)
    give_back = slots.take("ann")
    slots.take("bob")
    slots.take("cid")
    with pytest.raises(TooManyRequests, match="too many reads of evidence are in progress"):
        slots.take("dan")
    give_back()
    slots.take("dan")


def test_a_caller_reads_at_most_so_often_in_a_minute() -> None:
    clock = Clock()
    slots = EvidenceSlots(per_minute=3, clock=clock)
    for _ in range(3):
        slots.take("ann")()
        clock.now += 10
    with pytest.raises(TooManyRequests, match="3 times in the last minute") as refused:
        slots.take("ann")
    assert refused.value.headers == {"Retry-After": "31"}
    slots.take("bob")()
    clock.now += 29.9
    with pytest.raises(TooManyRequests):
        slots.take("ann")
    clock.now += 0.1
    slots.take("ann")()


class Lists(FakeKube):
    """A Kubernetes API with pods."""

    def __init__(self, pods: int = 0) -> None:
        super().__init__({"ann-s": {"username": "ann"}})
        self.pods = pods
        self.error: Exception | None = None
        self.hanging = False

    async def request(
        self, method: str, target: str, *, query: Mapping[str, str], accept: str, room: ResponseRoom
    ) -> dict[str, Any]:
        if self.error is not None:
            raise self.error
        if self.hanging:
            await asyncio.Event().wait()
        count = self.pods if target.endswith("/pods") else 0
        return {"items": [{"metadata": {"name": f"p-{n}", "namespace": "shop"}} for n in range(count)]}


BEARER = {"Authorization": "Bearer ann-s"}
CHANGES = "/api/v1/namespaces/shop/changes"


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (ApiError(0, "Unreachable", "10.0.0.1 refused"), 503, "the Kubernetes API is unavailable"),
        (ApiError(401, "Unauthorized", "Unauthorized"), 403, "does not accept your token"),
    ],
)
async def test_an_api_that_cannot_be_read_is_a_sentence(error: ApiError, status: int, said: str) -> None:
    kube = Lists()
    kube.error = error
    async with client(kube, *evidence.ROUTES) as http:
        answer = await http.get(CHANGES, headers=BEARER)
        body = await answer.text()
    assert (answer.status, said in body, "10.0.0.1" in body) == (status, True, False)


async def test_an_api_that_hangs_leaves_gaps_and_no_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computing, "READ_SECONDS", 0.05)
    kube = Lists()
    kube.hanging = True
    async with client(kube, *evidence.ROUTES) as http:
        answer = await http.get(CHANGES, headers=BEARER)
        body = await answer.json()
    assert answer.status == 200
    assert body["notRead"]["Pod"] == "the list was not complete after 0.05 s"


async def test_objects_beyond_the_limit_are_a_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computing, "MOST_OBJECTS", 10)
    for pods, told in ((9, None), (10, None), (11, "only the first 10 were read")):
        async with client(Lists(pods), *evidence.ROUTES) as http:
            body = await (await http.get(CHANGES, headers=BEARER)).json()
        assert body["notRead"].get("Pod") == told, pods


async def test_a_cancelled_request_holds_its_slot_until_its_thread_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, go_on = threading.Event(), threading.Event()

    def slow(*_: Any) -> ChangesView:
        begun.set()
        assert go_on.wait(60)
        raise RuntimeError("nobody waits for this")

    monkeypatch.setattr(computing, "_changes", slow)
    slots = EvidenceSlots(1)
    async with client(Lists(computing._ON_LOOP + 1), *evidence.ROUTES, seconds=0.2, evidence=slots) as http:
        late = await http.get(CHANGES, headers=BEARER)
        assert late.status == 504 and begun.is_set()
        refused = await http.get(CHANGES, headers=BEARER)
        assert (refused.status, refused.headers["Retry-After"]) == (429, "2")
        go_on.set()
        async with asyncio.timeout(60):
            while (await http.get(CHANGES, headers=BEARER)).status == 429:
                await asyncio.to_thread(begun.wait, 0.01)


async def test_lists_that_are_too_large_together_are_a_gap() -> None:
    kube = Lists()
    kube.error = ResponseTooLarge()
    async with client(kube, *evidence.ROUTES) as http:
        body = await (await http.get(CHANGES, headers=BEARER)).json()
    assert body["notRead"]["Pod"] == "the objects of this read are larger than 64 MiB together"
