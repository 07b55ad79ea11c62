"""Tests the difference of two statuses, and when it is written."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.controllers.machinery.cache import Cache
from tarsy.controllers.machinery.status import merge_patch, write_status
from tarsy.kube.client import ApiError
from unit.controllers.builders import OTHER_UID, UID, investigation, raw

# null is not a value in JSON merge patch: statuses never have one.
leaves = st.booleans() | st.integers(-3, 3) | st.text(max_size=3) | st.lists(st.integers(0, 2), max_size=3)
documents = st.recursive(
    st.dictionaries(st.sampled_from("abcd"), leaves, max_size=4),
    lambda inner: st.dictionaries(st.sampled_from("abcd"), leaves | inner, max_size=4),
    max_leaves=12,
)


def apply(target: Any, patch: Any) -> Any:
    """RFC 7396, as it is written there."""
    if not isinstance(patch, Mapping):
        return patch
    result = dict(target) if isinstance(target, Mapping) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = apply(result.get(name), value)
    return result


@given(documents, documents)
def test_patch_applied_to_the_old_gives_the_new(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert apply(old, merge_patch(old, new)) == new


@given(documents)
def test_patch_of_equals_is_empty(document: dict[str, Any]) -> None:
    assert merge_patch(document, document) == {}


@given(documents, documents)
def test_patch_is_empty_only_when_both_are_equal(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert bool(merge_patch(old, new)) == (old != new)


class Api:
    """Answers a status patch as told, and notes what was sent."""

    def __init__(self, there: dict[str, Any] | None = None, refusal: str | None = None) -> None:
        self.there = there
        self.refusal = refusal
        self.sent: list[dict[str, Any]] = []

    async def patch(self, kind: str, namespace: str, name: str, body: dict[str, Any], *, subresource: str) -> Any:
        self.sent.append(body)
        if self.refusal:
            raise ApiError(409, self.refusal, "refused")
        return raw(kind, name, {"alertRef": {"name": "a"}}, body["status"], resourceVersion="11")

    async def find(self, kind: str, namespace: str, name: str) -> Any:
        return self.there


async def test_status_that_is_so_already_is_not_written() -> None:
    api, obj = Api(), investigation({"phase": "Running"})
    assert not await write_status(api, Cache(), obj, obj.status)
    assert api.sent == []


async def test_status_is_written_only_over_the_version_it_was_computed_from() -> None:
    api, cache, obj = Api(), Cache(), investigation()
    assert await write_status(api, cache, obj, obj.status.model_copy(update={"phase": "Running"}))
    assert api.sent == [{"metadata": {"uid": UID, "resourceVersion": "10"}, "status": {"phase": "Running"}}]
    known = cache.get(type(obj), "team-a", "inv")
    assert known is not None and known.status.phase == "Running"  # the next difference is one to this


async def test_status_of_an_object_that_changed_is_refused_and_the_cache_gets_the_new_object() -> None:
    newer = raw("Investigation", "inv", {"alertRef": {"name": "a"}}, {"phase": "Succeeded"}, resourceVersion="12")
    cache, obj = Cache(), investigation()
    with pytest.raises(ApiError, match="refused"):
        await write_status(Api(newer, "Conflict"), cache, obj, obj.status.model_copy(update={"phase": "Running"}))
    known = cache.get(type(obj), "team-a", "inv")
    assert known is not None and known.status.phase == "Succeeded"


@pytest.mark.parametrize("there", [None, raw("Investigation", "inv", {}, uid=OTHER_UID)])
async def test_status_of_an_object_that_is_gone_or_another_is_nobodys_business(there: Any) -> None:
    obj = investigation()
    status = obj.status.model_copy(update={"phase": "Running"})
    assert not await write_status(Api(there, "Conflict"), Cache(), obj, status)
    assert not await write_status(Api(there, "NotFound"), Cache(), obj, status)
