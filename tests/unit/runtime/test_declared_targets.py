"""Tests which objects a call changes, as its MCPServer declares."""

import json
from typing import Any

import pytest

from for_each import for_each
from tarsy.plan.model import ApprovalPlan, ReachPlan, TargetRule
from tarsy.record.approvals.approval_targets import TargetName
from tarsy.runtime.approving.declared import TargetsUnknown, as_bound, declared_targets, manifests_in

OBJECT = (
    "{'apiVersion': arguments.apiVersion, 'kind': arguments.kind, 'namespace': arguments.namespace, "
    "'name': arguments.name}"
)
RULES = ApprovalPlan(
    targets=(
        TargetRule(tools=("resources_scale",), object=OBJECT, change="{'spec': {'replicas': arguments.scale}}"),
        TargetRule(tools=("resources_*",), manifest="resource"),
        TargetRule(tools=("pods_delete",), object="[{'apiVersion': 'v1', 'kind': 'Pod', 'name': arguments.name}]"),
    )
)
CHECKOUT = {"apiVersion": "apps/v1", "kind": "Deployment", "namespace": "pay", "name": "checkout"}
NAME = TargetName("apps/v1", "Deployment", "pay", "checkout")
MANIFEST = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: checkout, namespace: pay}\nspec: {replicas: 3}\n"


def test_the_first_rule_that_names_a_tool_counts() -> None:
    (found,) = declared_targets(RULES, "resources_scale", CHECKOUT | {"scale": 3})
    assert (found.name, found.change) == (NAME, {"spec": {"replicas": 3}})
    (found,) = declared_targets(RULES, "resources_apply", {"resource": MANIFEST})
    assert found.name == NAME and found.manifest is not None and found.manifest["spec"] == {"replicas": 3}
    (found,) = declared_targets(RULES, "pods_delete", {"name": "checkout-1"})
    assert found.name == TargetName("v1", "Pod", "", "checkout-1")


def test_a_manifest_may_be_json_an_object_or_several_documents() -> None:
    document = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": "pay"}}
    for argument in (json.dumps(document), document):
        (found,) = declared_targets(RULES, "resources_apply", {"resource": argument})
        assert found.name == TargetName("v1", "ConfigMap", "pay", "a")
    several = declared_targets(RULES, "resources_apply", {"resource": f"{MANIFEST}---\n---\n{json.dumps(document)}\n"})
    assert [one.name.kind for one in several] == ["Deployment", "ConfigMap"]


@for_each(
    ("tool", "arguments", "why"),
    [
        ("helm_install", {}, "does not declare"),
        ("resources_scale", {"name": "a"}, "no such key"),
        ("resources_scale", CHECKOUT | {"scale": 3, "kind": "deployment"}, "kind of an object is not valid"),
        ("resources_scale", CHECKOUT | {"scale": 3, "name": "../../secrets/a"}, "name of an object is not valid"),
        ("resources_scale", CHECKOUT | {"scale": 3, "name": ".."}, "name of an object is not valid"),
        ("resources_scale", CHECKOUT | {"scale": 3, "name": "a?b=c"}, "name of an object is not valid"),
        ("resources_scale", CHECKOUT | {"scale": 3, "namespace": "a/b"}, "namespace of an object is not valid"),
        (
            "resources_scale",
            CHECKOUT | {"scale": 3, "apiVersion": "apps/v1/../.."},
            "apiVersion of an object is not valid",
        ),
        ("resources_scale", CHECKOUT | {"scale": 3, "name": ["a"]}, "name of an object is not valid"),
        ("resources_apply", {"resource": "- a\n- b"}, "no single object"),
        ("resources_apply", {"resource": ""}, "name no object"),
        ("resources_apply", {"resource": 3}, "contains no manifest"),
        ("resources_apply", {"resource": "kind: List\nmetadata: {}\nitems: []"}, "no single object"),
        ("resources_apply", {"resource": f"{MANIFEST}---\n{MANIFEST}"}, "names an object twice"),
        ("resources_apply", {"resource": MANIFEST + "kind: Secret\n"}, "no manifest with one reading"),
        (
            "resources_apply",
            {"resource": MANIFEST.replace("name: checkout", "name: on")},
            "name of an object is not valid",
        ),
        ("resources_apply", {"resource": "a: &x {b: c}\nd: *x"}, "no manifest with one reading"),
        ("resources_apply", {"resource": "<<: {kind: A}\nkind: B"}, "no manifest with one reading"),
        ("resources_apply", {"resource": "a: !!python/object:os.system {}"}, "no manifest with one reading"),
        ("resources_apply", {"resource": "[" * 5000}, "no manifest with one reading"),
        ("resources_apply", {"resource": MANIFEST.replace("name: checkout", "generateName: a")}, "name of an object"),
        (
            "resources_apply",
            {"resource": MANIFEST, "namespace": "other"},
            "namespace and resource do not name the same",
        ),
        (
            "resources_apply",
            {"resource": MANIFEST.replace(", namespace: pay", ""), "namespace": "pay"},
            "the same object",
        ),
        ("resources_apply", {"resource": MANIFEST, "name": "cart"}, "name and resource do not name the same"),
    ],
)
def test_what_is_not_certain_is_unknown(tool: str, arguments: dict[str, Any], why: str) -> None:
    with pytest.raises(TargetsUnknown, match=why):
        declared_targets(RULES, tool, arguments)


def test_an_argument_beside_a_manifest_may_name_the_same_object() -> None:
    (found,) = declared_targets(
        RULES, "resources_apply", {"resource": MANIFEST, "namespace": "pay", "name": "checkout"}
    )
    assert found.name == NAME


@pytest.mark.parametrize(("count", "known"), [(15, True), (16, True), (17, False)])
def test_a_call_changes_at_most_sixteen_objects(count: int, known: bool) -> None:
    text = "---\n".join(MANIFEST.replace("name: checkout", f"name: c{number}") for number in range(count))
    if known:
        assert len(declared_targets(RULES, "resources_apply", {"resource": text})) == count
        return
    with pytest.raises(TargetsUnknown, match="more than 16"):
        declared_targets(RULES, "resources_apply", {"resource": text})


def test_a_server_that_declares_nothing_and_a_change_of_several_objects_are_unknown() -> None:
    with pytest.raises(TargetsUnknown):
        declared_targets(None, "resources_scale", CHECKOUT)
    two = ApprovalPlan(targets=(TargetRule(tools=("a",), object=f"[{OBJECT}, {OBJECT}]", change="{'a': 1}"),))
    with pytest.raises(TargetsUnknown, match="not a map for one object"):
        declared_targets(two, "a", CHECKOUT)


def test_the_namespace_that_the_toolbox_sets_is_that_of_the_targets() -> None:
    bound = ReachPlan(foreign=True, namespace="pay")
    assert as_bound(bound, {"name": "a"}) == {"name": "a", "namespace": "pay"}
    assert as_bound(bound, {"namespace": ""}) == {"namespace": "pay"}
    assert as_bound(bound, {"namespace": "shop"}) == {"namespace": "shop"}
    assert as_bound(ReachPlan(), {"name": "a"}) == as_bound(None, {"name": "a"}) == {"name": "a"}


def test_dates_and_times_stay_texts() -> None:
    assert manifests_in("a: 2026-01-01") == [{"a": "2026-01-01"}]
