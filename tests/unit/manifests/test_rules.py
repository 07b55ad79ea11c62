"""Every rule of every shipped role, read one by one: it names what exists, once, and lets nobody become another.

What the accounts may do in all is asked of an API server in `integration/manifests`.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from embedded_kubeapi.builtin.catalog import builtin_resources
from for_each import for_each
from tarsy.evidence.reading import KINDS as KINDS_READ
from tarsy.kubernetes_tools.kinds import GITOPS_KINDS, MEASURED_KINDS
from tarsy.resources.meta import GROUP
from tarsy.resources.v1alpha1 import KINDS
from unit.manifests.shipped import installed, named

RECORD = "record.tarsy.dev"
VERBS = {"get", "list", "watch", "create", "update", "patch", "delete"}
OWN_VERBS = {(name, "use") for name in ("chains", "llmproviders", "mcpservers")} | {
    ("alerts", "attribute"),
    ("investigations", "attribute"),
    ("chatmessages", "attribute"),
    ("evalruns", "attribute"),
    ("chains", "promote"),
    ("mcpservers", "approve"),
    ("toolapprovals", "attribute"),
}
"""Verbs that only this project asks for."""
FOREIGN_WRITES = {
    ("events", "create"),
    ("leases", "create"),
    ("leases", "update"),
    ("mutatingwebhookconfigurations", "update"),
    ("apiservices", "update"),
    ("subjectaccessreviews", "create"),
    ("secrets", "create"),
    ("secrets", "delete"),
    ("serviceaccounts/token", "create"),
    ("tokenreviews", "create"),
}
"""All that is written of other groups than this project's. The reviews are questions."""
RUNNER = "tarsy-tool-runner"
WORKLOADS = {("jobs", "create"), ("jobs", "delete"), ("secrets", "patch")} | {
    (name, verb) for name in ("deployments", "services", "networkpolicies") for verb in ("create", "patch", "delete")
}
"""What is written of them beside, by the operator in namespaces that let it run tool servers."""
REMEDIATOR = "tarsy-remediator"
REMEDIES = {("configmaps", "patch"), ("deployments", "patch")} | {
    (f"{name}/scale", verb) for name in ("deployments", "statefulsets") for verb in ("patch", "update")
}
"""What agents write after people approved it, in a namespace that binds the Role: each can be taken back."""
BY_NAME = {"leases", "mutatingwebhookconfigurations", "apiservices"}
"""Written only under the names that rules give; one that does not exist yet has no name to give."""

ROLES = installed("Role", "ClusterRole")


def rules() -> Iterator[Any]:
    for role in ROLES:
        for index, rule in enumerate(role["rules"]):
            yield pytest.param(role, rule, id=f"{named(role)}-{index}")


def resources() -> set[tuple[str, str]]:
    """Group and resource, or resource/subresource, of all that there is."""
    found = {(GROUP, kind.PLURAL) for kind in KINDS.values()}
    found |= {(GROUP, f"{kind.PLURAL}/status") for kind in KINDS.values()}
    found |= {(RECORD, f"investigations/{name}") for name in ("timeline", "trace", "events", "review", "score")}
    listed = (
        "calibration",
        "changes",
        "mcpservers/tools",
        "objects",
        "queue",
        "reviews",
        "skills/text",
        "transitions",
        "triage",
        "toolapprovals/evidence",
        "evalsuites/scores",
        "workers",
    )
    found |= {(RECORD, name) for name in listed}
    found |= {(kind.group.split("/")[2], kind.plural) for kind in KINDS_READ if kind.optional}
    tools = (*MEASURED_KINDS, *GITOPS_KINDS)  # of the metrics API and of other projects
    found |= {(kind.api.split("/")[1], kind.plural) for kind in tools}
    for resource in builtin_resources():
        found |= {(resource.group, resource.plural)}
        found |= {(resource.group, f"{resource.plural}/{sub}") for sub in resource.subresources}
    return found


EXISTING = resources()
CUSTOM = {"cert-manager.io", "acme.cert-manager.io", "gateway.networking.k8s.io", "keda.sh", "external-secrets.io"}
"""Groups of other projects that the component kubernetes-mcp-tools reads, where a cluster has them."""
READERS_OF_CUSTOM = {"tarsy-kubernetes-mcp-tools": CUSTOM | {"monitoring.coreos.com"}}


def test_there_are_rules_to_read() -> None:
    assert len(ROLES) >= 8 and sum(len(role["rules"]) for role in ROLES) >= 30


@for_each(("role", "rule"), list(rules()))
def test_a_rule_names_what_exists(role: dict[str, Any], rule: dict[str, Any]) -> None:
    (group,) = rule["apiGroups"]
    if group in READERS_OF_CUSTOM.get(role["metadata"]["name"], ()):
        assert set(rule["verbs"]) == {"get", "list"} and rule["resources"]
        return
    assert {(group, name) for name in rule["resources"]} <= EXISTING
    own = {(name, verb) for name in rule["resources"] for verb in rule["verbs"] if verb not in VERBS}
    assert own <= (OWN_VERBS if group == GROUP else set())


@for_each(("role", "rule"), list(rules()))
def test_a_rule_writes_nothing_of_others_but_what_is_listed(role: dict[str, Any], rule: dict[str, Any]) -> None:
    if rule["apiGroups"] in ([GROUP], [RECORD]):
        return
    writes = {
        (name, verb) for name in rule["resources"] for verb in rule["verbs"] if verb not in ("get", "list", "watch")
    }
    allowed = {RUNNER: WORKLOADS, REMEDIATOR: REMEDIES}.get(role["metadata"]["name"], set())
    assert writes <= FOREIGN_WRITES | allowed
    for name, verb in writes:
        assert verb == "create" or name not in BY_NAME or rule["resourceNames"]


@for_each(("role", "rule"), list(rules()))
def test_a_rule_with_names_has_only_verbs_that_know_a_name(role: dict[str, Any], rule: dict[str, Any]) -> None:
    if "resourceNames" in rule:
        assert all(rule["resourceNames"])
        # Of a subresource that is created, the name is in the path.
        nameless = {"list", "watch"} if all("/" in name for name in rule["resources"]) else {"create", "list", "watch"}
        assert nameless.isdisjoint(rule["verbs"])


def test_tokens_are_asked_for_of_named_accounts_and_secrets_written_by_the_operator_where_a_namespace_says_so() -> None:
    found = {
        (role["kind"], role["metadata"]["name"], name, verb): rule.get("resourceNames", [])
        for role in ROLES
        for rule in role["rules"]
        for name in rule["resources"]
        for verb in rule["verbs"]
        if name == "serviceaccounts/token" or (name == "secrets" and verb != "get")
    }
    assert found == {
        ("Role", "tarsy-agent-tokens", "serviceaccounts/token", "create"): ["tarsy-agent"],
        ("Role", "tarsy-remediator-tokens", "serviceaccounts/token", "create"): ["tarsy-remediator"],
        ("ClusterRole", "tarsy-run-secrets", "secrets", "create"): [],
        ("ClusterRole", "tarsy-run-secrets", "secrets", "delete"): [],
        ("ClusterRole", RUNNER, "secrets", "create"): [],
        ("ClusterRole", RUNNER, "secrets", "patch"): [],
        ("ClusterRole", RUNNER, "secrets", "delete"): [],
    }
    for role in ("tarsy-run-secrets", RUNNER):
        (binding,) = (b for b in installed("RoleBinding", "ClusterRoleBinding") if b["roleRef"]["name"] == role)
        assert binding["kind"] == "RoleBinding"
        assert [subject["name"] for subject in binding["subjects"]] == ["tarsy-operator"]


@for_each("role", ROLES, ids=named)
def test_a_role_says_nothing_twice(role: dict[str, Any]) -> None:
    said = Counter(
        (group, name, verb, tuple(rule.get("resourceNames", ())))
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for name in rule["resources"]
        for verb in rule["verbs"]
    )
    assert [entry for entry, times in said.items() if times > 1] == []


@for_each("role", ROLES, ids=named)
def test_configuration_is_written_by_authors_only(role: dict[str, Any]) -> None:
    configuration = {"agents", "alertroutes", "chains", "investigationdefaults", "llmproviders", "mcpservers", "skills"}
    writes = {"create", "update", "patch", "delete"}
    found = [rule for rule in role["rules"] if configuration & set(rule["resources"]) and writes & set(rule["verbs"])]
    one_field = ("tarsy-promoter", "tarsy-tool-acceptor", "tarsy-operator-acceptances")  # what policies limit
    assert bool(found) == (role["metadata"]["name"] in ("tarsy-author", *one_field))


def test_each_binding_binds_one_role_to_accounts_of_this_installation() -> None:
    names = {(role["kind"], role["metadata"]["name"]) for role in ROLES}
    for binding in installed("RoleBinding", "ClusterRoleBinding"):
        ref = binding["roleRef"]
        # Every cluster has this one in kube-system.
        assert (ref["kind"], ref["name"]) in names | {("Role", "extension-apiserver-authentication-reader")}
        for subject in binding["subjects"]:
            if subject["kind"] == "ServiceAccount" and subject["name"] == REMEDIATOR == ref["name"]:
                assert "namespace" not in subject, "kustomize sets that of the tenant, as for the account"
            elif subject["kind"] == "ServiceAccount":
                assert subject["namespace"] in ("tarsy-system", "tarsy-library")
            else:  # who is signed in may use the library's chains, and nothing else
                assert (subject["name"], ref["name"]) == ("system:authenticated", "tarsy-library-user")


def test_every_account_of_a_pod_exists_and_is_mounted_only_where_it_is_used() -> None:
    accounts = {obj["metadata"]["name"]: obj for obj in installed("ServiceAccount")}
    assert all(account["automountServiceAccountToken"] is False for account in accounts.values())
    for workload in installed("Deployment", "StatefulSet"):
        pod = workload["spec"]["template"]["spec"]
        assert pod["automountServiceAccountToken"] == ("serviceAccountName" in pod)
        assert pod.get("serviceAccountName", next(iter(accounts))) in accounts
