"""Tests that writers of roles and bindings cannot grant more than they have, with the messages of kube-apiserver."""

import subprocess
from collections.abc import Callable, Iterator

import pytest

from embedded_kubeapi.server import EmbeddedApi

Kubectl = Callable[..., subprocess.CompletedProcess[str]]
RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
def bob(kubectl: Kubectl, api: EmbeddedApi, namespace: str) -> Iterator[Kubectl]:
    """kubectl as somebody who may write roles and bindings, and read configmaps, and nothing else."""
    user = f"bob-{namespace}"
    writes = {"apiGroups": [RBAC], "resources": ["roles", "rolebindings", "clusterroles"],
              "verbs": ["get", "create", "update", "patch"]}  # fmt: skip
    reads = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": user}, "rules": [writes, reads]}
    assert kubectl("create", "-f", "-", stdin=role).returncode == 0
    assert kubectl("create", "clusterrolebinding", user, f"--clusterrole={user}", f"--user={user}").returncode == 0
    kubeconfig = api.kubeconfig_for(user)

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return kubectl(*arguments, kubeconfig=kubeconfig)

    yield run
    kubectl("delete", "clusterrolebinding,clusterrole", user)


def test_role_grants_only_what_its_writer_holds(bob: Kubectl, namespace: str) -> None:
    assert bob("create", "role", "fits", "-n", namespace, "--verb=get", "--resource=configmaps").returncode == 0
    refused = bob("create", "role", "wide", "-n", namespace, "--verb=get,list", "--resource=secrets,configmaps")
    assert f'roles.{RBAC} "wide" is forbidden: user "bob-{namespace}" (groups=["system:authenticated"]) ' in (
        refused.stderr
    )
    assert refused.stderr.endswith(
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["configmaps"], Verbs:["list"]}\n'
        '{APIGroups:[""], Resources:["secrets"], Verbs:["get" "list"]}\n'
    )
    patch = '[{"op":"add","path":"/rules/0/verbs/-","value":"delete"}]'
    widened = bob("patch", "role", "fits", "-n", namespace, "--type=json", "-p", patch)
    assert '{APIGroups:[""], Resources:["configmaps"], Verbs:["delete"]}' in widened.stderr
    assert bob("label", "role", "fits", "-n", namespace, "a=b").returncode == 0


def test_aggregation_and_paths_need_what_they_could_gather(bob: Kubectl, namespace: str) -> None:
    gathering = bob("create", "clusterrole", f"all-{namespace}", "--aggregation-rule=a=b")
    assert "must have cluster-admin privileges to use the aggregationRule" in gathering.stderr
    path = bob("create", "clusterrole", f"path-{namespace}", "--verb=get", "--non-resource-url=/metrics")
    assert '{NonResourceURLs:["/metrics"], Verbs:["get"]}' in path.stderr


def test_binding_needs_the_rights_of_the_role_or_the_verb_bind(bob: Kubectl, kubectl: Kubectl, namespace: str) -> None:
    bind = ("create", "rolebinding", "-n", namespace, "--user=eve")
    refused = bob(*bind, "b1", "--clusterrole=cluster-admin")
    assert '{APIGroups:["*"], Resources:["*"], Verbs:["*"]}' in refused.stderr
    assert f'roles.{RBAC} "none" not found' in bob(*bind, "b2", "--role=none").stderr
    assert bob(*bind, "b3", "--clusterrole=view").returncode == 1
    kubectl("create", "role", "binder", "-n", namespace, "--verb=bind", "--resource=clusterroles",
            "--resource-name=view")  # fmt: skip
    role = {"apiVersion": f"{RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": f"binder-{namespace}"},
            "rules": [{"apiGroups": [RBAC], "resources": ["clusterroles"], "resourceNames": ["view"],
                       "verbs": ["bind"]}]}  # fmt: skip
    assert kubectl("create", "-f", "-", stdin=role).returncode == 0
    kubectl("create", "rolebinding", "may", "-n", namespace, f"--clusterrole=binder-{namespace}",
            f"--user=bob-{namespace}")  # fmt: skip
    assert bob(*bind, "b4", "--clusterrole=view").returncode == 0
    assert bob(*bind, "b5", "--clusterrole=edit").returncode == 1


def test_verb_escalate_allows_any_rules(bob: Kubectl, kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "role", "escalator", "-n", namespace, "--verb=escalate", f"--resource=roles.{RBAC}")
    kubectl("create", "rolebinding", "may", "-n", namespace, "--role=escalator", f"--user=bob-{namespace}")
    assert bob("create", "role", "wide", "-n", namespace, "--verb=*", "--resource=secrets").returncode == 0
