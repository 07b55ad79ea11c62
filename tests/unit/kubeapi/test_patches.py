"""Tests patches and managed fields, without a server."""

from typing import Any

import pytest

from embedded_kubeapi.errors import ApiError
from embedded_kubeapi.patch.apply import apply
from embedded_kubeapi.patch.fields import fields_of, from_fields_v1, to_fields_v1
from embedded_kubeapi.patch.jsonpatch import PatchError, json_patch
from embedded_kubeapi.patch.managed import Writer, after_update, write_managers
from embedded_kubeapi.patch.merge import merge_patch
from embedded_kubeapi.patch.strategic import strategic_merge
from embedded_kubeapi.shape import SchemaShape, builtin_shape

PARTS = {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
         "items": {"type": "object", "properties": {"name": {"type": "string"}, "n": {"type": "integer"}}}}  # fmt: skip
SPEC = {"type": "object", "properties": {"parts": PARTS, "tags": {"type": "array", "x-kubernetes-list-type": "set"},
                                         "plain": {"type": "array"}, "size": {"type": "integer"}}}  # fmt: skip
SHAPE = SchemaShape({"type": "object", "properties": {"spec": SPEC}}, root=True)
ALICE, BOB = Writer("alice", "Apply", "x/v1"), Writer("bob", "Apply", "x/v1")


def test_merge_patch_removes_with_null_and_replaces_lists() -> None:
    assert merge_patch({"a": {"b": 1, "c": 2}, "l": [1]}, {"a": {"b": None}, "l": [2]}) == {"a": {"c": 2}, "l": [2]}


@pytest.mark.parametrize(
    ("operations", "result"),
    [
        ([{"op": "add", "path": "/a/x", "value": 1}], {"a": {"l": [1, 2], "x": 1}}),
        ([{"op": "add", "path": "/a/l/-", "value": 3}], {"a": {"l": [1, 2, 3]}}),
        ([{"op": "add", "path": "/a/l/0", "value": 0}], {"a": {"l": [0, 1, 2]}}),
        ([{"op": "remove", "path": "/a/l/1"}], {"a": {"l": [1]}}),
        ([{"op": "move", "from": "/a/l", "path": "/k~1x"}], {"a": {}, "k/x": [1, 2]}),
        ([{"op": "test", "path": "/a/l/0", "value": 1}, {"op": "replace", "path": "/a", "value": 5}], {"a": 5}),
        ([{"op": "replace", "path": "/b", "value": 1}], {"a": {"l": [1, 2]}, "b": 1}),
        ([{"op": "replace", "path": "/a/l/1", "value": 5}], {"a": {"l": [1, 5]}}),
    ],
)
def test_json_patch_follows_its_operations(operations: list[Any], result: Any) -> None:
    before = {"a": {"l": [1, 2]}}
    assert json_patch(before, operations) == result
    assert before == {"a": {"l": [1, 2]}}


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "remove", "path": "/b"}],
        [{"op": "replace", "path": "/b/c", "value": 1}],
        [{"op": "replace", "path": "/a/l/2", "value": 1}],
        [{"op": "test", "path": "/a", "value": 1}],
        [{"op": "add", "path": "/x/y", "value": 1}],
        [{"op": "dance", "path": "/a"}],
        [{"path": "a"}],
    ],
)
def test_json_patch_that_does_not_fit_is_refused(operations: list[Any]) -> None:
    with pytest.raises(PatchError):
        json_patch({"a": {"l": [1, 2]}}, operations)


def test_strategic_merge_merges_containers_by_name_and_deletes_on_request() -> None:
    live = {
        "spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]},
        "metadata": {"finalizers": ["x"]},
    }
    patch = {"spec": {"containers": [{"name": "b", "$patch": "delete"}, {"name": "a", "image": "2"}, {"name": "c"}],
                      "$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]},
             "metadata": {"finalizers": ["y"]}}  # fmt: skip
    merged = strategic_merge(live, patch, builtin_shape("V1Pod"))
    assert merged["spec"]["containers"] == [{"name": "c"}, {"name": "a", "image": "2"}]
    assert merged["metadata"]["finalizers"] == ["x", "y"]


def test_strategic_merge_knows_its_directives() -> None:
    live = {"metadata": {"finalizers": ["a", "b"], "labels": {"x": "1", "y": "2"}}, "strategy": {"type": "A", "n": 1}}
    patch = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a"], "labels": {"$patch": "replace", "z": "3"}},
             "strategy": {"$retainKeys": ["type"], "type": "B"}}  # fmt: skip
    merged = strategic_merge(live, patch, builtin_shape("V1Deployment"))
    assert merged == {"metadata": {"finalizers": ["b"], "labels": {"z": "3"}}, "strategy": {"type": "B"}}


def test_fields_survive_their_nested_form() -> None:
    obj = {"metadata": {"labels": {"a": "1"}}, "spec": {"parts": [{"name": "p", "n": 1}], "tags": ["t"], "plain": [1]}}
    fields = fields_of(obj, SHAPE)
    tree = to_fields_v1(fields)
    assert tree["f:spec"]["f:parts"] == {'k:{"name":"p"}': {".": {}, "f:n": {}, "f:name": {}}}
    assert tree["f:spec"]["f:tags"] == {'v:"t"': {}}
    assert from_fields_v1(tree) == set(fields)


def test_update_takes_fields_from_others() -> None:
    first = {"spec": {"size": 1, "plain": [1]}}
    update = Writer("carol", "Update", "x/v1")
    managers = after_update(None, first, ALICE, SHAPE, {})
    managers = after_update(first, {"spec": {"size": 2, "plain": [1]}}, update, SHAPE, managers)
    assert managers[ALICE].paths == {("f:spec",), ("f:spec", "f:plain")}
    assert managers[update].paths == {("f:spec", "f:size")}


def applied(obj: dict[str, Any], managers: Any) -> dict[str, Any]:
    return {**obj, "metadata": {**obj.get("metadata", {}), "managedFields": write_managers(managers)}}


def test_apply_merges_lists_by_key_and_removes_what_is_declared_no_more() -> None:
    live = applied(
        *apply(None, {"spec": {"parts": [{"name": "a", "n": 1}, {"name": "b"}], "size": 1}}, ALICE, SHAPE, False)
    )
    live = applied(*apply(live, {"spec": {"parts": [{"name": "c", "n": 3}]}}, BOB, SHAPE, False))
    live = applied(*apply(live, {"spec": {"parts": [{"name": "b"}]}}, ALICE, SHAPE, False))
    assert live["spec"] == {"parts": [{"name": "b"}, {"name": "c", "n": 3}]}


def test_apply_refuses_another_managers_field_unless_forced() -> None:
    live = applied(*apply(None, {"spec": {"size": 1}}, ALICE, SHAPE, False))
    with pytest.raises(ApiError) as refused:
        apply(live, {"spec": {"size": 2}}, BOB, SHAPE, False)
    assert refused.value.code == 409
    assert refused.value.message == 'Apply failed with 1 conflict: conflict with "alice": .spec.size'
    forced, managers = apply(live, {"spec": {"size": 2}}, BOB, SHAPE, True)
    assert forced["spec"] == {"size": 2}
    assert not managers[ALICE].paths


def test_apply_of_the_same_value_is_shared() -> None:
    live = applied(*apply(None, {"spec": {"size": 1}}, ALICE, SHAPE, False))
    live = applied(*apply(live, {"spec": {"size": 1}}, BOB, SHAPE, False))
    live = applied(*apply(live, {"spec": {}}, ALICE, SHAPE, False))
    assert live["spec"] == {"size": 1}


def test_apply_keeps_what_lies_in_a_container_that_its_plain_write_brought() -> None:
    """As when kubectl makes the fields of its client-side apply those of a server-side one."""
    live = {"metadata": {"name": "x"}, "spec": {"size": 1, "parts": [{"name": "a", "n": 1}]}}
    spec = {".": {}, "f:size": {}, "f:parts": {".": {}, 'k:{"name":"a"}': {".": {}, "f:name": {}, "f:n": {}}}}
    entry = {"manager": "alice", "operation": "Apply", "apiVersion": "x/v1", "fieldsV1": {"f:spec": spec}}
    live["metadata"]["managedFields"] = [entry]
    merged, _ = apply(live, {"spec": {"size": 1, "parts": [{"name": "a", "n": 1}]}}, ALICE, SHAPE, force=False)
    assert merged["spec"] == live["spec"]

    merged, _ = apply(live, {"spec": {"size": 1}}, ALICE, SHAPE, force=False)
    assert merged["spec"] == {"size": 1}
