"""Defines a change of an object."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from tarsy.evidence.snapshot import ObjectKey


class ChangeType(StrEnum):
    """Type of a change."""

    ROLLOUT = "Rollout"
    SCALE = "Scale"
    CONFIG = "Config"
    NETWORK = "Network"
    QUOTA = "Quota"
    NODE = "Node"
    STORAGE = "Storage"
    RESTART = "Restart"
    GITOPS = "GitOps"
    DELETE = "Delete"


class Source(StrEnum):
    """Lists the sources of changes: the current objects, or a history of their versions."""

    RECONSTRUCTED = "reconstructed"
    RECORDED = "recorded"


TYPES = {
    "Deployment": ChangeType.ROLLOUT,
    "StatefulSet": ChangeType.ROLLOUT,
    "DaemonSet": ChangeType.ROLLOUT,
    "ReplicaSet": ChangeType.ROLLOUT,
    "ControllerRevision": ChangeType.ROLLOUT,
    "Job": ChangeType.ROLLOUT,
    "CronJob": ChangeType.ROLLOUT,
    "Pod": ChangeType.ROLLOUT,
    "HorizontalPodAutoscaler": ChangeType.SCALE,
    "VerticalPodAutoscaler": ChangeType.SCALE,
    "PodDisruptionBudget": ChangeType.SCALE,
    "ConfigMap": ChangeType.CONFIG,
    "Certificate": ChangeType.CONFIG,
    "ServiceAccount": ChangeType.CONFIG,
    "Role": ChangeType.CONFIG,
    "RoleBinding": ChangeType.CONFIG,
    "Service": ChangeType.NETWORK,
    "Ingress": ChangeType.NETWORK,
    "HTTPRoute": ChangeType.NETWORK,
    "NetworkPolicy": ChangeType.NETWORK,
    "ResourceQuota": ChangeType.QUOTA,
    "LimitRange": ChangeType.QUOTA,
    "Node": ChangeType.NODE,
    "PersistentVolumeClaim": ChangeType.STORAGE,
    "PersistentVolume": ChangeType.STORAGE,
    "StorageClass": ChangeType.STORAGE,
    "Application": ChangeType.GITOPS,
    "Kustomization": ChangeType.GITOPS,
    "HelmRelease": ChangeType.GITOPS,
}
"""Type of a change of an object's spec, by kind; a change of another kind is Config."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of an object.

    Attributes:
        at: when it was made.
        type: its type.
        object: the object that changed.
        summary: one line without values of ConfigMaps, environment or annotations.
        manager: the field manager that made it; empty: unknown.
        fields: paths that changed, or one of which changed, as the summary says.
        source: where it is known from.
        skew: how far the clock that dates it may be from the API server's.
    """

    at: datetime
    type: ChangeType
    object: ObjectKey
    summary: str
    manager: str = ""
    fields: tuple[str, ...] = ()
    source: Source = Source.RECONSTRUCTED
    skew: timedelta = timedelta(0)
