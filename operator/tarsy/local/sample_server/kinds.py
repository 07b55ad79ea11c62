"""The kinds that may be looked at, by any name people and models give them. Secrets are not among them."""

import re
from dataclasses import dataclass

NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind: its API path, its plural, its short name if it has one."""

    name: str
    api: str
    plural: str
    short: str = ""
    namespaced: bool = True

    def path(self, namespace: str | None, name: str | None = None) -> str:
        """The URL path of an object, or of all of them."""
        scope = f"/namespaces/{namespace}" if self.namespaced and namespace else ""
        return f"/{self.api}{scope}/{self.plural}{f'/{name}' if name else ''}"


KINDS = (
    Kind("Pod", "api/v1", "pods", "po"),
    Kind("Event", "api/v1", "events", "ev"),
    Kind("Service", "api/v1", "services", "svc"),
    Kind("Endpoints", "api/v1", "endpoints", "ep"),
    Kind("ConfigMap", "api/v1", "configmaps", "cm"),
    Kind("ServiceAccount", "api/v1", "serviceaccounts", "sa"),
    Kind("PersistentVolumeClaim", "api/v1", "persistentvolumeclaims", "pvc"),
    Kind("ResourceQuota", "api/v1", "resourcequotas", "quota"),
    Kind("LimitRange", "api/v1", "limitranges", "limits"),
    Kind("Namespace", "api/v1", "namespaces", "ns", namespaced=False),
    Kind("Node", "api/v1", "nodes", "no", namespaced=False),
    Kind("PersistentVolume", "api/v1", "persistentvolumes", "pv", namespaced=False),
    Kind("StorageClass", "apis/storage.k8s.io/v1", "storageclasses", "sc", namespaced=False),
    Kind("Deployment", "apis/apps/v1", "deployments", "deploy"),
    Kind("ReplicaSet", "apis/apps/v1", "replicasets", "rs"),
    Kind("StatefulSet", "apis/apps/v1", "statefulsets", "sts"),
    Kind("DaemonSet", "apis/apps/v1", "daemonsets", "ds"),
    Kind("Job", "apis/batch/v1", "jobs"),
    Kind("CronJob", "apis/batch/v1", "cronjobs", "cj"),
    Kind("Ingress", "apis/networking.k8s.io/v1", "ingresses", "ing"),
    Kind("NetworkPolicy", "apis/networking.k8s.io/v1", "networkpolicies", "netpol"),
    Kind("HorizontalPodAutoscaler", "apis/autoscaling/v2", "horizontalpodautoscalers", "hpa"),
    Kind("PodDisruptionBudget", "apis/policy/v1", "poddisruptionbudgets", "pdb"),
)


class Refused(Exception):
    """What is asked for is not to be had here; the text is for the model."""


def find_kind(asked: str) -> Kind:
    """The kind by its name, plural or short name, in any case, with or without its group.

    Raises Refused: it is a Secret, or not one of ours.
    """
    word = asked.strip().lower().split(".")[0]
    if word in ("secret", "secrets"):
        raise Refused("Secrets are never shown by this server")
    for kind in KINDS:
        if word and word in (kind.name.lower(), kind.plural, kind.short):
            return kind
    raise Refused(f"unknown kind {asked!r}; known are {', '.join(kind.name for kind in KINDS)}")


def checked(what: str, value: str) -> str:
    """A name that may be put into a URL. Raises Refused: it is none."""
    if len(value) > 253 or not NAME.fullmatch(value):
        raise Refused(f"{what} {value[:80]!r} is not a Kubernetes name")
    return value
