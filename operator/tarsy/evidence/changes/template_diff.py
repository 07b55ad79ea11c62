"""Compares pod templates, and reports differences without showing values that may be secret.

Images, probes, resources, ports and commands are shown, because they explain most faults of a rollout. Values of
environment variables and annotations are not: they may be secrets that no pattern finds.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tarsy.evidence.fields import Object, mapping, mappings, string
from tarsy.evidence.workloads import containers

_SHOWN = (
    "image", "command", "args", "ports", "livenessProbe", "readinessProbe", "startupProbe", "resources",
    "securityContext", "volumeMounts", "workingDir", "lifecycle", "imagePullPolicy", "envFrom",
)  # fmt: skip
_POD_FIELDS = (
    "serviceAccountName", "nodeSelector", "affinity", "tolerations", "priorityClassName", "securityContext",
    "hostNetwork", "dnsPolicy", "dnsConfig", "schedulerName", "runtimeClassName", "terminationGracePeriodSeconds",
    "topologySpreadConstraints", "imagePullSecrets",
)  # fmt: skip
_VALUE_LENGTH = 120


def template_diff(old: Object, new: Object) -> tuple[str, ...]:
    """Returns the differences of two pod templates, one short text each; empty: none."""
    return tuple(_differences(old, new))


def _differences(old: Object, new: Object) -> Iterator[str]:
    before = {string(one, "name"): one for one in containers(old)}
    after = {string(one, "name"): one for one in containers(new)}
    yield from (f"container {name} added" for name in after.keys() - before.keys())
    yield from (f"container {name} removed" for name in before.keys() - after.keys())
    for name in sorted(before.keys() & after.keys()):
        yield from _of_container(name, before[name], after[name])
    for field in _POD_FIELDS:
        yield from _of_field(field, mapping(old, "spec").get(field), mapping(new, "spec").get(field))
    yield from _of_names("volume", _named(old, "volumes"), _named(new, "volumes"))
    yield from _of_names("label", mapping(old, "metadata", "labels"), mapping(new, "metadata", "labels"), _GENERATED)
    annotations = ("metadata", "annotations")
    yield from _of_names("annotation", mapping(old, *annotations), mapping(new, *annotations))


_GENERATED = frozenset({"pod-template-hash", "controller-revision-hash"})


def _of_container(name: str, old: Object, new: Object) -> Iterator[str]:
    for field in _SHOWN:
        yield from _of_field(f"{name}.{field}", old.get(field), new.get(field))
    yield from _of_names(f"{name}.env", _variables(old), _variables(new))


def _variables(container: Object) -> Mapping[str, Any]:
    return {string(one, "name"): one for one in mappings(container, "env")}


def _named(template: Object, field: str) -> Mapping[str, Any]:
    return {string(one, "name"): one for one in mappings(template, "spec", field)}


def _of_field(path: str, old: Any, new: Any) -> Iterator[str]:
    """Compares values; nested ones down to the fields that differ."""
    if old == new:
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}, key=str):
            yield from _of_field(f"{path}.{key}", old.get(key), new.get(key))
    elif old is None:
        yield f"{path} set to {_shown(new)}"
    elif new is None:
        yield f"{path} removed (was {_shown(old)})"
    else:
        yield f"{path} {_shown(old)} -> {_shown(new)}"


def _of_names(what: str, old: Mapping[str, Any], new: Mapping[str, Any], ignored: Iterable[str] = ()) -> Iterator[str]:
    """Names entries that differ, without their values."""
    for name in sorted({*old, *new} - set(ignored), key=str):
        if name not in old:
            yield f"{what} {name} added"
        elif name not in new:
            yield f"{what} {name} removed"
        elif old[name] != new[name]:
            yield f"{what} {name} changed"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) else _compact(value)
    return text if len(text) <= _VALUE_LENGTH else f"{text[:_VALUE_LENGTH]}..."


def _compact(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_compact(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_compact(one) for one in value) + "]"
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return str(value)
