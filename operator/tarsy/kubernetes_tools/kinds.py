"""Defines the readable kinds, by any name that people and models use; Secrets are not among them."""

import re
from dataclasses import dataclass

NAME_PATTERN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


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


READABLE_KINDS = (
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
    Kind("EndpointSlice", "apis/discovery.k8s.io/v1", "endpointslices"),
    Kind("ControllerRevision", "apis/apps/v1", "controllerrevisions"),
)

POD_METRICS = Kind("PodMetrics", "apis/metrics.k8s.io/v1beta1", "pods")
NODE_METRICS = Kind("NodeMetrics", "apis/metrics.k8s.io/v1beta1", "nodes", namespaced=False)
MEASURED_KINDS = (POD_METRICS, NODE_METRICS)
"""Kinds of the metrics API; only their own tools read them."""

GITOPS_KINDS = (
    Kind("Application", "apis/argoproj.io/v1alpha1", "applications"),
    Kind("Kustomization", "apis/kustomize.toolkit.fluxcd.io/v1", "kustomizations"),
    Kind("HelmRelease", "apis/helm.toolkit.fluxcd.io/v2", "helmreleases"),
)
"""Kinds of Argo CD and Flux; only their own tool reads them, with the rights of the component `gitops-tools`."""


class Refused(Exception):
    """The request is refused; the text is for the model."""


def find_kind(asked: str) -> Kind:
    """Returns the kind by its name, plural or short name, in any case, with or without its group.

    Raises Refused: it is a Secret, or not one of ours.
    """
    word = asked.strip().lower().split(".")[0]
    if word in ("secret", "secrets"):
        raise Refused("Secrets are never shown by this server")
    for kind in READABLE_KINDS:
        if word and word in (kind.name.lower(), kind.plural, kind.short):
            return kind
    raise Refused(f"unknown kind {asked!r}; known are {', '.join(kind.name for kind in READABLE_KINDS)}")


def checked(what: str, value: str) -> str:
    """Returns a name that is valid in a URL. Raises Refused for any other."""
    if len(value) > 253 or not NAME_PATTERN.fullmatch(value):
        raise Refused(f"{what} {value[:80]!r} is not a Kubernetes name")
    return value
