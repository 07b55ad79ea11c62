"""Writes the ClusterServiceVersion."""

import base64
import copy
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from hack.bundle.objects import ACCOUNT, DEPLOYMENT, Object, Sorted, rules
from hack.chart.artifact_hub import CAPABILITIES, described, samples
from hack.chart.templates import FIXED_IDENTITY, IMAGE

from tarsy.http.aggregated import SERVED
from tarsy.http.models import RECORD_GROUP, RECORD_VERSION

PACKAGE: Final = "tarsy"
SUMMARY: Final = "Investigates alerts with chains of LLM agents that hold MCP tools, as custom resources."
MIN_KUBERNETES: Final = "1.30.0"
CERTIFICATES: Final = "/tmp/k8s-webhook-server/serving-certs"
REGISTRATIONS: Final = frozenset({"admissionregistration.k8s.io", "apiregistration.k8s.io"})
"""API groups that the operator needs no right for: OLM publishes the authority of the certificate itself."""
_WEBHOOK_FIELDS: Final = (
    "admissionReviewVersions",
    "failurePolicy",
    "matchPolicy",
    "reinvocationPolicy",
    "rules",
    "sideEffects",
    "timeoutSeconds",
)
_DESCRIPTION: Final = """\
An alert arrives. A chain of stages, each with one or more LLM agents that hold MCP tools, investigates it. The finding
cites its evidence, and every step is on record.

Before you install it:
- The operator runs in the namespace `tarsy-system` only.
- It needs a Postgres, whose address is in the Secret `tarsy-database` of that namespace.
- Admission policies and network policies are no part of this bundle: apply `beside.yaml` of the release. Without it,
  calls of tools that need approval are never made.
"""


def cluster_service_version(
    found: Sorted, version: str, *, image: str = "", replaces: str | None = None
) -> dict[str, Any]:
    """Returns the ClusterServiceVersion of a version.

    Args:
        found: the rendered objects.
        version: of the product.
        image: of the operator; empty: as manifests/ names it.
        replaces: the version that this one upgrades.
    """
    deployment = _deployment(found, image)
    used = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    spec: dict[str, Any] = {
        "displayName": "TARSy",
        "version": version,
        **({"replaces": f"{PACKAGE}.v{replaces}"} if replaces else {}),
        "description": _DESCRIPTION,
        "maturity": "alpha",
        "minKubeVersion": MIN_KUBERNETES,
        "keywords": ["alerts", "incidents", "investigation", "sre", "llm", "mcp"],
        "provider": {"name": "TARSy operator authors"},
        "icon": [{"base64data": icon(), "mediatype": "image/svg+xml"}],
        "installModes": [
            {"type": mode, "supported": mode == "AllNamespaces"}
            for mode in ("OwnNamespace", "SingleNamespace", "MultiNamespace", "AllNamespaces")
        ],
        "relatedImages": [{"name": "operator", "image": used}],
        "customresourcedefinitions": {"owned": list(_kinds(found))},
        "apiservicedefinitions": {"owned": list(_aggregated(deployment))},
        "webhookdefinitions": list(_webhooks(found)),
        "install": {
            "strategy": "deployment",
            "spec": {
                "permissions": [{"serviceAccountName": ACCOUNT, "rules": rules(found.csv, "Role")}],
                "clusterPermissions": [{"serviceAccountName": ACCOUNT, "rules": list(_cluster_rules(found))}],
                "deployments": [deployment],
            },
        },
    }
    return {
        "apiVersion": "operators.coreos.com/v1alpha1",
        "kind": "ClusterServiceVersion",
        "metadata": {
            "name": f"{PACKAGE}.v{version}",
            "namespace": "placeholder",
            "annotations": {
                "alm-examples": json.dumps(samples(), indent=2),
                "artifacthub.io/license": "Apache-2.0",
                "capabilities": CAPABILITIES,
                "categories": "Monitoring, AI/Machine Learning",
                "containerImage": used,
                "description": SUMMARY,
                "operatorframework.io/suggested-namespace": "tarsy-system",
                "support": "TARSy operator authors",
            },
        },
        "spec": spec,
    }


def icon() -> str:
    """Returns the icon in base64."""
    return base64.b64encode((Path(__file__).parent / "icon.svg").read_bytes()).decode()


def _deployment(found: Sorted, image: str) -> dict[str, Any]:
    (rendered,) = (obj for obj in found.csv.values() if obj["kind"] == "Deployment")
    obj = copy.deepcopy(dict(rendered))
    pod = obj["spec"]["template"]["spec"]
    for name in FIXED_IDENTITY:  # OpenShift chooses user and group; elsewhere the image names them
        pod["securityContext"].pop(name, None)
    (container,) = pod["containers"]
    if image and IMAGE.match(container["image"]):
        container["image"] = image
    container["args"] += [f"--record-tls={CERTIFICATES}", f"--admission-tls={CERTIFICATES}"]
    return {"name": obj["metadata"]["name"], "label": obj["metadata"]["labels"], "spec": obj["spec"]}


def _cluster_rules(found: Sorted) -> Iterator[dict[str, Any]]:
    return (rule for rule in rules(found.csv, "ClusterRole") if not REGISTRATIONS.intersection(rule["apiGroups"]))


def _kinds(found: Sorted) -> Iterator[dict[str, Any]]:
    for obj in found.carried.values():
        if obj["kind"] == "CustomResourceDefinition":
            yield listed(obj)


def listed(crd: Object) -> dict[str, Any]:
    """Returns the entry of a kind."""
    names = crd["spec"]["names"]
    (version,) = crd["spec"]["versions"]
    return {
        "name": crd["metadata"]["name"],
        "kind": names["kind"],
        "version": version["name"],
        "displayName": names["kind"],
        "description": described(crd),
    }


def _aggregated(deployment: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    (port,) = (
        one["containerPort"]
        for one in deployment["spec"]["template"]["spec"]["containers"][0]["ports"]
        if one["name"] == "record"
    )
    for name, (kind, _) in SERVED.items():
        if "/" not in name:
            yield {
                "name": name,
                "kind": kind,
                "group": RECORD_GROUP,
                "version": RECORD_VERSION,
                "displayName": kind,
                "description": f"{kind}, as the record has them; read only.",
                "deploymentName": DEPLOYMENT,
                "containerPort": port,
            }


def _webhooks(found: Sorted) -> Iterator[dict[str, Any]]:
    (configured,) = (obj for obj in found.olm.values() if obj["kind"] == "MutatingWebhookConfiguration")
    (service,) = (obj for key, obj in found.olm.items() if key[1] == "Service" and key[3] == "tarsy-admission")
    (port,) = service["spec"]["ports"]
    for hook in configured["webhooks"]:
        yield {
            "type": "MutatingAdmissionWebhook",
            "generateName": hook["name"],
            "deploymentName": DEPLOYMENT,
            "containerPort": port["port"],
            "targetPort": port["targetPort"],
            "webhookPath": hook["clientConfig"]["service"]["path"],
            **{name: hook[name] for name in _WEBHOOK_FIELDS},
        }
