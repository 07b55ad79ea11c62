"""Builds the Kubernetes objects of a tool server's workload as plain data, without any request.

Decision: tokens are files in the pod, in no variable, argument or annotation; a workload that acts as an agent's
ServiceAccount is nobody else, so its pod has no token of an account of its own. And a pod of an MCPServer can do no
more than one that Pod Security `restricted` admits, whoever wrote the object.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from tarsy.controllers.tool_workloads.acting import ACCOUNT, DIRECTORY, KUBECONFIG_KEY, Acting
from tarsy.kube.credentials import LABEL
from tarsy.plan.workload import PORT, TOKEN_KEY, policy_name, workload_name
from tarsy.resources.meta import API_VERSION
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from tarsy.resources.v1alpha1.workload import Amounts, EnvVar, Run

Object = dict[str, Any]
_NAME = "tarsy-tool"
SERVER_LABEL = "tarsy.dev/mcp-server"
RUN_LABEL = "tarsy.dev/run"
WORKLOAD_LABEL = "tarsy.dev/workload"
TTL_SECONDS = 60
STARTS_ASKED = 150
"""Each two seconds: a tool server may take five minutes to listen."""

_USER = 65532
_KUBECONFIG = "KUBECONFIG"
_PORT = "mcp"
_OURS = ("tarsy-operator", "tarsy-worker")
_IN_CLUSTER = ("KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT")


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
            "ports": [{"name": _PORT, "port": PORT, "targetPort": _PORT, "protocol": "TCP"}],
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
                    "ports": [{"port": _PORT, "protocol": "TCP"}],
                }
            ],
            "egress": [{"ports": [{"port": number, "protocol": protocol} for number, protocol in ports]}],
        },
    }


def deployment(server: MCPServer, run: Run, by: Object, *, assigned: bool = False) -> Object:
    """Makes the workload of scope Shared.

    Args:
        server: the MCPServer.
        run: its `spec.run`.
        by: the owner reference.
        assigned: whether the cluster assigns user and group of the pod.
    """
    pod = _pod(server, run, "Always", assigned=assigned)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(server, by),
        "spec": {
            "replicas": 1,
            "revisionHistoryLimit": 1,
            "selector": {"matchLabels": _selector(server.metadata.name)},
            "template": {"metadata": {"labels": labels(server.metadata.name)}, "spec": pod},
        },
    }


def job(
    server: MCPServer,
    run: Run,
    by: Object,
    identity: UUID,
    seconds: int,
    account: str | None = None,
    *,
    assigned: bool = False,
) -> Object:
    """Makes the workload of scope PerRun, which ends after `seconds` if nobody deletes it before.

    Args:
        server: whose it is.
        run: its `spec.run`.
        by: what owns it.
        identity: the run's.
        seconds: how long it may live.
        account: the agent's ServiceAccount that it acts as, by what is in its Secret.
        assigned: whether the cluster assigns user and group of the pod.
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
                "spec": _pod(server, run, "OnFailure", identity, account, assigned=assigned),
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


def _pod(
    server: MCPServer,
    run: Run,
    restart: str,
    identity: UUID | None = None,
    account: str | None = None,
    *,
    assigned: bool,
) -> Object:
    own = run.service_account_name if account is None else None
    token = {"secretName": workload_name(server.metadata.name, identity, account), "defaultMode": 0o440}
    return {
        **({"serviceAccountName": own} if own else {}),
        "automountServiceAccountToken": own is not None,
        "enableServiceLinks": False,
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            **({} if assigned else {"runAsUser": _USER, "runAsGroup": _USER, "fsGroup": _USER}),
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [_container(server, run, acting=account is not None)],
        "volumes": [
            {"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}},
            {"name": "token", "secret": token},
        ],
    }


def _container(server: MCPServer, run: Run, *, acting: bool) -> Object:
    wrapped = server.spec.transport.type == "stdio"
    variables = [_variable(item) for item in run.env if not (acting and item.name == _KUBECONFIG)]
    if acting:
        variables.append({"name": _KUBECONFIG, "value": f"{DIRECTORY}/{KUBECONFIG_KEY}"})
    passed = [variable["name"] for variable in variables]
    command, arguments = _gateway(run, passed) if wrapped else (list(run.command or ()), list(run.args))
    alive: Object = {"httpGet": {"path": "/healthz", "port": _PORT}} if wrapped else {"tcpSocket": {"port": _PORT}}
    return {
        "name": "tool",
        "image": run.image,
        **({"command": [_literal(text) for text in command]} if command else {}),
        **({"args": [_literal(text) for text in arguments]} if arguments else {}),
        **({"env": variables} if variables else {}),
        "ports": [{"name": _PORT, "containerPort": PORT if run.port is None else run.port, "protocol": "TCP"}],
        "readinessProbe": {**alive, "periodSeconds": 5, "timeoutSeconds": 3},
        "startupProbe": {**alive, "periodSeconds": 2, "timeoutSeconds": 5, "failureThreshold": STARTS_ASKED},
        "livenessProbe": {**alive, "periodSeconds": 20, "timeoutSeconds": 5},
        "resources": {"requests": _amounts(run.resources.requests), "limits": _amounts(run.resources.limits)},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "token", "mountPath": DIRECTORY, "readOnly": True},
        ],
    }


def _gateway(run: Run, passed: list[str]) -> tuple[list[str], list[str]]:
    """Makes the container arguments of the gateway, which starts the server's own command with the named variables."""
    if run.service_account_name is not None:
        passed = passed + [name for name in _IN_CLUSTER if name not in passed]
    options = [f"--port={PORT}", f"--token-file={DIRECTORY}/{TOKEN_KEY}", "--json-logs"]
    options += [f"--env={name}" for name in passed]
    return ["tarsy", "mcp-gateway"], [*options, "--", *(run.command or ()), *run.args]


def _variable(item: EnvVar) -> Object:
    if item.value_from is None:
        return {"name": item.name, "value": _literal(item.value or "")}
    ref = item.value_from.secret_key_ref
    return {"name": item.name, "valueFrom": {"secretKeyRef": {"name": ref.name, "key": ref.key}}}


def _literal(text: str) -> str:
    """Escapes a value: the kubelet would replace $(NAME) in it."""
    return text.replace("$(", "$$(")


def _amounts(amounts: Amounts) -> dict[str, str]:
    return {name: text for name, text in (("cpu", amounts.cpu), ("memory", amounts.memory)) if text is not None}
