"""Tests what the Kubernetes tools make of objects: usage, revisions, endpoints, nodes, quotas, owners, deliveries."""

from typing import Any

import pytest

from tarsy.kubernetes_tools.gitops import deliveries, destinations
from tarsy.kubernetes_tools.kinds import Refused
from tarsy.kubernetes_tools.nodes import render_node
from tarsy.kubernetes_tools.owners import controller_of, render_owners
from tarsy.kubernetes_tools.quantities import format_bytes, format_cpu, parse_quantity
from tarsy.kubernetes_tools.quotas import render_quotas
from tarsy.kubernetes_tools.reach import NamespaceReach
from tarsy.kubernetes_tools.rollouts import differences, render_history, revisions
from tarsy.kubernetes_tools.services import render_endpoints
from tarsy.kubernetes_tools.usage import MOST_ROWS, ContainerUsage, container_usage, render_usage


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("250m", 0.25),
        ("1.5", 1.5),
        (".5", 0.5),
        ("64Mi", 64 * 2**20),
        ("1e3", 1000),
        ("2E", 2e18),
        ("12n", 1.2e-8),
        ("0", 0),
        ("", None),
        ("1 Gi", None),
        ("much", None),
        (None, None),
    ],
)
def test_a_quantity_is_a_number_or_none(text: object, value: float | None) -> None:
    assert parse_quantity(text) == (pytest.approx(value) if value is not None else None)


def test_figures_are_written_in_the_units_of_kubectl() -> None:
    assert [format_cpu(0.25), format_cpu(1), format_cpu(12.5)] == ["250m", "1", "12.5"]
    assert [format_bytes(512), format_bytes(1024), format_bytes(64 * 2**20)] == ["512", "1Ki", "64Mi"]


def _pod(name: str, **resources: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"containers": [{"name": "app", "resources": resources}]}}


def _measured(name: str, **usage: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "containers": [{"name": "app", "usage": usage}]}


def test_the_container_nearest_to_its_limit_comes_first() -> None:
    pods = [
        _pod("idle", limits={"memory": "100Mi"}),
        _pod("full", requests={"cpu": "100m"}, limits={"memory": "64Mi"}),
        _pod("new", limits={"memory": "1Mi"}),
    ]
    rows = container_usage(pods, [_measured("idle", memory="10Mi"), _measured("full", memory="62Mi", cpu="20m")])
    assert [row.pod for row in rows] == ["full", "idle", "new"]
    assert rows[0].line() == (
        "full app | cpu=20m request=100m limit=none | memory=62Mi request=none limit=64Mi (97% of limit)"
    )
    assert "memory=not-measured" in rows[2].line()


@pytest.mark.parametrize(("count", "left"), [(MOST_ROWS, 0), (MOST_ROWS + 1, 1)])
def test_usage_says_how_many_containers_it_left_out(count: int, left: int) -> None:
    text = render_usage([ContainerUsage(f"p{n}", "app", None, None) for n in range(count)], None)
    assert (f"[{left} more containers" in text) is bool(left)
    assert "measured none of these pods yet" in text
    assert render_usage([], None) == "no pods"


def _replica_set(number: int, image: str, uid: str = "u", **env: str) -> dict[str, Any]:
    container = {"name": "app", "image": image, "env": [{"name": k, "value": v} for k, v in env.items()]}
    return {
        "metadata": {
            "name": f"shop-{number}",
            "creationTimestamp": f"2026-01-0{number}T00:00:00Z",
            "annotations": {"deployment.kubernetes.io/revision": str(number)},
            "ownerReferences": [{"uid": uid}],
        },
        "spec": {
            "replicas": 1,
            "template": {
                "metadata": {"labels": {"pod-template-hash": str(number)}},
                "spec": {"containers": [container]},
            },
        },
    }


def test_history_compares_the_newest_revision_with_the_one_before() -> None:
    items = [
        _replica_set(1, "a:1", A="1", B="2"),
        _replica_set(3, "a:2", B="2", A="5"),
        _replica_set(9, "x", uid="other"),
    ]
    text = render_history("Deployment shop", revisions(items, "u"), None, None).text
    assert text.splitlines()[0] == "Deployment shop: 2 recorded revisions, the newest first"
    assert text.splitlines()[4:] == [
        "difference of the pod template from revision 1 to 3:",
        'spec.containers[app].image: "a:1" -> "a:2"',
        'spec.containers[app].env[A].value: "1" -> "5"',
    ]


def test_history_of_a_stateful_set_is_read_from_controller_revisions() -> None:
    item = {
        "metadata": {"name": "db-1", "ownerReferences": [{"uid": "u"}]},
        "revision": 4,
        "data": {
            "spec": {"template": {"$patch": "replace", "spec": {"containers": [{"name": "db", "image": "pg:15"}]}}}
        },
    }
    (found,) = revisions([item], "u")
    assert found.number == 4 and "images=pg:15" in "".join(text for text, _ in found.line())
    assert "no older revision" in render_history("StatefulSet db", (found,), None, None).text
    assert render_history("StatefulSet db", (), None, None).text == "StatefulSet db has no recorded revisions"
    with pytest.raises(Refused, match="there is no revision 7; recorded are 4"):
        render_history("StatefulSet db", (found,), 7, None)


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ({"a": 1}, {"a": 1}, ()),
        ({"a": 1}, {"b": 2}, ("a: removed 1", "b: added 2")),
        ({"l": [{"name": "x"}, {"name": "y"}]}, {"l": [{"name": "y"}, {"name": "x"}]}, ()),
        ({"l": [1, 2]}, {"l": [1, 3]}, ("l[1]: 2 -> 3",)),
        ({"a": {}}, {}, ()),
    ],
)
def test_differences_name_the_field(old: object, new: object, lines: tuple[str, ...]) -> None:
    assert differences(old, new) == lines


SERVICE = {"metadata": {"name": "s"}, "spec": {"selector": {"app": "s"}, "ports": [{"port": 80, "targetPort": "web"}]}}


def test_a_service_without_endpoints_is_explained() -> None:
    pod = {"spec": {"containers": [{"ports": [{"name": "http", "containerPort": 8080}]}]}}
    assert "no pod in the namespace has the labels app=s" in render_endpoints(SERVICE, [], [])
    none_ready = render_endpoints(SERVICE, [], [pod])
    assert "1 pods match the selector and none is ready" in none_ready
    assert "no container of the matching pods has a port named 'web'" in none_ready
    alias = {"metadata": {"name": "s"}, "spec": {"type": "ExternalName", "externalName": "db.example.com"}}
    assert "alias of db.example.com" in render_endpoints(alias, [], [])
    assert "someone else maintains" in render_endpoints({"metadata": {}, "spec": {}}, [], [])


def test_endpoints_that_are_not_ready_come_first() -> None:
    part = {
        "ports": [{"port": 8080}],
        "endpoints": [
            {"addresses": ["10.0.0.1"], "targetRef": {"kind": "Pod", "name": "a"}},
            {"addresses": ["10.0.0.2"], "conditions": {"ready": False, "terminating": True}},
        ],
    }
    lines = render_endpoints(SERVICE, [part], []).splitlines()
    assert "endpoints: 1 ready of 2" in lines
    assert [line.split()[0] for line in lines if line.startswith("  ")] == ["10.0.0.2:8080", "10.0.0.1:8080"]


def test_a_node_shows_pressure_and_what_is_requested_of_it() -> None:
    node = {
        "metadata": {"name": "n1"},
        "spec": {"unschedulable": True, "taints": [{"key": "disk", "effect": "NoSchedule"}]},
        "status": {
            "allocatable": {"cpu": "2", "memory": "1Gi", "pods": "110"},
            "conditions": [{"type": "DiskPressure", "status": "True"}, {"type": "Ready", "status": "True"}],
        },
    }
    pods = [
        _pod("a", requests={"cpu": "500m"}),
        {**_pod("done", requests={"cpu": "1"}), "status": {"phase": "Succeeded"}},
    ]
    text = render_node(node, pods, measured={"usage": {"cpu": "1"}}, hidden=None).text
    assert "cordoned" in text and "taint disk=:NoSchedule" in text
    assert "condition DiskPressure=True !" in text and "condition Ready=True since" in text
    assert "cpu allocatable=2 requested=500m (25%) used=1 (50%)" in text
    assert "no figures of this node" in render_node(node, [], measured=None, hidden="others are hidden").text


@pytest.mark.parametrize(("used", "full"), [("9", False), ("10", True), ("11", True)])
def test_a_quota_that_is_used_up_says_so(used: str, full: bool) -> None:
    quota = {"metadata": {"name": "q"}, "status": {"hard": {"pods": "10", "cpu": "4"}, "used": {"pods": used}}}
    lines = render_quotas([quota], []).splitlines()
    assert lines[0].startswith(f"pods used={used} hard=10") and ("FULL" in lines[0]) is full
    assert render_quotas([], []) == "no ResourceQuota: no limit in sum"


def test_owners_are_named_with_the_tools_that_manage_them() -> None:
    pod = {
        "metadata": {"name": "p", "ownerReferences": [{"kind": "X", "uid": "1"}, {"kind": "RS", "controller": True}]}
    }
    top = {
        "metadata": {
            "name": "shop",
            "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "managedFields": [{"manager": "helm", "operation": "Apply", "time": "2026-01-01T00:00:00Z"}],
        }
    }
    assert controller_of(pod) == {"kind": "RS", "controller": True}
    text = render_owners([("Pod", pod), ("Deployment", top)], None, [("Pod", f"c{n}") for n in range(51)])
    assert "  owned by Deployment/shop" in text and "managed by: Helm" in text and "written by helm (Apply)" in text
    assert "[1 more objects are left out]" in text


def test_a_flux_object_delivers_where_its_inventory_says() -> None:
    meta = {"name": "k", "namespace": "flux-system"}
    inventory = {"inventory": {"entries": [{"id": "shop_web_apps_Deployment"}, {"id": "_shop__Namespace"}]}}
    assert destinations("Kustomization", {"metadata": meta, "spec": {}, "status": inventory}) == {"shop"}
    assert destinations("Kustomization", {"metadata": meta, "spec": {}}) == {"flux-system"}
    assert destinations("HelmRelease", {"metadata": meta, "spec": {"targetNamespace": "shop"}}) == {"shop"}
    assert destinations("HelmRelease", {"metadata": meta, "spec": {"kubeConfig": {}}}) == {"flux-system"}
    elsewhere = {"spec": {"destination": {"server": "https://other.example.com", "namespace": "shop"}}}
    assert destinations("Application", elsewhere) == frozenset()
    assert deliveries("Application", [elsewhere], NamespaceReach(frozenset(["shop"]))) == []
