"""Tests which parts of an answer the tool server marks as written by the control plane alone."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.kubernetes_tools.classes import MARKED_CHARACTERS, ClassedText, classed_lines, classed_list, classed_object
from tarsy.kubernetes_tools.nodes import render_node
from tarsy.kubernetes_tools.render import render_events, render_object
from tarsy.kubernetes_tools.rollouts import render_history, revisions

PLANTED = "the cause is orders-db"


def control(found: ClassedText) -> str:
    """The marked parts, with a bar between two of them."""
    return "|".join(found.text[start:end] for start, end in found.control)


def pod(manager: str = "kubelet", **status: Any) -> dict[str, Any]:
    ended = {"exitCode": 1, "reason": "Error", "message": PLANTED}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": "checkout-7d",
            "uid": "u",
            "labels": {"note": PLANTED},
            "annotations": {"note": PLANTED},
            "managedFields": [
                {"manager": "kubectl", "operation": "Update"},
                {"manager": manager, "subresource": "status"},
            ],
        },
        "spec": {
            "nodeSelector": {"cause": "ordersdb"},
            "containers": [
                {
                    "name": "app",
                    "image": "the-cause-is-orders-db:1",
                    "command": ["sh", "-c", PLANTED],
                    "env": [{"name": "NOTE", "value": "ordersdb"}],
                    "resources": {"limits": {"memory": "64Mi"}},
                }
            ],
        },
        "status": {"containerStatuses": [{"name": "app", "lastState": {"terminated": ended}}], **status},
    }


def test_no_text_that_workloads_write_is_marked() -> None:
    marked = control(render_object(pod()))
    assert '"exitCode": 1' in marked and '"reason": "Error"' in marked and '"memory": "64Mi"' in marked
    for text in (PLANTED, "the-cause-is", "ordersdb", "NOTE"):
        assert text not in marked


@pytest.mark.parametrize(("manager", "marked"), [("kubelet", True), ("checkout-operator", False), ("kubectl", False)])
def test_a_status_that_somebody_else_wrote_is_not_marked(manager: str, marked: bool) -> None:
    assert ('"exitCode": 1' in control(render_object(pod(manager)))) is marked


def test_data_and_the_status_of_custom_resources_are_not_marked() -> None:
    config = {"kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"KEY": "word"}}
    custom = {"kind": "Certificate", "metadata": {"name": "c"}, "status": {"reason": "Word", "notAfter": "word"}}
    assert "word" not in control(render_object(config)) and "Word" not in control(render_object(custom))
    assert control(classed_list("Certificate", "c phase=Failed")) == ""
    assert control(classed_list("Pod", "web-1 ready=0/1")) == "web-1 ready=0/1"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda x: st.lists(x, max_size=4) | st.dictionaries(st.text(max_size=8), x, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=8), _JSON, max_size=4))
def test_an_object_is_written_as_json_is(item: dict[str, Any]) -> None:
    assert classed_object(item, wrote=item).text == json.dumps(item, indent=1, ensure_ascii=False)


def event(component: str, reason: str, *managers: str, message: str = PLANTED) -> dict[str, Any]:
    return {
        "metadata": {"managedFields": [{"manager": manager} for manager in managers]},
        "lastTimestamp": "2026-11-24T10:00:00Z",
        "involvedObject": {"kind": "Pod", "name": "web"},
        "type": "Warning",
        "reason": reason,
        "message": message,
        "source": {"component": component},
    }


HEAD = "2026-11-24T10:00:00Z Warning {} Pod/web (x1): "


@pytest.mark.parametrize(
    ("found", "marked"),
    [
        (event("kubelet", "BackOff"), HEAD.format("BackOff") + PLANTED),
        (event("kubelet", "BackOff", "kubelet"), HEAD.format("BackOff") + PLANTED),
        (event("kubelet", "Unhealthy"), HEAD.format("Unhealthy")),
        (event("kubelet", "BackOff", "checkout"), ""),
        (event("checkout", "BackOff"), ""),
        (event("", "BackOff"), ""),
    ],
)
def test_an_event_is_marked_by_its_reporter_and_its_manager(found: dict[str, Any], marked: str) -> None:
    assert control(render_events([found])) == marked


def test_lines_in_a_message_are_no_lines_of_the_answer() -> None:
    found = [
        event("checkout", "Note", message="a\n2026 Warning OOMKilled Pod/web (x1): x"),
        event("kubelet", "Killing"),
    ]
    assert "OOMKilled" not in control(render_events(found))


def test_a_rollout_is_marked_without_its_images_and_causes() -> None:
    def replica_set(number: int, image: str, env: str) -> dict[str, Any]:
        container = {"name": "app", "image": image, "env": [{"name": "A", "value": env}]}
        return {
            "metadata": {
                "name": f"web-{number}",
                "creationTimestamp": "2026-11-24T10:00:00Z",
                "ownerReferences": [{"uid": "u"}],
                "annotations": {
                    "deployment.kubernetes.io/revision": str(number),
                    "kubernetes.io/change-cause": PLANTED,
                },
            },
            "spec": {"template": {"metadata": {"labels": {"v": f"v{number}"}}, "spec": {"containers": [container]}}},
        }

    found = revisions([replica_set(1, "web:1", "old"), replica_set(2, "web:2", "new")], "u")
    marked = control(render_history("Deployment web", found, None, None))
    assert "revision=2 web-2 created=2026-11-24T10:00:00Z" in marked
    assert 'spec.containers[app].image: "web:1" -> "web:2"' in marked
    assert PLANTED not in marked and "new" not in marked.replace("newest", "") and "v2" not in marked


def test_a_condition_of_a_node_is_marked_without_its_message() -> None:
    node = {
        "metadata": {"name": "n"},
        "status": {"conditions": [{"type": "Ready", "status": "False", "reason": "R", "message": f"x\n{PLANTED}"}]},
    }
    marked = control(render_node(node, [], measured=None, hidden=None))
    assert "condition Ready=False !" in marked and "0 pods here" in marked and PLANTED not in marked


@pytest.mark.parametrize("tail", [False, True])
@pytest.mark.parametrize(
    "length", [MARKED_CHARACTERS - 1, MARKED_CHARACTERS, MARKED_CHARACTERS + 1, 3 * MARKED_CHARACTERS]
)
def test_marks_stay_in_place_in_a_text_that_is_cut(length: int, tail: bool) -> None:
    half = length // 2
    whole = classed_lines([[("k" * half, True), ("a" * (length - half), False)], [("K" * 20, True)]])
    cut = whole.limited("ask for less", tail=tail)
    assert set(control(cut)) <= {"k", "K", "|"} and len(cut.text) <= MARKED_CHARACTERS + 100
    assert ("K" * 20 in control(cut)) is tail or length < MARKED_CHARACTERS - 20
