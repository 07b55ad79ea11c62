"""Tests which call would undo a call, and that no masked value is ever written back."""

import json
from typing import Any

import pytest

from tarsy.masking import default_masker
from tarsy.plan.model import ApprovalPlan, UndoRule
from tarsy.runtime.approving.undo import masked_image, undo_of

CHECKOUT: dict[str, Any] = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "checkout", "namespace": "pay", "uid": "u", "resourceVersion": "1"},
    "spec": {"replicas": 2, "env": [{"name": "DB_PASSWORD", "value": "hunter22hunter22"}], "note": "a: 2026-01-01"},
    "status": {"replicas": 2},
}
PLAIN = {**CHECKOUT, "spec": {"replicas": 2, "on": "on", "number": "012", "empty": None}}
ARGUMENTS = {"name": "checkout", "scale": 5}
SCALE = "{'name': arguments.name, 'scale': before.spec.replicas}"
MASK = default_masker().mask


def undo(expression: str, *objects: Any, arguments: dict[str, Any] = ARGUMENTS) -> dict[str, str] | None:
    rules = ApprovalPlan(undo=(UndoRule(tools=("scale",), tool="scale_back", arguments=expression),))
    images = [masked_image(obj, MASK)[1] for obj in objects]
    found = undo_of(rules, "scale", arguments, images)
    return None if found is None else dict(found)


def test_the_arguments_come_from_the_object_as_it_was() -> None:
    assert undo(SCALE, CHECKOUT) == {"tool": "scale_back", "arguments": '{"name":"checkout","scale":2}'}
    assert undo_of(ApprovalPlan(), "scale", ARGUMENTS, [PLAIN]) is None


def test_a_whole_object_can_be_put_back_as_it_was() -> None:
    found = undo("{'resource': manifest}", PLAIN)
    assert found is not None
    back = json.loads(json.loads(found["arguments"])["resource"])
    assert back["spec"] == PLAIN["spec"]
    assert "status" not in back and back["metadata"] == {"name": "checkout", "namespace": "pay"}


@pytest.mark.parametrize(
    "expression",
    [
        "{'resource': manifest}",
        "{'resource': before}",
        "{'value': before.spec.env[0].value}",
        "{'value': 'x' + before.spec.env[0].value}",
        "{'value': string(before.spec.env[0].value)}",
        "{'value': [before.spec.env]}",
        "{'value': before.spec.env[0].value == 'hunter22hunter22' ? 1 : 2}",
        "{'value': before.spec.env[0].value in ['hunter22hunter22']}",
        "{'value': before.spec.env.exists(one, one.value == 'a')}",
    ],
)
def test_an_undo_that_needs_a_masked_value_is_refused_with_a_sentence(expression: str) -> None:
    found = undo(expression, CHECKOUT)
    assert found is not None and set(found) == {"note"}
    assert found["note"].startswith("It cannot be undone by scale_back: ")
    assert "hunter22" not in found["note"]


def test_the_image_that_is_kept_holds_no_secret() -> None:
    kept, _ = masked_image(CHECKOUT, MASK)
    assert "hunter22" not in json.dumps(kept) and kept["spec"]["replicas"] == 2


@pytest.mark.parametrize(
    ("expression", "objects", "why"),
    [
        (SCALE, [CHECKOUT, PLAIN], "changes several objects"),
        (SCALE, [], "changes several objects"),
        (SCALE, [None], "no such"),
        ("{'a': before.data}", [CHECKOUT], "no such key: data"),
        ("[1]", [CHECKOUT], "are not a map"),
        ("{'a': manifest + manifest + manifest + manifest}", [{**PLAIN, "spec": {"a": "x" * 3000}}], "take more than"),
        ("{'resource': manifest}", [{**PLAIN, "spec": {"a": "x" * 70_000}}], "masked"),
    ],
)
def test_what_cannot_be_undone_says_why(expression: str, objects: list[Any], why: str) -> None:
    found = undo(expression, *objects)
    assert found is not None and why in found["note"]


def test_a_mask_that_fails_keeps_nothing() -> None:
    def broken(text: str) -> str:
        raise RuntimeError

    kept, usable = masked_image(PLAIN, broken)
    rules = ApprovalPlan(undo=(UndoRule(tools=("*",), tool="back", arguments=SCALE),))
    assert kept is None and "note" in (undo_of(rules, "scale", ARGUMENTS, [usable]) or {})
