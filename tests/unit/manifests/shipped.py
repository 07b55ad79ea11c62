"""The shipped manifests as plain documents, without kustomize."""

import copy
from functools import cache
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[3]
MANIFESTS = ROOT / "manifests"
INSTALLED = (
    "base",
    "library",
    "components/certmanager",
    "components/gateway",
    "components/git-fetcher",
    "components/github-tools",
    "components/gitlab-tools",
    "components/gitops-tools",
    "components/grafana-tools",
    "components/ingress",
    "components/kubernetes-mcp-tools",
    "components/loki-tools",
    "components/mutating-policy",
    "components/policies",
    "components/postgres",
    "components/prometheus-tools",
    "components/slack",
    "components/tenant",
    "components/tenant-agents",
    "components/tenant-evidence",
    "components/tenant-history",
    "components/tenant-remediation",
    "components/tenant-workloads",
    "components/tracing",
    "components/workers",
)
CLUSTER_WIDE = (
    "APIService",
    "ClusterRole",
    "ClusterRoleBinding",
    "CustomResourceDefinition",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingWebhookConfiguration",
    "Namespace",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)


LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def documents(path: Path) -> list[dict[str, Any]]:
    """The documents of a file, the caller's own."""
    return copy.deepcopy(_documents(path))


@cache
def _documents(path: Path) -> list[dict[str, Any]]:
    return [document for document in yaml.load_all(path.read_text("utf-8"), LOADER) if document]


def objects(folder: str) -> list[dict[str, Any]]:
    """All objects of the files of a folder."""
    paths = sorted(path for path in (MANIFESTS / folder).glob("*.yaml") if path.name != "kustomization.yaml")
    return [document for path in paths for document in documents(path)]


def installed(*kinds: str) -> list[dict[str, Any]]:
    """All objects that are installed, of some kinds if any are given."""
    found = [obj for folder in INSTALLED for obj in objects(folder)]
    return [obj for obj in found if not kinds or obj["kind"] in kinds]


def configuration() -> dict[str, Any]:
    """The settings of the processes, by topic."""
    (config,) = installed("ConfigMap")
    spec: dict[str, Any] = yaml.safe_load(config["data"]["config.yaml"])["spec"]
    return spec


def named(obj: dict[str, Any]) -> str:
    """Kind and name, as an id of a test."""
    return f"{obj['kind']}-{obj['metadata']['name']}"
