"""Tests access reviews and the lifetime of their results."""

import asyncio
from typing import Any

import pytest

from tarsy.http.authentication.access import AccessReviews
from tarsy.http.authentication.identity import Caller, Permission
from tarsy.http.errors import Forbidden, NotFound, Unavailable
from tarsy.http.namespaces import NamespaceReader
from tarsy.http.review_cache import ReviewCache
from tarsy.kube.client import ApiError
from unit.http.api import FakeKube

TRACE = Permission("get", "investigations", "trace")
ANN = Caller("ann", "1", ("a", "b"), {"scopes": ("x",)})


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def access(kube: FakeKube, seconds: float = 10.0) -> AccessReviews:
    return AccessReviews(kube, seconds=seconds)  # type: ignore[arg-type]


async def test_the_question_names_the_person_with_groups_uid_and_extra() -> None:
    kube = FakeKube({})
    await access(kube).demand(ANN, TRACE, "shop", "i1")
    (review,) = kube.reviews
    assert review["spec"] == {
        "user": "ann",
        "uid": "1",
        "groups": ["a", "b"],
        "extra": {"scopes": ["x"]},
        "resourceAttributes": {
            "verb": "get",
            "group": "record.tarsy.dev",
            "resource": "investigations",
            "subresource": "trace",
            "namespace": "shop",
            "name": "i1",
        },
    }


@pytest.mark.parametrize(
    "other",
    [
        Caller("bob", "1", ("a", "b"), {"scopes": ("x",)}),
        Caller("ann", "2", ("a", "b"), {"scopes": ("x",)}),
        Caller("ann", "1", ("a",), {"scopes": ("x",)}),
        Caller("ann", "1", ("a", "b"), {"scopes": ("y",)}),
        Caller("ann", "1", ("a", "b"), {}),
    ],
    ids=["user", "uid", "groups", "extra", "no extra"],
)
async def test_an_answer_is_for_one_person_only(other: Caller) -> None:
    kube = FakeKube({}, lambda spec: spec == kube.reviews[0]["spec"])
    gate = access(kube)
    assert await gate.allowed(ANN, TRACE, "shop")
    assert not await gate.allowed(other, TRACE, "shop")


@pytest.mark.parametrize(
    ("permission", "namespace", "name"),
    [
        (Permission("get", "investigations", "timeline"), "shop", ""),
        (Permission("list", "investigations", "trace"), "shop", ""),
        (Permission("get", "investigations", "trace", group="tarsy.dev"), "shop", ""),
        (TRACE, "other", ""),
        (TRACE, "", ""),
        (TRACE, "shop", "i1"),
    ],
)
async def test_an_answer_is_for_one_thing_only(permission: Permission, namespace: str, name: str) -> None:
    kube = FakeKube({}, lambda spec: spec == kube.reviews[0]["spec"])
    gate = access(kube)
    assert await gate.allowed(ANN, TRACE, "shop")
    assert not await gate.allowed(ANN, permission, namespace, name)


async def test_a_yes_and_a_no_are_remembered_and_the_order_of_groups_does_not_matter() -> None:
    for allowed in (True, False):
        kube = FakeKube({}, lambda _, answer=allowed: answer)  # type: ignore[misc]
        gate = access(kube)
        answers = await asyncio.gather(*(gate.allowed(ANN, TRACE, "shop") for _ in range(10)))
        answers.append(await gate.allowed(Caller("ann", "1", ("b", "a"), {"scopes": ("x",)}), TRACE, "shop"))
        assert set(answers) == {allowed}
        assert kube.asked["SubjectAccessReview"] == 1


async def test_a_right_that_was_taken_away_is_gone_when_its_answer_lapses() -> None:
    kube = FakeKube({})
    gate = access(kube, seconds=0.0)
    assert await gate.allowed(ANN, TRACE, "shop")
    kube.allowed = lambda _: False
    with pytest.raises(
        Forbidden, match=r"ann may not get investigations/trace of record\.tarsy\.dev in the namespace shop"
    ):
        await gate.demand(ANN, TRACE, "shop")


async def test_when_nobody_can_say_it_is_never_a_yes_and_not_remembered() -> None:
    kube = FakeKube({})
    kube.away = True
    gate = access(kube)
    with pytest.raises(Unavailable):
        await gate.allowed(ANN, TRACE, "shop")
    kube.away = False
    assert await gate.allowed(ANN, TRACE, "shop")


@pytest.mark.parametrize("status", [{}, {"allowed": False}, {"allowed": "true"}, {"allowed": True, "denied": True}])
async def test_only_a_plain_yes_is_a_yes(status: dict[str, Any]) -> None:
    class Odd(FakeKube):
        async def create(self, obj: dict[str, Any]) -> dict[str, Any]:
            return {"status": status}

    assert not await access(Odd({})).allowed(ANN, TRACE, "shop")


async def test_an_authorizer_that_failed_is_no_refusal() -> None:
    class Failing(FakeKube):
        async def create(self, obj: dict[str, Any]) -> dict[str, Any]:
            return {"status": {"allowed": False, "evaluationError": "webhook timed out"}}

    with pytest.raises(Unavailable):
        await access(Failing({})).allowed(ANN, TRACE, "shop")


async def test_a_namespace_has_the_uid_of_now() -> None:
    kube = FakeKube({})
    spaces = NamespaceReader(kube)  # type: ignore[arg-type]
    assert [await spaces.uid("shop") for _ in range(3)] == ["uid-of-shop"] * 3
    assert kube.asked["Namespace"] == 1
    for _ in range(2):  # that one is not there is asked anew: it may come any moment
        with pytest.raises(NotFound, match="there is no namespace gone"):
            await spaces.uid("gone")
    assert kube.asked["Namespace"] == 3
    kube.away = True
    with pytest.raises(Unavailable):
        await spaces.uid("other")


async def test_an_answer_is_as_old_as_its_question() -> None:
    clock, asked = Clock(), 0
    known: ReviewCache[str, int] = ReviewCache(lambda _: 10.0, size=5, clock=clock)

    async def ask() -> int:
        nonlocal asked
        asked += 1
        clock.seconds += 4.0
        return asked

    assert await known.get("a", ask) == 1
    clock.seconds = 9.9
    assert await known.get("a", ask) == 1
    clock.seconds = 10.0
    assert await known.get("a", ask) == 2


async def test_only_so_many_answers_are_kept_and_the_oldest_go_first() -> None:
    known: ReviewCache[int, int] = ReviewCache(lambda _: 10.0, size=3)
    asked: list[int] = []

    async def ask(number: int) -> int:
        asked.append(number)
        return number

    for number in (1, 2, 3, 4, 2, 3, 4, 1):
        assert await known.get(number, lambda number=number: ask(number)) == number  # type: ignore[misc]
    assert len(known) == 3
    assert asked == [1, 2, 3, 4, 1]


async def test_who_leaves_does_not_take_the_answer_from_those_who_wait_with_them() -> None:
    gate, known = asyncio.Event(), ReviewCache[str, int](lambda _: 10.0, size=5)

    async def ask() -> int:
        await gate.wait()
        return 1

    leaving, staying = (asyncio.create_task(known.get("a", ask)) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.wait([leaving])
    gate.set()
    assert await staying == 1


async def test_an_error_is_told_to_all_who_wait_and_not_remembered() -> None:
    known: ReviewCache[str, int] = ReviewCache(lambda _: 10.0, size=5)

    async def fail() -> int:
        await asyncio.sleep(0)
        raise ApiError(0, "Unreachable", "away")

    async def answer() -> int:
        return 1

    outcomes = await asyncio.gather(*(known.get("a", fail) for _ in range(3)), return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [ApiError] * 3
    assert await known.get("a", answer) == 1
