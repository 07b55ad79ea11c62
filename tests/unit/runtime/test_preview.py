"""Tests what people see of a change: a diff without secrets, of limited size."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.masking import default_masker
from tarsy.record.approvals.approval_targets import TargetName
from tarsy.resources.v1alpha1.tool_approval import MAX_DIFF
from tarsy.runtime.approving.declared import DeclaredTarget
from tarsy.runtime.approving.preview import applied, limited, merged, shown_answer, shown_objects

NAME = TargetName("apps/v1", "Deployment", "pay", "checkout")
BEFORE: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "checkout", "namespace": "pay", "uid": "u", "managedFields": [{"manager": "kubectl"}]},
    "spec": {"replicas": 1, "containers": [{"name": "app", "image": "a:1"}, {"name": "log", "image": "b:1"}]},
    "status": {"replicas": 1},
}
MASK = default_masker().mask


def shown(target: DeclaredTarget, before: dict[str, Any] | None = BEFORE) -> str:
    return shown_objects([target], [before], MASK)


def changes(text: str) -> list[str]:
    """The lines that come and go."""
    return [line for line in text.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]


def test_a_declared_change_is_a_diff_of_the_object() -> None:
    text = shown(DeclaredTarget(NAME, change={"spec": {"replicas": 3}}))
    assert changes(text) == ["-  replicas: 1", "+  replicas: 3"]
    assert "Deployment pay/checkout (after the call)" in text and "managedFields" not in text and "status" not in text


def test_a_manifest_changes_what_it_names_and_leaves_the_rest() -> None:
    manifest = {"kind": "Deployment", "spec": {"containers": [{"name": "log", "image": "b:2"}]}}
    assert changes(shown(DeclaredTarget(NAME, manifest=manifest))) == ["-  - image: b:1", "+  - image: b:2"]
    assert "+kind: Deployment" in shown(DeclaredTarget(NAME, manifest=manifest), None)


def test_without_a_change_the_objects_are_shown_as_they_are() -> None:
    assert shown(DeclaredTarget(NAME)).startswith("# Deployment pay/checkout as it is\napiVersion: apps/v1")
    assert shown(DeclaredTarget(NAME), None) == "# Deployment pay/checkout does not exist"
    assert shown(DeclaredTarget(NAME, change={"spec": {"replicas": 1}})).endswith("nothing changes")


def test_where_only_masked_values_change_the_diff_says_so() -> None:
    before = {**BEFORE, "data": {"password": "hunter22hunter22"}}
    text = shown(DeclaredTarget(NAME, change={"data": {"password": "hunter33hunter33"}}), before)
    assert text == "# Deployment pay/checkout: only values that are masked change"


def test_the_answer_of_a_dry_run_is_a_diff_if_it_is_the_object() -> None:
    answer = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: checkout, namespace: pay}\nspec: {replicas: 5}\n"
    text = shown_answer(answer, [DeclaredTarget(NAME)], [BEFORE], MASK)
    assert "+  replicas: 5" in changes(text)
    for other in ("scaled (dry run)", answer.replace("checkout", "cart"), "a: [", "a: &x b\nc: *x"):
        assert shown_answer(other, [DeclaredTarget(NAME)], [BEFORE], MASK) == other
    assert "hunter22" not in shown_answer("password: hunter22hunter22", [], [], MASK)


def test_what_cannot_be_searched_for_secrets_is_withheld() -> None:
    def broken(text: str) -> str:
        raise RuntimeError

    assert "checkout:1" not in shown_objects([DeclaredTarget(NAME)], [BEFORE], broken)
    assert "withheld" in shown_answer("text", [], [], broken)


@pytest.mark.parametrize(("length", "cut"), [(MAX_DIFF - 1, False), (MAX_DIFF, False), (MAX_DIFF + 1, True)])
def test_a_preview_has_at_most_16_kib(length: int, cut: bool) -> None:
    text = limited("x" * length)
    assert len(text) <= MAX_DIFF and text.endswith("shown here]") is cut


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_merging_twice_is_merging_once(value: Any, patch: Any) -> None:
    once = merged(value, patch)
    assert merged(once, patch) == once
    again = applied(value, patch)
    assert applied(again, patch) == again


def test_a_merge_patch_takes_away_what_is_null() -> None:
    assert merged({"a": 1, "b": {"c": 2, "d": 3}}, {"a": None, "b": {"d": None}}) == {"b": {"c": 2}}
