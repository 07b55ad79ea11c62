"""What `kubectl apply -k` does with the shipped manifests, and what their accounts may do then."""

import json
import os
import time
from pathlib import Path

import pytest

from apis import LocalApi
from integration.manifests.conftest import MANIFESTS, Kubectl, account, documents
from tarsy.resources.v1alpha1 import KINDS
from unit.manifests.shipped import objects

pytestmark = pytest.mark.timeout(480)

SEEN = {(plural, verb) for plural in (kind.PLURAL for kind in KINDS.values()) for verb in ("get", "list", "watch")}
EVERYWHERE = {
    *((f"{plural}.tarsy.dev", verb) for plural, verb in SEEN),
    *((f"{kind.PLURAL}.tarsy.dev/status", "patch") for kind in KINDS.values()),
    *(
        (f"{plural}.tarsy.dev", verb)
        for plural in ("alerts", "evalruns", "investigations", "toolapprovals")
        for verb in ("create", "attribute", "patch", "delete")
    ),
    ("chatmessages.tarsy.dev", "patch"),
    *(("namespaces", verb) for verb in ("get", "list", "watch")),
    ("configmaps", "get"),
    ("events", "create"),
    *(("customresourcedefinitions.apiextensions.k8s.io", verb) for verb in ("list", "watch")),
    ("tokenreviews.authentication.k8s.io", "create"),
    ("subjectaccessreviews.authorization.k8s.io", "create"),
    *(
        ("mutatingwebhookconfigurations.admissionregistration.k8s.io[tarsy-admission]", verb)
        for verb in ("get", "update")
    ),
    *(("apiservices.apiregistration.k8s.io[v1alpha1.record.tarsy.dev]", verb) for verb in ("get", "update")),
}
LEASES = {
    ("leases.coordination.k8s.io", "create"),
    ("leases.coordination.k8s.io[tarsy-controller]", "get"),
    ("leases.coordination.k8s.io[tarsy-controller]", "update"),
}
OWN_DEPLOYMENT = {("deployments.apps[tarsy-operator]", "get")}
"""It runs the operator's image, which gateways of tool servers run too."""
SECRETS = {("secrets", "get")}
SHIPPED_CHAINS = {obj["metadata"]["name"] for obj in objects("library") if obj["kind"] == "Chain"}
LIBRARY = {(f"chains.tarsy.dev[{named}]", "use") for named in SHIPPED_CHAINS} | {
    ("mcpservers.tarsy.dev[kubernetes]", "use")
}
"""What everybody may do in tarsy-library."""


@pytest.fixture
def operator(installed: LocalApi) -> Path:
    return account(installed, "tarsy-system", "tarsy-operator")


@pytest.fixture
def tools(installed: LocalApi) -> Path:
    return account(installed, "tarsy-library", "kubernetes-tools")


def rights(kubectl: Kubectl, who: Path, namespace: str) -> set[tuple[str, str]]:
    """All that `who` may do in `namespace` beyond what everyone may: (resource.group[name], verb)."""
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectRulesReview",
        "spec": {"namespace": namespace},
    }
    # kubectl from 1.27 on lists CRDs before it validates, which this account may not.
    done = kubectl("create", "-f", "-", "-o", "json", "--validate=false", kubeconfig=who, stdin=json.dumps(review))
    found = set()
    for rule in json.loads(done.stdout)["status"]["resourceRules"]:
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                plural, _, subresource = resource.partition("/")
                full = f"{plural}.{group}" if group else plural
                full += f"/{subresource}" if subresource else ""
                names = [f"{full}[{name}]" for name in rule.get("resourceNames", ())] or [full]
                found |= {(name, verb) for name in names for verb in rule["verbs"]}
    return {(name, verb) for name, verb in found if not name.startswith("selfsubject")}


@pytest.mark.newer_api  # the fixture takes a webhook from older servers
def test_kubectl_diff_is_clean_after_apply(installed: LocalApi, kubectl: Kubectl) -> None:
    done = kubectl("diff", "-k", str(MANIFESTS / "library"), ok=False)
    assert (done.returncode, done.stdout) == (0, "")


def test_with_workers_of_their_own_the_operator_runs_no_investigation(kubectl: Kubectl) -> None:
    built = kubectl("kustomize", str(MANIFESTS / "overlays" / "workers")).stdout
    args = {
        obj["metadata"]["name"]: obj["spec"]["template"]["spec"]["containers"][0].get("args")
        for obj in documents(built)
        if obj["kind"] == "Deployment"
    }
    assert args["tarsy-operator"][0] == "run" and "--places=0" in args["tarsy-operator"]
    assert args["tarsy-worker"][0] == "worker"


def test_a_worker_reads_what_runs_name_and_writes_nothing(installed: LocalApi, kubectl: Kubectl) -> None:
    for name in ("serviceaccount", "clusterrole"):
        kubectl("apply", "-f", str(MANIFESTS / "components" / "workers" / f"{name}.yaml"))
    worker = account(installed, "tarsy-system", "tarsy-worker")
    deadline = time.monotonic() + 60  # the authorizer sees a binding through a watch of its own
    while rights(kubectl, worker, "shop") != {("configmaps", "get")}:
        assert time.monotonic() < deadline
    assert rights(kubectl, worker, "tarsy-library") == {("configmaps", "get")} | SECRETS | LIBRARY
    assert rights(kubectl, worker, "tarsy-system") == {("configmaps", "get")}


@pytest.mark.parametrize("sample", ["llmprovider-openai", "llmprovider-local", "database"])
def test_a_sample_is_accepted(installed: LocalApi, kubectl: Kubectl, sample: str) -> None:
    kubectl(
        "apply", "-f", str(MANIFESTS / "samples" / "fill-in" / f"{sample}.yaml"), "--validate=false", "--dry-run=server"
    )


def test_the_operator_may_do_exactly_what_it_needs_in_a_namespace(kubectl: Kubectl, operator: Path) -> None:
    assert rights(kubectl, operator, "shop") == EVERYWHERE


def test_the_operator_may_hold_its_lease_and_see_its_image_in_its_own_namespace_only(
    kubectl: Kubectl, operator: Path
) -> None:
    assert rights(kubectl, operator, "tarsy-system") == EVERYWHERE | LEASES | OWN_DEPLOYMENT


def test_the_operator_may_get_secrets_of_the_library_but_not_list_them(kubectl: Kubectl, operator: Path) -> None:
    assert rights(kubectl, operator, "tarsy-library") == EVERYWHERE | SECRETS | LIBRARY


@pytest.mark.heavy("kubectl applies it; the unit tests have the manifests")
def test_a_tenant_lets_the_operator_get_its_secrets_by_the_component(
    installed: LocalApi, kubectl: Kubectl, operator: Path, tmp_path: Path
) -> None:
    kubectl("create", "namespace", "payments")
    assert rights(kubectl, operator, "payments") == EVERYWHERE
    root = tmp_path.resolve()
    component = os.path.relpath(MANIFESTS / "components" / "tenant", root)  # kustomize takes no absolute path
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": "payments",
        "components": [component],
    }
    (root / "kustomization.yaml").write_text(json.dumps(kustomization))
    kubectl("apply", "-k", str(root))
    deadline = time.monotonic() + 60  # the authorizer sees a binding through a watch of its own
    while rights(kubectl, operator, "payments") != EVERYWHERE | SECRETS:
        assert time.monotonic() < deadline
    assert rights(kubectl, operator, "shop") == EVERYWHERE


@pytest.mark.sweep("another right that is not in the list beside it")
@pytest.mark.parametrize(
    "request_",
    [
        ("get", "secrets", "--all-namespaces"),
        ("get", "secret", "any", "-n", "shop"),
        ("get", "secrets", "-n", "tarsy-library"),
        ("get", "configmaps", "-n", "shop"),
        ("get", "pods", "-n", "shop"),
        ("delete", "chain", "kubernetes", "-n", "tarsy-library"),
        ("create", "deployment", "any", "--image=any", "-n", "shop"),
        ("create", "serviceaccount", "any", "-n", "shop"),
        ("get", "namespaces", "--as=system:admin", "--as-group=system:masters"),
    ],
    ids=" ".join,
)
def test_the_operator_is_refused_what_it_does_not_need(
    kubectl: Kubectl, operator: Path, request_: tuple[str, ...]
) -> None:
    done = kubectl(*request_, kubeconfig=operator, ok=False)
    assert done.returncode == 1
    assert "is forbidden: User" in done.stderr


def test_the_tools_read_workloads_and_no_secrets(kubectl: Kubectl, tools: Path) -> None:
    found = rights(kubectl, tools, "shop")
    assert {verb for _, verb in found} == {"get", "list"}
    assert {("pods", "list"), ("pods/log", "get"), ("deployments.apps", "get"), ("nodes", "list")} <= found
    assert not {name for name, _ in found if name.startswith(("secrets", "roles", "leases")) or "tarsy.dev" in name}


@pytest.mark.heavy("kubectl applies it; the unit tests have the manifests")
def test_argo_cds_settings_take_the_health_checks_beside_what_is_there(installed: LocalApi, kubectl: Kubectl) -> None:
    kubectl("create", "namespace", "argocd")
    kubectl("create", "configmap", "argocd-cm", "-n", "argocd", "--from-literal=url=https://argocd.example.com")
    patch = ("--patch-file", str(MANIFESTS / "gitops" / "argocd.yaml"))
    kubectl("patch", "configmap", "argocd-cm", "-n", "argocd", *patch)
    found = json.loads(kubectl("get", "configmap", "argocd-cm", "-n", "argocd", "-o", "json").stdout)["data"]
    assert found["url"] == "https://argocd.example.com"
    assert "obj.metadata.generation" in found["resource.customizations.health.tarsy.dev_MCPServer"]
