"""The Kubernetes objects of a tool server's workload, as plain data: nothing here asks or writes.

Decision: the token is a file in the pod, in no variable, argument or annotation; and a pod of an MCPServer can do no
more than one that Pod Security `restricted` admits, whoever wrote the object.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from tarsy.kube.credentials import LABEL
from tarsy.plan.workload import PORT, TOKEN_KEY, policy_name, workload_name
from tarsy.resources.meta import API_VERSION
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from tarsy.resources.v1alpha1.workload import Amounts, EnvVar, Run

Object = dict[str, Any]
NAME = "tarsy-tool"
SERVER_LABEL = "tarsy.dev/mcp-server"
RUN_LABEL = "tarsy.dev/run"
TTL_SECONDS = 60
_USER = 65532
_TOKEN_DIR = "/var/run/tarsy/workload"
_PORT = "mcp"
_OURS = ("tarsy-operator", "tarsy-worker")
_IN_CLUSTER = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


def labels(server: str, run: UUID | None = None) -> dict[str, str]:
    """The labels of a workload's objects and pods."""
    found = {"app.kubernetes.io/name": NAME, "app.kubernetes.io/managed-by": "tarsy-operator", SERVER_LABEL: server}
    return found if run is None else {**found, RUN_LABEL: str(run)}


def owner(obj: Mapping[str, Any]) -> Object:
    """A reference by which what `obj` owns goes with it."""
    meta = obj["metadata"]
    return {
        "apiVersion": obj["apiVersion"],
        "kind": obj["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }


def owned_by(server: MCPServer) -> Object:
    """A reference to an MCPServer as owner."""
    meta = {"name": server.metadata.name, "uid": server.metadata.uid or ""}
    return owner({"apiVersion": API_VERSION, "kind": server.KIND, "metadata": meta})


def secret(server: MCPServer, by: Object, token: str, run: UUID | None = None) -> Object:
    """The Secret with the token that its callers bring."""
    meta = _metadata(server, by, run)
    meta["labels"][LABEL] = "true"
    return {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": "Opaque", "stringData": {TOKEN_KEY: token}}


def service(server: MCPServer, by: Object, run: UUID | None = None) -> Object:
    """The Service that it is reached by."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _metadata(server, by, run),
        "spec": {
            "selector": _selector(server, run),
            "ports": [{"name": _PORT, "port": PORT, "targetPort": _PORT, "protocol": "TCP"}],
        },
    }


def network_policy(server: MCPServer, by: Object, operator_namespace: str) -> Object:
    """Who reaches its pods, and what they reach: TARSy's own pods; DNS and what is behind HTTPS, the API server too."""
    ours = {"key": "app.kubernetes.io/name", "operator": "In", "values": list(_OURS)}
    place = {"kubernetes.io/metadata.name": operator_namespace}
    ports = [(53, "UDP"), (53, "TCP"), (443, "TCP"), (6443, "TCP")]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {**_metadata(server, by), "name": policy_name(server.metadata.name)},
        "spec": {
            "podSelector": {"matchLabels": {SERVER_LABEL: server.metadata.name, "app.kubernetes.io/name": NAME}},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [
                {
                    "from": [
                        {"namespaceSelector": {"matchLabels": place}, "podSelector": {"matchExpressions": [ours]}}
                    ],
                    "ports": [{"port": _PORT, "protocol": "TCP"}],
                }
            ],
            "egress": [{"ports": [{"port": number, "protocol": protocol} for number, protocol in ports]}],
        },
    }


def deployment(server: MCPServer, run: Run, by: Object) -> Object:
    """The workload of scope Shared."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(server, by),
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 1,
            "selector": {"matchLabels": _selector(server)},
            "template": {"metadata": {"labels": labels(server.metadata.name)}, "spec": _pod(server, run, "Always")},
        },
    }


def job(server: MCPServer, run: Run, by: Object, identity: UUID, seconds: int) -> Object:
    """The workload of scope PerRun, which ends after `seconds` if nobody ends it before."""
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": _metadata(server, by, identity),
        "spec": {
            "activeDeadlineSeconds": max(1, seconds),
            "ttlSecondsAfterFinished": TTL_SECONDS,
            "backoffLimit": 3,
            "template": {
                "metadata": {"labels": labels(server.metadata.name, identity)},
                "spec": _pod(server, run, "OnFailure", identity),
            },
        },
    }


def _metadata(server: MCPServer, by: Object, run: UUID | None = None) -> Object:
    return {
        "name": workload_name(server.metadata.name, run),
        "namespace": server.metadata.namespace,
        "labels": labels(server.metadata.name, run),
        "ownerReferences": [by],
    }


def _selector(server: MCPServer, run: UUID | None = None) -> dict[str, str]:
    found = {"app.kubernetes.io/name": NAME, SERVER_LABEL: server.metadata.name}
    return found if run is None else {**found, RUN_LABEL: str(run)}


def _pod(server: MCPServer, run: Run, restart: str, identity: UUID | None = None) -> Object:
    account = {"serviceAccountName": run.service_account_name} if run.service_account_name else {}
    token = {"secretName": workload_name(server.metadata.name, identity), "defaultMode": 0o440}
    return {
        **account,
        "automountServiceAccountToken": run.service_account_name is not None,
        "enableServiceLinks": False,
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _USER,
            "runAsGroup": _USER,
            "fsGroup": _USER,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(server, run)],
        "volumes": [
            {"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}},
            {"name": "token", "secret": token},
        ],
    }


def _container(server: MCPServer, run: Run) -> Object:
    wrapped = server.spec.transport.type == "stdio"
    command, arguments = _gateway(run) if wrapped else (list(run.command or ()), list(run.args))
    alive: Object = {"httpGet": {"path": "/healthz", "port": _PORT}} if wrapped else {"tcpSocket": {"port": _PORT}}
    return {
        "name": "tool",
        "image": run.image,
        **({"command": [_literal(text) for text in command]} if command else {}),
        **({"args": [_literal(text) for text in arguments]} if arguments else {}),
        **({"env": [_variable(item) for item in run.env]} if run.env else {}),
        "ports": [{"name": _PORT, "containerPort": PORT if run.port is None else run.port, "protocol": "TCP"}],
        "readinessProbe": {**alive, "periodSeconds": 5, "timeoutSeconds": 3},
        "livenessProbe": {**alive, "initialDelaySeconds": 15, "periodSeconds": 20, "timeoutSeconds": 5},
        "resources": {"requests": _amounts(run.resources.requests), "limits": _amounts(run.resources.limits)},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "token", "mountPath": _TOKEN_DIR, "readOnly": True},
        ],
    }


def _gateway(run: Run) -> tuple[list[str], list[str]]:
    """The gateway before the server's own command; which variables go on to it, and none of their values."""
    passed = [item.name for item in run.env]
    if run.service_account_name is not None:
        passed += [name for name in _IN_CLUSTER if name not in passed]
    options = [f"--port={PORT}", f"--token-file={_TOKEN_DIR}/{TOKEN_KEY}", "--json-logs"]
    options += [f"--env={name}" for name in passed]
    return ["tarsy", "mcp-gateway"], [*options, "--", *(run.command or ()), *run.args]


def _variable(item: EnvVar) -> Object:
    if item.value_from is None:
        return {"name": item.name, "value": _literal(item.value or "")}
    ref = item.value_from.secret_key_ref
    return {"name": item.name, "valueFrom": {"secretKeyRef": {"name": ref.name, "key": ref.key}}}


def _literal(text: str) -> str:
    """As it is: the kubelet would put other variables in place of $(NAME)."""
    return text.replace("$(", "$$(")


def _amounts(amounts: Amounts) -> dict[str, str]:
    return {name: text for name, text in (("cpu", amounts.cpu), ("memory", amounts.memory)) if text is not None}
