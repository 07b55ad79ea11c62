"""The Pod Security Standard `restricted` as a function of a pod: what an API server of 1.25 or newer would refuse.

Source: https://kubernetes.io/docs/concepts/security/pod-security-standards/ (v1.34), "Baseline" and "Restricted", whose
controls the comments name. Decision: written here, because the API server that tests run on (1.20) knows no
pod-security admission, and the namespaces that are shipped ask for it. Of Windows' controls only hostProcess is here.
"""

from collections.abc import Iterator, Mapping
from typing import Any

Pod = Mapping[str, Any]
"""The `spec` of a pod."""

VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
SYSCTLS = {
    "kernel.shm_rmid_forced",
    "net.ipv4.ip_local_port_range",
    "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.ping_group_range",
    "net.ipv4.tcp_fin_timeout",
    "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
    "net.ipv4.tcp_keepalive_time",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_syncookies",
    "net.ipv4.tcp_wmem",
}
SELINUX_TYPES = {"", "container_t", "container_init_t", "container_kvm_t", "container_engine_t"}
PROFILES = {"RuntimeDefault", "Localhost"}
PROBES = ("livenessProbe", "readinessProbe", "startupProbe")
HOOKS = ("postStart", "preStop")
APPARMOR = "container.apparmor.security.beta.kubernetes.io/"


def violations(pod: Pod, annotations: Mapping[str, str] | None = None) -> list[str]:
    """What of a pod the standard forbids, each as `field: rule`; empty if nothing.

    Args:
        pod: its spec.
        annotations: of its metadata, where AppArmor was set before Kubernetes 1.30.
    """
    found = [*_of_pod(pod), *_of_annotations(annotations or {})]
    for path, container in _containers(pod):
        found += [f"{path}.{complaint}" for complaint in _of_container(container, pod.get("securityContext", {}))]
    return found


def _containers(pod: Pod) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for field in ("initContainers", "containers", "ephemeralContainers"):
        for container in pod.get(field, ()):
            yield f"{field}[{container['name']}]", container


def _of_pod(pod: Pod) -> Iterator[str]:
    # Host Namespaces
    for field in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(field):
            yield f"{field}: must be false"
    # HostPath Volumes; Volume Types
    for volume in pod.get("volumes", ()):
        for kind in set(volume) - {"name"} - VOLUMES:
            yield f"volumes[{volume['name']}].{kind}: not of the allowed types"
    context = pod.get("securityContext", {})
    # Sysctls
    for sysctl in context.get("sysctls", ()):
        if sysctl["name"] not in SYSCTLS:
            yield f"securityContext.sysctls[{sysctl['name']}]: not a safe one"
    for complaint in _of_context(context):
        yield f"securityContext.{complaint}"


def _of_annotations(annotations: Mapping[str, str]) -> Iterator[str]:
    # AppArmor
    for key, value in annotations.items():
        if key.startswith(APPARMOR) and value != "runtime/default" and not value.startswith("localhost/"):
            yield f"metadata.annotations[{key}]: must be runtime/default or localhost/*"


def _of_context(context: Mapping[str, Any]) -> Iterator[str]:
    """What pods and containers have in common."""
    # HostProcess
    if context.get("windowsOptions", {}).get("hostProcess"):
        yield "windowsOptions.hostProcess: must be false"
    # AppArmor
    if "appArmorProfile" in context and context["appArmorProfile"]["type"] not in PROFILES:
        yield "appArmorProfile.type: must be RuntimeDefault or Localhost"
    # SELinux
    selinux = context.get("seLinuxOptions", {})
    if selinux.get("type", "") not in SELINUX_TYPES:
        yield "seLinuxOptions.type: not of the allowed types"
    for field in ("user", "role"):
        if selinux.get(field):
            yield f"seLinuxOptions.{field}: must not be set"
    # Running as Non-root; Running as Non-root user; Seccomp
    if context.get("runAsNonRoot") is False:
        yield "runAsNonRoot: must be true"
    if context.get("runAsUser") == 0:
        yield "runAsUser: must not be 0"
    if "seccompProfile" in context and context["seccompProfile"]["type"] not in PROFILES:
        yield "seccompProfile.type: must be RuntimeDefault or Localhost"


def _of_container(container: Mapping[str, Any], of_pod: Mapping[str, Any]) -> Iterator[str]:
    # Host Ports
    for port in container.get("ports", ()):
        if port.get("hostPort"):
            yield f"ports[{port['containerPort']}].hostPort: must not be set"
    # Host Probes / Lifecycle Hooks
    probes = {name: container[name] for name in PROBES if name in container}
    hooks = {f"lifecycle.{name}": hook for name, hook in container.get("lifecycle", {}).items() if name in HOOKS}
    for name, handler in (probes | hooks).items():
        for action in ("httpGet", "tcpSocket"):
            if handler.get(action, {}).get("host"):
                yield f"{name}.{action}.host: must not be set"
    context = container.get("securityContext", {})
    for complaint in _of_context(context):
        yield f"securityContext.{complaint}"
    # Privileged Containers
    if context.get("privileged"):
        yield "securityContext.privileged: must be false"
    # /proc Mount Type
    if context.get("procMount", "Default") != "Default":
        yield "securityContext.procMount: must be Default"
    # Privilege Escalation
    if context.get("allowPrivilegeEscalation") is not False:
        yield "securityContext.allowPrivilegeEscalation: must be false"
    # Capabilities
    capabilities = context.get("capabilities", {})
    if "ALL" not in capabilities.get("drop", ()):
        yield "securityContext.capabilities.drop: must include ALL"
    for added in set(capabilities.get("add", ())) - {"NET_BIND_SERVICE"}:
        yield f"securityContext.capabilities.add: must not have {added}"
    # Running as Non-root; Seccomp: a container may leave to its pod what it does not say itself.
    for field in ("runAsNonRoot", "seccompProfile"):
        if field not in context and field not in of_pod:
            yield f"securityContext.{field}: must be set, here or in the pod"
