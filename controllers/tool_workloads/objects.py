"""Builds the Kubernetes objects of a tool server's workload as plain data, without any request.

Decision: tokens are files in the pod, in no variable, argument or annotation; a workload that acts as an agent's
ServiceAccount is nobody else, so its pod has no token of an account of its own. And a pod of an MCPServer can do no
more than one that Pod Security `restricted` admits, whoever wrote the object.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from tarsy.controllers.tool_workloads.acting import ACCOUNT, Acting
from tarsy.controllers.tool_workloads.pods import PORT_NAME, PodRules, pod
from tarsy.kube.credentials import LABEL
from tarsy.plan.workload import PORT, TOKEN_KEY, policy_name, workload_name
from tarsy.resources.meta import API_VERSION
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from tarsy.resources.v1alpha1.workload import Run

Object = dict[str, Any]
_NAME = "tarsy-tool"
SERVER_LABEL = "tarsy.dev/mcp-server"
RUN_LABEL = "tarsy.dev/run"
WORKLOAD_LABEL = "tarsy.dev/workload"
TTL_SECONDS = 60

_OURS = ("tarsy-operator", "tarsy-worker")


def labels(server: str, run: UUID | None = None, account: str | None = None) -> dict[str, str]:
    """Makes the labels of a workload's objects and pods.

    Args:
        server: name of the MCPServer.
        run: uid of the run; None for scope Shared.
        account: the agent's ServiceAccount that it acts as, if any.
    """
    return {"app.kubernetes.io/managed-by": "tarsy-operator", **_selector(server, run, account)}


def owner(obj: Mapping[str, Any]) -> Object:
    """Makes a reference to an owner, with which the owned object is deleted."""
    meta = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }


def owned_by(server: MCPServer) -> Object:
    """Makes a reference to an MCPServer as owner."""
    meta = {"name": server.metadata.name, "uid": server.metadata.uid or ""}
    return owner({"apiVersion": API_VERSION, "kind": server.KIND, "metadata": meta})


def secret(server: MCPServer, by: Object, token: str, run: UUID | None = None, acting: Acting | None = None) -> Object:
    """Makes the Secret with the token of the callers and, where it acts as an agent's account, that account's.

    Args:
        server: the MCPServer.
        by: the owner reference.
        token: that callers present.
        run: uid of the run; None for scope Shared.
        acting: the credentials of the agent's account, if any.
    """
    meta = _metadata(server, by, run, acting.account if acting else None)
    meta["labels"][LABEL] = "true"
    texts = {TOKEN_KEY: token}
    if acting is not None:
        meta["annotations"] = acting.annotations
        texts |= acting.files
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "stringData": texts}


def service(server: MCPServer, by: Object, run: UUID | None = None, account: str | None = None) -> Object:
    """Makes the Service of the workload.

    Args:
        server: the MCPServer.
        by: the owner reference.
        run: uid of the run; None for scope Shared.
        account: the agent's ServiceAccount that it acts as, if any.
    """
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(server, by, run, account),
        "spec": {
            "selector": _selector(server.metadata.name, run, account),
            "ports": [{"name": PORT_NAME, "port": PORT, "targetPort": PORT_NAME, "protocol": "TCP"}],
        },
    }


def network_policy(server: MCPServer, by: Object, operator_namespace: str) -> Object:
    """Makes the NetworkPolicy: only TARSy's pods reach the workload; it reaches DNS, HTTPS and the API server.

    Args:
        server: the MCPServer.
        by: the owner reference.
        operator_namespace: of the operator and the workers.
    """
    ours = {"key": "app.kubernetes.io/name", "operator": "In", "values": list(_OURS)}
    place = {"kubernetes.io/metadata.name": operator_namespace}
    ports = [(53, "UDP"), (53, "TCP"), (443, "TCP"), (6443, "TCP")]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {**_metadata(server, by), "name": policy_name(server.metadata.name)},
        "spec": {
            "podSelector": {"matchLabels": {SERVER_LABEL: server.metadata.name, "app.kubernetes.io/name": _NAME}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {
                    "from": [
                        {"namespaceSelector": {"matchLabels": place}, "podSelector": {"matchExpressions": [ours]}}
                    ],
                    "ports": [{"port": PORT_NAME, "protocol": "TCP"}],
                }
            ],
            "egress": [{"ports": [{"port": number, "protocol": protocol} for number, protocol in ports]}],
        },
    }


def deployment(server: MCPServer, run: Run, by: Object, rules: PodRules) -> Object:
    """Makes the workload of scope Shared.

    Args:
        server: the MCPServer.
        run: its `spec.run`.
        by: the owner reference.
        rules: of the cluster, about its pod.
    """
    template = pod(server, run, "Always", rules)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(server, by),
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 1,
            "selector": {"matchLabels": _selector(server.metadata.name)},
            "template": {"metadata": {"labels": labels(server.metadata.name)}, "spec": template},
        },
    }


def job(
    server: MCPServer,
    run: Run,
    by: Object,
    identity: UUID,
    seconds: int,
    rules: PodRules,
    account: str | None = None,
) -> Object:
    """Makes the workload of scope PerRun, which ends after `seconds` if nobody deletes it before.

    Args:
        server: whose it is.
        run: its `spec.run`.
        by: what owns it.
        identity: the run's.
        seconds: how long it may live.
        rules: of the cluster, about its pod.
        account: the agent's ServiceAccount that it acts as, by what is in its Secret.
    """
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(server, by, identity, account),
        "spec": {
            "activeDeadlineSeconds": max(1, seconds),
            "ttlSecondsAfterFinished": TTL_SECONDS,
            "backoffLimit": 3,
            "template": {
                "metadata": {"labels": labels(server.metadata.name, identity, account)},
                "spec": pod(server, run, "OnFailure", rules, identity, account),
            },
        },
    }


def _metadata(server: MCPServer, by: Object, run: UUID | None = None, account: str | None = None) -> Object:
    found = {
        "name": workload_name(server.metadata.name, run, account),
        "namespace": server.metadata.namespace,
        "labels": labels(server.metadata.name, run, account),
        "ownerReferences": [by],
    }
    return found if account is None else {**found, "annotations": {ACCOUNT: account}}


def _selector(server: str, run: UUID | None = None, account: str | None = None) -> dict[str, str]:
    found = {"app.kubernetes.io/name": _NAME, SERVER_LABEL: server}
    if run is not None:
        found[RUN_LABEL] = str(run)
    if account is not None:
        found[WORKLOAD_LABEL] = workload_name(server, run, account)
    return found
