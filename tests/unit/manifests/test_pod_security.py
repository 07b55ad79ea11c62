"""Shipped pods keep to the Pod Security Standard that their namespaces ask for, and the check finds what breaks it."""

import copy
from typing import Any

import pytest

from for_each import for_each
from unit.manifests.pod_security import violations
from unit.manifests.shipped import installed, named

CONTAINER: dict[str, Any] = {
    "name": "c",
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
}
POD: dict[str, Any] = {
    "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    "containers": [CONTAINER],
}
WORKLOADS = installed("Deployment", "StatefulSet", "Job", "CronJob", "DaemonSet")


def pod(*path: Any, value: Any) -> dict[str, Any]:
    """A pod that keeps to the standard, with one field changed; None removes it."""
    changed = copy.deepcopy(POD)
    where: Any = changed
    *folders, last = path
    for key in folders:
        where = where[key] if isinstance(key, int) else where.setdefault(key, {})
    if value is None:
        del where[last]
    else:
        where[last] = value
    return changed


def container(*path: Any, value: Any) -> dict[str, Any]:
    return pod("containers", 0, *path, value=value)


@pytest.mark.parametrize("workload", WORKLOADS, ids=named)
def test_a_shipped_pod_keeps_to_the_restricted_standard(workload: dict[str, Any]) -> None:
    template = workload["spec"]["template"]
    assert violations(template["spec"], template["metadata"].get("annotations")) == []


@pytest.mark.parametrize(
    "allowed",
    [
        POD,
        pod("volumes", value=[{"name": "v", "emptyDir": {}}, {"name": "w", "projected": {}}]),
        pod("securityContext", "sysctls", value=[{"name": "net.ipv4.tcp_syncookies", "value": "1"}]),
        pod("securityContext", "seccompProfile", "type", value="Localhost"),
        container("securityContext", "capabilities", "add", value=["NET_BIND_SERVICE"]),
        container("securityContext", "runAsUser", value=1),
        container("readinessProbe", value={"httpGet": {"path": "/", "port": 80}}),
        container("lifecycle", value={"preStop": {"exec": {"command": ["sleep", "1"]}}}),
    ],
)
def test_what_the_standard_allows_is_no_violation(allowed: dict[str, Any]) -> None:
    assert violations(allowed, {"container.apparmor.security.beta.kubernetes.io/c": "runtime/default"}) == []


@for_each(
    ("forbidden", "complaint"),
    [
        (pod("hostNetwork", value=True), "hostNetwork: must be false"),
        (pod("hostPID", value=True), "hostPID: must be false"),
        (pod("hostIPC", value=True), "hostIPC: must be false"),
        (pod("volumes", value=[{"name": "v", "hostPath": {}}]), "volumes[v].hostPath: not of the allowed types"),
        (
            pod("securityContext", "sysctls", value=[{"name": "kernel.msgmax", "value": "1"}]),
            "securityContext.sysctls[kernel.msgmax]: not a safe one",
        ),
        (pod("securityContext", "runAsUser", value=0), "securityContext.runAsUser: must not be 0"),
        (
            pod("securityContext", "seccompProfile", "type", value="Unconfined"),
            "securityContext.seccompProfile.type: must be RuntimeDefault or Localhost",
        ),
        (
            pod("securityContext", "seLinuxOptions", value={"type": "spc_t"}),
            "securityContext.seLinuxOptions.type: not of the allowed types",
        ),
        (
            pod("securityContext", "appArmorProfile", value={"type": "Unconfined"}),
            "securityContext.appArmorProfile.type: must be RuntimeDefault or Localhost",
        ),
        (
            container("ports", value=[{"containerPort": 80, "hostPort": 80}]),
            "containers[c].ports[80].hostPort: must not be set",
        ),
        (
            container("livenessProbe", value={"httpGet": {"host": "10.0.0.1", "port": 80}}),
            "containers[c].livenessProbe.httpGet.host: must not be set",
        ),
        (
            container("lifecycle", value={"preStop": {"tcpSocket": {"host": "10.0.0.1", "port": 80}}}),
            "containers[c].lifecycle.preStop.tcpSocket.host: must not be set",
        ),
        (
            container("securityContext", "privileged", value=True),
            "containers[c].securityContext.privileged: must be false",
        ),
        (
            container("securityContext", "procMount", value="Unmasked"),
            "containers[c].securityContext.procMount: must be Default",
        ),
        (
            container("securityContext", "allowPrivilegeEscalation", value=None),
            "containers[c].securityContext.allowPrivilegeEscalation: must be false",
        ),
        (
            container("securityContext", "capabilities", "drop", value=["NET_RAW"]),
            "containers[c].securityContext.capabilities.drop: must include ALL",
        ),
        (
            container("securityContext", "capabilities", "add", value=["NET_ADMIN"]),
            "containers[c].securityContext.capabilities.add: must not have NET_ADMIN",
        ),
        (
            container("securityContext", "runAsNonRoot", value=False),
            "containers[c].securityContext.runAsNonRoot: must be true",
        ),
        (
            container("securityContext", "windowsOptions", value={"hostProcess": True}),
            "containers[c].securityContext.windowsOptions.hostProcess: must be false",
        ),
        (
            pod("securityContext", "runAsNonRoot", value=None),
            "containers[c].securityContext.runAsNonRoot: must be set, here or in the pod",
        ),
        (
            pod("securityContext", "seccompProfile", value=None),
            "containers[c].securityContext.seccompProfile: must be set, here or in the pod",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_the_standard_forbids_is_named_by_its_field(forbidden: dict[str, Any], complaint: str) -> None:
    assert violations(forbidden) == [complaint]


def test_an_init_container_is_held_to_the_same_and_an_annotation_counts() -> None:
    init = pod("initContainers", value=[{"name": "i", "securityContext": {"allowPrivilegeEscalation": False}}])
    assert violations(init) == ["initContainers[i].securityContext.capabilities.drop: must include ALL"]
    key = "container.apparmor.security.beta.kubernetes.io/c"
    assert violations(POD, {key: "unconfined"}) == [
        f"metadata.annotations[{key}]: must be runtime/default or localhost/*"
    ]
