"""Tests when objects expire, and which state of them is deleted."""

from datetime import timedelta
from typing import Any

import pytest

from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.controllers.machinery.expiry import expire
from tarsy.kube.client import ApiError
from unit.controllers.builders import NOW, OTHER_UID, UID, alert, investigation, raw

YEAR = 31_536_000


class Api:
    """The Kubernetes API: what is there, and what was deleted."""

    def __init__(self, *there: dict[str, Any], conflict: bool = False) -> None:
        self.there = {(item["kind"], item["metadata"]["name"]): item for item in there}
        self.conflict = conflict
        self.deleted: list[tuple[str, str, str, str | None]] = []

    async def find(self, kind: str, namespace: str, name: str) -> Any:
        return self.there.get((kind, name))

    async def delete(
        self, kind: str, namespace: str, name: str, *, uid: str, resource_version: str | None = None
    ) -> None:
        if self.conflict:
            raise ApiError(409, "Conflict", "the object has changed")
        self.deleted.append((kind, name, uid, resource_version))


async def look(api: Api, obj: Any, seconds: float, cache: Cache | None = None) -> float | None:
    """What happens so many seconds after the end."""
    return await expire(api, cache or Cache(), obj, NOW, NOW + timedelta(seconds=seconds))


@pytest.mark.parametrize(("seconds", "left"), [(99, 2.0), (100, None), (101, None)])
async def test_object_is_deleted_at_and_after_the_end_of_its_time_not_before(seconds: int, left: float | None) -> None:
    api, obj = Api(), alert(spec={"ttlSecondsAfterFinished": 100})
    assert await look(api, obj, seconds) == left
    assert api.deleted == ([] if left else [("Alert", "one", UID, "10")])


@pytest.mark.parametrize("make", [alert, investigation])
async def test_object_that_says_nothing_stays_a_week(make: Any) -> None:
    api, week = Api(), 7 * 86_400
    assert await look(api, make(), week - 1) == 2.0
    assert api.deleted == []
    await look(api, make(), week)
    assert len(api.deleted) == 1


@pytest.mark.parametrize("make", [alert, investigation])
async def test_a_time_to_live_of_none_and_of_the_longest_are_kept_to_the_second(make: Any) -> None:
    api = Api()
    await look(api, make(spec={"ttlSecondsAfterFinished": 0}), 0)
    assert len(api.deleted) == 1
    assert await look(api, make(spec={"ttlSecondsAfterFinished": YEAR}), YEAR - 1) == 2.0
    await look(api, make(spec={"ttlSecondsAfterFinished": YEAR}), YEAR)
    assert len(api.deleted) == 2


async def test_object_that_has_not_finished_has_no_end() -> None:
    api = Api()
    assert await expire(api, Cache(), alert(spec={"ttlSecondsAfterFinished": 0}), None, NOW) is None
    assert api.deleted == []


async def test_object_whose_time_was_raised_a_moment_ago_is_not_deleted_but_looked_at_again() -> None:
    changed = raw("Investigation", "inv", {"ttlSecondsAfterFinished": YEAR}, resourceVersion="11")
    api, cache = Api(changed, conflict=True), Cache()
    cache.put(raw("Investigation", "inv", {"alertRef": {"name": "a"}}))
    with pytest.raises(ApiError, match="changed"):
        await look(api, investigation(spec={"ttlSecondsAfterFinished": 0}), 0, cache)
    version = cache.version(Key("Investigation", "team-a", "inv"))
    assert version is not None and version.resource_version == "11"


@pytest.mark.parametrize("there", [(), (raw("Alert", uid=OTHER_UID),)], ids=["gone", "another of that name"])
async def test_object_that_is_gone_already_is_no_conflict(there: Any) -> None:
    api = Api(*there, conflict=True)
    assert await look(api, alert(spec={"ttlSecondsAfterFinished": 0}), 0) is None
