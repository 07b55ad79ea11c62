"""Builds the pod of a tool server's workload as plain data.

Decision: a server that speaks stdio runs in the container of its own image, which needs nothing of ours. An init
container of our image copies `tarsy-launcher` into the pod, which is its first process and starts the server for each
session; the gateway in the container beside it serves MCP and reaches the launcher by a Unix socket. So the server's
variables, ServiceAccount files and processes are in one container, and the token of the callers in the other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from tarsy.controllers.tool_workloads.acting import API_TOKEN_KEY, DIRECTORY, KUBECONFIG_KEY
from tarsy.plan.workload import PORT, TOKEN_KEY, workload_name
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from tarsy.resources.v1alpha1.workload import Amounts, EnvVar, Run

STARTS_ASKED = 150
"""Each two seconds: a tool server may take five minutes to listen."""

PORT_NAME = "mcp"
LAUNCHER_DIRECTORY = "/var/run/tarsy/launcher"
SOCKET = "/var/run/tarsy/socket/launcher.sock"
_USER = 65532
_MESSAGE_MIB = 32
"""The gateway needs 100 MiB, and six times the size of a message while it passes one."""

_KUBECONFIG = "KUBECONFIG"
_RESTRICTED: Mapping[str, Any] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
_Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class PodRules:
    """Holds the rules of the cluster and its administrator for the pods.

    Args:
        assigned: whether the cluster assigns user and group of a pod.
        gateway_image: image of gateway and launcher, for servers that speak stdio.
    """

    assigned: bool = False
    gateway_image: str | None = None


def pod(
    server: MCPServer,
    run: Run,
    restart: str,
    rules: PodRules,
    identity: UUID | None = None,
    account: str | None = None,
) -> _Object:
    """Makes the spec of a pod.

    Args:
        server: the MCPServer.
        run: its `spec.run`.
        restart: the restart policy.
        rules: of the cluster; with an image of the gateway for a server that speaks stdio.
        identity: uid of the run; None for scope Shared.
        account: the agent's ServiceAccount that it acts as, if any.
    """
    own = run.service_account_name if account is None else None
    stdio = server.spec.transport.type == "stdio"
    secret = workload_name(server.metadata.name, identity, account)
    acting = account is not None
    return {
        **({"serviceAccountName": own} if own else {}),
        "automountServiceAccountToken": own is not None,
        "enableServiceLinks": False,
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": 30,
        "securityContext": {
            "runAsNonRoot": True,
            **({} if rules.assigned else {"runAsUser": _USER, "runAsGroup": _USER, "fsGroup": _USER}),
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **({"initContainers": [_install(_known(rules))]} if stdio else {}),
        "containers": [_launched(run, acting=acting), _gateway(_known(rules))] if stdio else [_serving(run, acting)],
        "volumes": _stdio_volumes(secret, acting=acting) if stdio else [_tmp(), _secret("token", secret)],
    }


def _known(rules: PodRules) -> str:
    assert rules.gateway_image is not None, "the pod of a stdio server needs the image of the gateway"
    return rules.gateway_image


def _serving(run: Run, acting: bool) -> _Object:
    """Makes the container of a server that speaks HTTP."""
    alive = {"tcpSocket": {"port": PORT_NAME}}
    return {
        **_tool(run, list(run.command or ()), list(run.args), acting=acting),
        "ports": [_port(PORT if run.port is None else run.port)],
        "readinessProbe": {**alive, "periodSeconds": 5, "timeoutSeconds": 3},
        "startupProbe": {**alive, "periodSeconds": 2, "timeoutSeconds": 5, "failureThreshold": STARTS_ASKED},
        "livenessProbe": {**alive, "periodSeconds": 20, "timeoutSeconds": 5},
        "volumeMounts": [_mount("tmp", "/tmp"), _mount("token", DIRECTORY, read_only=True)],
    }


def _launched(run: Run, *, acting: bool) -> _Object:
    """Makes the container of a server that speaks stdio: the launcher starts it."""
    command = [f"{LAUNCHER_DIRECTORY}/tarsy-launcher", "--socket", SOCKET, "--", *(run.command or ())]
    return {
        **_tool(run, command, list(run.args), acting=acting),
        "volumeMounts": [
            _mount("tmp", "/tmp"),
            _mount("launcher", LAUNCHER_DIRECTORY, read_only=True),
            _mount("socket", SOCKET.rpartition("/")[0]),
            *([_mount("account", DIRECTORY, read_only=True)] if acting else ()),
        ],
    }


def _tool(run: Run, command: Sequence[str], arguments: Sequence[str], *, acting: bool) -> _Object:
    variables = [_variable(item) for item in run.env if not (acting and item.name == _KUBECONFIG)]
    if acting:
        variables.append({"name": _KUBECONFIG, "value": f"{DIRECTORY}/{KUBECONFIG_KEY}"})
    return {
        "name": "tool",
        "image": run.image,
        **({"command": [_literal(text) for text in command]} if command else {}),
        **({"args": [_literal(text) for text in arguments]} if arguments else {}),
        **({"env": variables} if variables else {}),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {"requests": _amounts(run.resources.requests), "limits": _amounts(run.resources.limits)},
        "securityContext": _RESTRICTED,
    }


def _install(image: str) -> _Object:
    return {
        "name": "launcher",
        "image": image,
        "command": ["tarsy-launcher", "--install", LAUNCHER_DIRECTORY],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}, "limits": {"memory": "32Mi"}},
        "securityContext": _RESTRICTED,
        "volumeMounts": [_mount("launcher", LAUNCHER_DIRECTORY)],
    }


def _gateway(image: str) -> _Object:
    alive, ready = ({"httpGet": {"path": path, "port": PORT_NAME}} for path in ("/healthz", "/readyz"))
    options = [f"--launcher={SOCKET}", f"--port={PORT}", f"--token-file={DIRECTORY}/{TOKEN_KEY}", "--json-logs"]
    options.append(f"--max-message-mib={_MESSAGE_MIB}")
    return {
        "name": "gateway",
        "image": image,
        "command": ["tarsy", "mcp-gateway"],
        "args": options,
        "ports": [_port(PORT)],
        "readinessProbe": {**ready, "periodSeconds": 5, "timeoutSeconds": 3},
        "startupProbe": {**alive, "periodSeconds": 2, "timeoutSeconds": 5, "failureThreshold": STARTS_ASKED},
        "livenessProbe": {**alive, "periodSeconds": 20, "timeoutSeconds": 5},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "resources": {"requests": {"cpu": "20m", "memory": "128Mi"}, "limits": {"memory": "512Mi"}},
        "securityContext": _RESTRICTED,
        "volumeMounts": [
            _mount("token", DIRECTORY, read_only=True),
            _mount("socket", SOCKET.rpartition("/")[0], read_only=True),
        ],
    }


def _stdio_volumes(secret: str, *, acting: bool) -> list[_Object]:
    return [
        _tmp(),
        {"name": "launcher", "emptyDir": {"sizeLimit": "16Mi"}},
        {"name": "socket", "emptyDir": {"sizeLimit": "1Mi"}},
        _secret("token", secret, TOKEN_KEY),
        *([_secret("account", secret, KUBECONFIG_KEY, API_TOKEN_KEY)] if acting else ()),
    ]


def _tmp() -> _Object:
    return {"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}}


def _secret(volume: str, name: str, *keys: str) -> _Object:
    """Makes a volume of a Secret: of these keys, or of all."""
    items = {"items": [{"key": key, "path": key} for key in keys]} if keys else {}
    return {"name": volume, "secret": {"secretName": name, "defaultMode": 0o440, **items}}


def _mount(volume: str, path: str, *, read_only: bool = False) -> _Object:
    return {"name": volume, "mountPath": path, **({"readOnly": True} if read_only else {})}


def _port(number: int) -> _Object:
    return {"name": PORT_NAME, "containerPort": number, "protocol": "TCP"}


def _variable(item: EnvVar) -> _Object:
    if item.value_from is None:
        return {"name": item.name, "value": _literal(item.value or "")}
    ref = item.value_from.secret_key_ref
    return {"name": item.name, "valueFrom": {"secretKeyRef": {"name": ref.name, "key": ref.key}}}


def _literal(text: str) -> str:
    """Escapes a value: the kubelet would replace $(NAME) in it."""
    return text.replace("$(", "$$(")


def _amounts(amounts: Amounts) -> dict[str, str]:
    return {name: text for name, text in (("cpu", amounts.cpu), ("memory", amounts.memory)) if text is not None}
