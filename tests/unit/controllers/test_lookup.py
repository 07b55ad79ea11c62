"""Tests what is found of an object that the watch has told of, or not yet."""

from typing import Any

import pytest

from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.controllers.machinery.lookup import look_up
from tarsy.resources.v1alpha1 import Alert
from unit.controllers.builders import OTHER_UID, UID, raw

SPEC = {"alertType": "PodCrash", "data": "x"}
OLD, NEW = raw("Alert", "a", SPEC), raw("Alert", "a", SPEC, uid=OTHER_UID, resourceVersion="11")
BROKEN = raw("Alert", "a", {"alertType": 7})


class Api:
    """Answers with one object, and counts how often."""

    def __init__(self, there: dict[str, Any] | None) -> None:
        self.there = there
        self.asked = 0

    async def find(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        assert (kind, namespace, name) == ("Alert", "team-a", "a")
        self.asked += 1
        return self.there


@pytest.mark.parametrize(
    ("cached", "there", "uid", "found", "asked"),
    [
        (OLD, None, None, UID, 0),
        (OLD, None, UID, UID, 0),
        (OLD, NEW, OTHER_UID, OTHER_UID, 1),
        (OLD, None, OTHER_UID, None, 1),
        (NEW, NEW, UID, None, 1),
        (None, OLD, None, UID, 1),
        (None, OLD, UID, UID, 1),
        (None, None, None, None, 1),
        (None, BROKEN, None, None, 1),
    ],
    ids=[
        "cached",
        "cached, uid",
        "made anew",
        "gone",
        "another now",
        "not told of",
        "not told of, uid",
        "no",
        "broken",
    ],
)
async def test_object_is_asked_for_only_where_the_cache_does_not_have_it(
    cached: Any, there: Any, uid: str | None, found: str | None, asked: int
) -> None:
    cache, api = Cache(), Api(there)
    if cached is not None:
        cache.put(cached)
    client: Any = api
    obj = await look_up(Alert, "team-a", "a", cache, client, uid=uid)
    assert (obj.metadata.uid if obj is not None else None, api.asked) == (found, asked)
    if found is not None:
        await look_up(Alert, "team-a", "a", cache, client, uid=uid)
        assert api.asked == asked


async def test_what_was_told_to_be_deleted_is_not_brought_back_by_an_answer_that_is_older() -> None:
    cache, client = Cache(), Api(OLD)
    api: Any = client
    cache.drop(Key("Alert", "team-a", "a"), UID)
    assert await look_up(Alert, "team-a", "a", cache, api) is None
