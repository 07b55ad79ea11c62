"""Defines rules about containers that do not start, or that end."""

import re
from collections.abc import Iterator
from datetime import timedelta

from tarsy.evidence.fields import Object, integer, mapping, moment, one_line, string
from tarsy.evidence.rules.facts import Facts
from tarsy.evidence.rules.signal import Certainty, Signal, rule
from tarsy.evidence.snapshot import ObjectKey
from tarsy.evidence.workloads import ContainerState, container_states, containers, port_numbers, references

STABLE = timedelta(minutes=15)
"""A container that has run this long since its last end is well."""

_CONFIG_ERROR = "CreateContainerConfigError"
_MISSING = re.compile(
    r'(?:(configmap|secret) "?([^"\s]+)"? not found)|(?:couldn\'t find key (\S+) in (ConfigMap|Secret))', re.I
)
_RUN_ERRORS = ("RunContainerError", "CreateContainerError", "StartError", "ContainerCannotRun")
_NO_COMMAND = re.compile(
    r"executable file not found|no such file or directory|not found in \$PATH|stat .*: no such", re.I
)
_ROOT = re.compile(r"runAsNonRoot|non-numeric user|will run as root", re.IGNORECASE)
_PROBES = {"Liveness": "livenessProbe", "Readiness": "readinessProbe", "Startup": "startupProbe"}


@rule("container-config-missing", "A ConfigMap or Secret, or a key of it, that a container reads does not exist")
def config_missing(facts: Facts) -> Iterator[Signal]:
    """Finds containers that wait for a ConfigMap or Secret."""
    for key, _, state in facts.failing_containers:
        if state.waiting == _CONFIG_ERROR and _MISSING.search(state.message):
            text = f"Container {state.name} of {key} cannot be created: {state.message}."
            yield Signal((key,), text, state.message)


@rule("configmap-absent", "A ConfigMap that a workload reads does not exist")
def config_absent(facts: Facts) -> Iterator[Signal]:
    """Finds references to ConfigMaps that were listed and are not there, before a pod even fails."""
    for key, pod in facts.unready_pods:
        if not facts.snapshot.complete("ConfigMap", key.namespace):
            continue
        for used in references(pod):
            if used.kind == "ConfigMap" and not used.optional and used.name != "kube-root-ca.crt":
                target = ObjectKey("ConfigMap", key.namespace, used.name)
                if not facts.snapshot.at(target):
                    text = f"{key} {used.how} {target}, which does not exist."
                    yield Signal((key, target), text, f"configMap name: {used.name}")


@rule("container-runs-as-root", "The pod must not run as root and its image does", "securityContext", "image")
def runs_as_root(facts: Facts) -> Iterator[Signal]:
    """Finds containers that runAsNonRoot refuses."""
    for key, _, state in facts.failing_containers:
        if state.waiting == _CONFIG_ERROR and _ROOT.search(state.message):
            yield Signal((key,), f"Container {state.name} of {key} is refused: runAsNonRoot.", state.message)


def _run_failures(facts: Facts) -> Iterator[tuple[ObjectKey, ContainerState, str]]:
    for key, _, state in facts.failing_containers:
        message = string(state.ended, "message") or state.message
        reasons = (state.waiting, string(state.ended, "reason"))
        if any(one in _RUN_ERRORS for one in reasons) and message:
            yield key, state, one_line(message)


@rule("container-command-not-found", "The command of a container is not in its image", "command", "args", "image")
def command_not_found(facts: Facts) -> Iterator[Signal]:
    """Finds containers whose command does not exist."""
    for key, state, message in _run_failures(facts):
        if _NO_COMMAND.search(message):
            yield Signal((key,), f"The command of container {state.name} of {key} is not in its image.", message)


@rule("container-out-of-memory", "A container used more memory than its limit and was killed", "resources")
def out_of_memory(facts: Facts) -> Iterator[Signal]:
    """Finds containers that the kernel killed for their memory."""
    for key, pod in facts.pods:
        for state in _recently_ended(facts, pod):
            if string(state.ended, "reason") == "OOMKilled":
                limit = string(_container(pod, state.name), "resources", "limits", "memory") or "none"
                text = f"Container {state.name} of {key} was killed: out of memory (limit {limit})."
                yield Signal((key,), text, "reason: OOMKilled")


@rule("container-crash-loop", "A container ends with an error again and again")
def crash_loop(facts: Facts) -> Iterator[Signal]:
    """Finds containers that end with an exit code, which says that they fail but not why."""
    for key, _, state in facts.failing_containers:
        code, reason = integer(state.ended, "exitCode"), string(state.ended, "reason")
        if state.waiting != "CrashLoopBackOff" or state.init or reason in ("OOMKilled", *_RUN_ERRORS):
            continue
        if code:
            text = f"Container {state.name} of {key} ends with exit code {code} ({state.restarts} restarts)."
        else:
            text = f"Container {state.name} of {key} ends by itself with exit code 0; a container must go on running."
        yield Signal((key,), text, f"exitCode: {code}", Certainty.LIKELY)


@rule("init-container-fails", "An init container fails, so that the pod does not start")
def init_fails(facts: Facts) -> Iterator[Signal]:
    """Finds pods that wait for a failing init container."""
    for key, _, state in facts.failing_containers:
        code = integer(state.ended, "exitCode")
        if state.init and code and state.waiting in ("CrashLoopBackOff", ""):
            text = f"Init container {state.name} of {key} ends with exit code {code}, so no other container starts."
            yield Signal((key,), text, f"exitCode: {code}")


def _probe_failures(facts: Facts, kind: str) -> Iterator[tuple[ObjectKey, Object, str]]:
    pattern = re.compile(rf"{kind} probe (?:failed|errored)")
    for key, pod in facts.pods:
        if message := facts.message(key, pattern, "Unhealthy", "ProbeError"):
            yield key, pod, message


@rule("probe-liveness-fails", "A liveness probe fails, so the kubelet restarts the container", "livenessProbe")
def liveness_fails(facts: Facts) -> Iterator[Signal]:
    """Finds containers that are restarted because of their liveness probe."""
    for key, pod, message in _probe_failures(facts, "Liveness"):
        if any(state.restarts for state in _recently_ended(facts, pod)):
            yield Signal((key,), f"The liveness probe of {key} fails and restarts it.", message, Certainty.LIKELY)


def _unready(facts: Facts, kind: str) -> Iterator[Signal]:
    """Yields a signal for each pod that is not ready and whose probe of a kind fails."""
    unready = {key for key, _ in facts.unready_pods}
    for key, _, message in _probe_failures(facts, kind):
        if key in unready:
            yield Signal((key,), f"The {kind.lower()} probe of {key} fails.", message, Certainty.LIKELY)


@rule("probe-readiness-fails", "A readiness probe fails, so the pod gets no requests", "readinessProbe")
def readiness_fails(facts: Facts) -> Iterator[Signal]:
    """Finds running pods that are not ready because of their readiness probe."""
    return _unready(facts, "Readiness")


@rule("probe-startup-fails", "A startup probe fails, so the container is restarted before it is ready", "startupProbe")
def startup_fails(facts: Facts) -> Iterator[Signal]:
    """Finds pods whose startup probe fails."""
    return _unready(facts, "Startup")


@rule("probe-port-unknown", "A probe names a port that its container does not declare", *_PROBES.values(), "ports")
def probe_port(facts: Facts) -> Iterator[Signal]:
    """Finds probes of a port that no container of the pod declares."""
    for key, pod in facts.unready_pods:
        numbers, names = port_numbers(pod)
        for container in containers(pod, init=False):
            for field in _PROBES.values():
                for how in ("httpGet", "tcpSocket", "grpc"):
                    port = mapping(container, field, how).get("port")
                    name = string(container, "name")
                    if isinstance(port, str) and not port.isdigit() and port not in names:
                        text = f"The {field} of {name} of {key} names port {port!r}, which no container declares."
                        yield Signal((key,), text, f"port: {port}")
                    elif isinstance(port, int) and numbers and port not in numbers:
                        declared = ", ".join(map(str, sorted(numbers)))
                        text = f"The {field} of container {name} of {key} asks port {port}; declared are {declared}."
                        yield Signal((key,), text, f"port: {port}", Certainty.LIKELY)


def _recently_ended(facts: Facts, pod: Object) -> Iterator[ContainerState]:
    """Yields the containers of a pod that ended and have not run well for `STABLE` since."""
    for state in container_states(pod):
        at = moment(state.ended, "finishedAt")
        if at is None:
            continue
        stable = state.ready and facts.snapshot.read_at - (state.running_since or at) >= STABLE
        if not stable:
            yield state


def _container(pod: Object, name: str) -> Object:
    return next((one for one in containers(pod) if one.get("name") == name), {})


RULES = (
    config_missing,
    config_absent,
    runs_as_root,
    command_not_found,
    out_of_memory,
    crash_loop,
    init_fails,
    liveness_fails,
    readiness_fails,
    startup_fails,
    probe_port,
)
