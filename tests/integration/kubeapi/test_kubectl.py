"""Tests kubectl on the embedded API, command by command."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from embedded_kubeapi.server import EmbeddedApi
from integration.kubeapi.conftest import widget

Kubectl = Callable[..., subprocess.CompletedProcess[str]]
STRATEGIC = '{"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}'
# Command, exit code, what its output (both streams) must match. FILE is a Widget of size 3, BIG one of size 7.
SCRIPT: list[tuple[str, int, str]] = [
    ("version", 0, r"Server Version: v1\.36\.0\+tarsy-embedded"),
    ("api-resources --api-group=demo.example.com", 0, r"widgets +wg +demo\.example\.com/v1 +true +Widget"),
    ("get crd widgets.demo.example.com", 0, r"CREATED AT"),
    ("wait --for=condition=Established crd/widgets.demo.example.com --timeout=60s", 0, "condition met"),
    ("apply -f FILE", 0, "w1 created"),
    ("get wg", 0, r"NAME +SIZE +READY\nw1 +3"),
    ("apply -f FILE", 0, "w1 unchanged"),
    ("apply -f BIG", 0, "w1 configured"),
    ("apply -f ODD", 1, r'unknown field \\*"spec\.odd\\*"'),
    ("apply --server-side -f FILE", 1, r"conflict with \\?\"kubectl-client-side-apply\\?\" using demo.*\.spec\.size"),
    ("apply --server-side --force-conflicts -f FILE", 0, "serverside-applied"),
    ("replace -f FILE", 0, "replaced"),
    ("diff -f BIG", 1, r"\+ +size: 7"),
    ("apply --dry-run=server -f BIG", 0, "server dry run"),
    ("patch wg w1 --type=merge -p {\"spec\":{\"size\":4}}", 0, "patched"),
    ("patch wg w1 --type=json -p [{\"op\":\"replace\",\"path\":\"/spec/size\",\"value\":5}]", 0, "patched"),
    ("patch wg w1 --type=merge -p {\"spec\":{\"size\":1}}", 1, r'spec: Invalid value: too small: 1'),
    ("patch wg w1 --type=merge -p {\"spec\":{\"size\":11}}", 1, "should be less than or equal to 10"),
    ("patch wg w1 --type=merge -p {\"spec\":{\"color\":\"green\"}}", 1, 'supported values: "red", "blue"'),
    ("patch wg w1 --subresource=status --type=merge -p "
     '{"status":{"phase":"Up","conditions":[{"type":"Ready","status":"True"}]},"spec":{"size":9}}', 0, "patched"),
    ("get wg w1 -o jsonpath={.spec.size}/{.status.phase}/{.spec.color}", 0, r"^5/Up/red$"),
    ("patch wg w1 --type=merge -p {\"status\":{\"phase\":\"Down\"}}", 0, "no change"),
    ("patch wg w1 --type=merge -p {\"metadata\":{\"resourceVersion\":\"1\"},\"spec\":{\"size\":4}}", 1, "Conflict"),
    ("get wg", 0, r"w1 +5 +True"),
    ("wait --for=condition=Ready wg/w1 --timeout=60s", 0, "condition met"),
    ("wait --for=jsonpath={.status.phase}=Up wg/w1 --timeout=60s", 0, "condition met"),
    ("label wg w1 x=y", 0, "labeled"),
    ("annotate wg w1 note=a", 0, "annotated"),
    ("get wg -l x=y -o name", 0, "w1"),
    ("get wg -l x=z -o name", 0, "^$"),
    ("get wg --field-selector spec.color=red -o name", 0, "w1"),
    ("get wg --field-selector spec.size=5", 1, r"field label not supported: spec\.size"),
    ("describe wg w1", 0, r"Size: +5"),
    ("explain widget.spec.size", 0, "How large"),
    ("auth can-i create widgets", 0, "yes"),
    ("auth whoami", 0, "kubernetes-admin"),
    ("create serviceaccount robot", 0, "created"),
    ("create token robot", 0, r"^ey[\w.-]+\s*$"),
    ("create secret generic s1 --from-literal=a=b", 0, "created"),
    ("get secret s1 -o jsonpath={.data.a}", 0, "^Yg==$"),
    ("create configmap c1 --from-literal=a=b", 0, "created"),
    ("get configmaps", 0, r"c1 +1"),
    ("create role r1 --verb=get,list --resource=widgets", 0, "created"),
    ("create rolebinding b1 --role=r1 --serviceaccount=default:robot", 0, "created"),
    ("create clusterrole test-cr --verb=get --resource=pods --dry-run=server", 0, "created"),
    ("create deployment web --image=web:1 --replicas=2", 0, "created"),
    ("get deployment web", 0, r"web +0/2"),
    (f"patch deployment web -p {STRATEGIC}", 0, "patched"),
    ("get deployment web -o jsonpath={.spec.template.spec.containers[*].image}", 0, "^web:2$"),
    ("scale deployment web --replicas=3", 0, "scaled"),
    ("set image deployment/web web=web:3", 0, "image updated"),
    ("rollout restart deployment/web", 0, "restarted"),
    ("expose deployment web --port=80", 0, "exposed"),
    ("get service web", 0, r"ClusterIP +10\.96\.\d+\.\d+ +<none> +80/TCP"),
    ("create job j1 --image=busybox", 0, "created"),
    ("get jobs", 0, r"j1 +Running +0/1"),
    ("run p1 --image=busybox", 0, "created"),
    ("get pods --field-selector=status.phase=Pending", 0, r"p1 +0/1 +Pending +0"),
    ("get pods,configmaps -o name", 0, "pod/p1"),
    ("get all", 0, "service/web"),
    ("delete pod p1 --now", 0, "deleted"),
    ("patch wg w1 --type=merge -p {\"metadata\":{\"finalizers\":[\"a/b\"]}}", 0, "patched"),
    ("delete wg w1 --wait=false", 0, "deleted"),
    ("get wg w1 -o jsonpath={.metadata.deletionTimestamp}", 0, r"^\d{4}-"),
    ("patch wg w1 --type=merge -p {\"metadata\":{\"finalizers\":null}}", 0, "patched"),
    ("get wg w1", 1, r'widgets\.demo\.example\.com "w1" not found'),
    ("delete secrets --all", 0, '"s1" deleted'),
    ("get events", 0, "No resources found"),
    ("get nonsense", 1, "doesn't have a resource type"),
    ("get --raw /readyz", 0, "ok"),
]  # fmt: skip


@pytest.mark.heavy("fifty commands; e2e/test_kubectl has those that people use most")
@pytest.mark.usefixtures("widgets")
def test_commands_answer_as_a_cluster_would(kubectl: Kubectl, namespace: str, tmp_path: Path) -> None:
    files = {"FILE": widget("w1"), "BIG": widget("w1", 7), "ODD": {**widget("w1"), "spec": {"size": 3, "odd": 1}}}
    for name, obj in files.items():
        (tmp_path / name).write_text(yaml.safe_dump(obj))
    wrong = []
    for command, code, pattern in SCRIPT:
        arguments = [str(tmp_path / part) if part in files else part for part in command.split(" ")]
        scoped = [] if arguments[:2] == ["get", "--raw"] else ["--namespace", namespace]
        ran = kubectl(*arguments, *scoped)
        output = ran.stdout + ran.stderr
        if ran.returncode != code or not re.search(pattern, output):
            wrong.append(f"kubectl {command}\n  exit {ran.returncode}, wanted {code} and {pattern!r}\n  {output}")
    assert not wrong, "\n".join(wrong)


def test_namespace_goes_with_all_that_is_in_it(kubectl: Kubectl, namespace: str) -> None:
    assert kubectl("create", "configmap", "c", "-n", namespace).returncode == 0
    assert "kube-root-ca.crt" in kubectl("get", "configmaps", "-n", namespace, "-o", "name").stdout
    assert "default" in kubectl("get", "serviceaccounts", "-n", namespace, "-o", "name").stdout
    assert kubectl("delete", "namespace", namespace, "--timeout=60s").returncode == 0
    assert "not found" in kubectl("get", "namespace", namespace).stderr
    assert "not found" in kubectl("create", "configmap", "c", "-n", namespace).stderr


def test_owned_objects_go_with_their_owner_unless_orphaned(kubectl: Kubectl, namespace: str) -> None:
    def make(name: str, owner: str = "") -> str:
        meta = {"name": name, "namespace": namespace}
        if owner:
            uid = kubectl("get", "configmap", owner, "-n", namespace, "-o", "jsonpath={.metadata.uid}").stdout
            meta["ownerReferences"] = [{"apiVersion": "v1", "kind": "ConfigMap", "name": owner, "uid": uid}]  # type: ignore[assignment]
        return kubectl("create", "-f", "-", stdin={"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta}).stderr

    for parent, child in (("p1", "c1"), ("p2", "c2")):
        assert make(parent) + make(child, parent) == ""
    assert kubectl("delete", "configmap", "p1", "-n", namespace).returncode == 0
    assert kubectl("delete", "configmap", "p2", "-n", namespace, "--cascade=orphan").returncode == 0
    left = kubectl("get", "configmaps", "-n", namespace, "-o", "name").stdout
    assert "configmap/c1" not in left
    assert "configmap/c2" in left


def test_crd_goes_with_its_objects(kubectl: Kubectl, namespace: str) -> None:
    names = {"plural": "gizmos", "kind": "Gizmo"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "gizmos.once.example.com"},
        "spec": {"group": "once.example.com", "scope": "Namespaced", "names": names, "versions": [version]},
    }
    assert kubectl("create", "-f", "-", stdin=crd).returncode == 0
    gizmo = {"apiVersion": "once.example.com/v1", "kind": "Gizmo", "metadata": {"name": "g", "namespace": namespace}}
    assert kubectl("create", "-f", "-", stdin=gizmo).returncode == 0
    assert kubectl("delete", "crd", "gizmos.once.example.com", "--timeout=60s").returncode == 0
    assert kubectl("get", "gizmos.once.example.com").returncode == 1


def test_aggregated_roles_are_filled(kubectl: Kubectl, api: EmbeddedApi, namespace: str) -> None:
    reader = api.kubeconfig_for("reader")
    assert kubectl("create", "rolebinding", "r", "--clusterrole=view", "--user=reader", "-n", namespace).returncode == 0
    cases = {("get", "pods"): 0, ("list", "deployments.apps"): 0, ("get", "secrets"): 1, ("create", "pods"): 1}
    for (verb, resource), code in cases.items():
        assert kubectl("auth", "can-i", verb, resource, "-n", namespace, kubeconfig=reader).returncode == code
    refused = kubectl("get", "secrets", "-n", namespace, kubeconfig=reader)
    assert (
        f'User "reader" cannot list resource "secrets" in API group "" in the namespace "{namespace}"' in refused.stderr
    )
    assert kubectl("auth", "can-i", "--list", "-n", namespace, kubeconfig=reader).returncode == 0
    assert kubectl("get", "pods", "-n", namespace, "--as=reader").returncode == 0
    assert kubectl("get", "pods", "-n", namespace, "--as=other").returncode == 1
