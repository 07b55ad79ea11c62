"""Finds the object that people or alerts name: `deploy/checkout`, `Pod/checkout-1`, `checkout`."""

from collections.abc import Sequence

from tarsy.evidence.snapshot import ObjectKey, Snapshot

_SHORT = {
    "po": "Pod", "deploy": "Deployment", "rs": "ReplicaSet", "sts": "StatefulSet", "ds": "DaemonSet", "cj": "CronJob",
    "svc": "Service", "cm": "ConfigMap", "ing": "Ingress", "netpol": "NetworkPolicy", "no": "Node",
    "hpa": "HorizontalPodAutoscaler", "pvc": "PersistentVolumeClaim", "pdb": "PodDisruptionBudget",
    "quota": "ResourceQuota", "limits": "LimitRange", "sa": "ServiceAccount", "sc": "StorageClass",
}  # fmt: skip
_GUESSED = ("Deployment", "StatefulSet", "DaemonSet", "CronJob", "Job", "Pod", "Service", "Ingress")
_KINDS = (*dict.fromkeys(_SHORT.values()), "Job", "HTTPRoute", "Certificate", "Application", "Kustomization")


class UnknownTarget(ValueError):
    """There is no such object."""


class MalformedTarget(UnknownTarget):
    """The text does not name an object: its kind is not known, or its name is missing or too long."""


_LONGEST = 320
"""Maximum characters of a target: a kind and a name."""


def find_target(snapshot: Snapshot, namespace: str, text: str) -> ObjectKey:
    """Returns the key of the object that a text names.

    Args:
        snapshot: the objects.
        namespace: of the object, unless its kind has none.
        text: KIND/NAME with the kind's name, plural or short name, or NAME of a workload, pod or Service.

    Raises:
        MalformedTarget: the text cannot name an object.
        UnknownTarget: there is no such object; the text says what to write.
    """
    prefix, slash, name = text.strip().rpartition("/")
    if not name or len(text) > _LONGEST:
        raise MalformedTarget("this names no object; write KIND/NAME, such as deploy/checkout, or a NAME alone")
    kinds = [_kind(prefix)] if slash else list(_GUESSED)
    for kind in kinds:
        for place in (namespace, ""):
            key = ObjectKey(kind, place, name)
            if snapshot.at(key):
                return key
    raise UnknownTarget(_told(snapshot, namespace, kinds, name))


def _kind(text: str) -> str:
    wanted = text.lower().partition(".")[0]
    if wanted in _SHORT:
        return _SHORT[wanted]
    for kind in _KINDS:
        plural = kind.lower() + ("es" if kind.endswith(("s", "ss")) else "s")
        if kind.endswith("y"):
            plural = kind[:-1].lower() + "ies"
        if wanted in (kind.lower(), plural):
            return kind
    known = ", ".join(sorted(_SHORT))
    raise MalformedTarget(
        f"kind {text[:64]!r} is not known here; write KIND/NAME with a kind such as Deployment, or {known}"
    )


def _told(snapshot: Snapshot, namespace: str, kinds: Sequence[str], name: str) -> str:
    which = f"{kinds[0]} {namespace}/{name}" if len(kinds) == 1 else f"workload, pod or Service {namespace}/{name}"
    gaps = [gap for gap in snapshot.gaps if gap.kind in kinds]
    if gaps:
        return f"{which} was not found; {gaps[0].kind} could not be read in full: {gaps[0].reason}"
    there = [str(key.name) for kind in kinds for key in snapshot.keys(kind, namespace)][:5]
    return f"there is no {which}" + (f"; there are {', '.join(there)}" if there else "")
