"""Finds the subject of an alert: the objects that it names, its namespace, and when it began.

Alerts are text in any format. Known are the JSON of Alertmanager, JSON with labels at its top or in `labels`, and text
with `label=value` or `label: value`. What an alert names need not exist (a pod that was replaced since), so the names
are candidates in order, and the first that was read is the target. An alert that names nothing is about its namespace.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import orjson

from tarsy.evidence.fields import Object, labels, mappings, string
from tarsy.evidence.snapshot import ObjectKey, Snapshot
from tarsy.evidence.target import UnknownTarget, find_target

MOST_NAMES = 20
"""Maximum candidates of an alert."""

MOST_TEXT = 65_536
"""Characters of a text without JSON in which labels are looked for."""

_LABELS = {
    "pod": "Pod", "pod_name": "Pod", "deployment": "Deployment", "statefulset": "StatefulSet",
    "daemonset": "DaemonSet", "replicaset": "ReplicaSet", "cronjob": "CronJob", "job_name": "Job",
    "persistentvolumeclaim": "PersistentVolumeClaim", "horizontalpodautoscaler": "HorizontalPodAutoscaler",
    "ingress": "Ingress", "node": "Node", "workload": "", "service": "Service", "app": "",
}  # fmt: skip
"""Kind by label, in the order in which labels count; empty: a workload, pod or Service of that name."""

_NAMESPACES = ("namespace", "exported_namespace", "kubernetes_namespace")
_PAIR = re.compile(r"(?<![\w.-])([a-z_]{3,40})\s?[=:]\s?\"?([A-Za-z0-9][A-Za-z0-9._-]{0,252})")
_POD = re.compile(r"(.+?)-(?:[a-f0-9]{6,10}-)?[a-z0-9]{5}$|(.+)-\d{1,4}$")
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(\.\d{1,9})?(Z|[+-]\d\d:\d\d)")


@dataclass(frozen=True, slots=True)
class AlertSubject:
    """Holds the subject of an alert.

    Attributes:
        names: candidates as KIND/NAME or NAME, the best first.
        namespaces: those that it names.
        began: when it began to fire; None: it does not say so.
    """

    names: Sequence[str] = ()
    namespaces: Sequence[str] = ()
    began: datetime | None = None


@dataclass(frozen=True, slots=True)
class Target:
    """The object that an alert is about; `key` None: all of its namespace, and `note` says why."""

    key: ObjectKey | None
    note: str = ""


def read_subject(text: str) -> AlertSubject:
    """Returns what an alert says about its subject; never raises."""
    return _subject(*_label_sets(text))


def alert_labels(text: str) -> Mapping[str, frozenset[str]]:
    """Returns the labels that an alert names, with all their values; never raises."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for one in _label_sets(text)[0]:
        for name, value in one.items():
            found[name].add(value)
    return {name: frozenset(values) for name, values in found.items()}


def _label_sets(text: str) -> tuple[list[Mapping[str, str]], list[Object]]:
    """Returns the sets of labels in an alert, and the objects that may have its time."""
    try:
        body = orjson.loads(text)
    except orjson.JSONDecodeError:
        return [dict(_pairs(text))], []
    if isinstance(body, list):
        body = {"alerts": body}
    if not isinstance(body, Mapping):
        return [], []
    alerts = [one for one in mappings(body, "alerts") if one.get("status") != "resolved"]
    sets = [labels(one, "labels") for one in alerts]
    sets += [labels(body, name) for name in ("commonLabels", "groupLabels", "labels")]
    sets.append({key: value for key, value in body.items() if isinstance(value, str)})
    return sets, [body, *alerts]


def choose_target(snapshot: Snapshot, namespace: str, subject: AlertSubject) -> Target:
    """Returns the first object that an alert names and that was read.

    Args:
        snapshot: the objects.
        namespace: that was read.
        subject: of the alert.
    """
    where = f"namespace {namespace}"
    if subject.namespaces and namespace not in subject.namespaces:
        return Target(None, f"The alert is about namespace {subject.namespaces[0]}; only {where} was read.")
    for name in subject.names:
        for text in (name, *_owners(name)):
            try:
                return Target(find_target(snapshot, namespace, text))
            except UnknownTarget:
                continue
    if not subject.names:
        return Target(None, f"The alert names no object, so this is about all of {where}.")
    return Target(
        None, f"Nothing that the alert names was found ({subject.names[0]}), so this is about all of {where}."
    )


def workload_of(name: str) -> str:
    """Returns the name of the workload behind a candidate of an alert: of a Pod the one that it may have belonged to.

    Args:
        name: KIND/NAME or NAME.
    """
    return next((owner.partition("/")[2] for owner in _owners(name)), name.rpartition("/")[2])


def _subject(sets: Iterable[Mapping[str, str]], dated: Iterable[Object]) -> AlertSubject:
    found = [one for one in sets if one]
    names = [
        f"{kind}/{value}" if kind else value
        for label, kind in _LABELS.items()
        for one in found
        if (value := one.get(label, "").strip()) and len(value) <= 253
    ]
    spaces = [value for label in _NAMESPACES for one in found if (value := one.get(label, "").strip())]
    began = [at for one in dated if (at := _moment(string(one, "startsAt"))) is not None]
    return AlertSubject(
        tuple(dict.fromkeys(names))[:MOST_NAMES], tuple(dict.fromkeys(spaces))[:MOST_NAMES], min(began, default=None)
    )


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    """Yields the first value of each label that a text without structure names."""
    seen: set[str] = set()
    for match in _PAIR.finditer(text[:MOST_TEXT]):
        label, value = match[1], match[2].rstrip(".")
        if label not in seen and (label in _LABELS or label in _NAMESPACES):
            seen.add(label)
            yield label, value


def _owners(name: str) -> Iterator[str]:
    """Yields the workloads that a pod of that name may have belonged to, for a pod that is gone."""
    kind, _, own = name.partition("/")
    if kind == "Pod" and (match := _POD.match(own)):
        base = match[1] or match[2]
        yield from (f"{owner}/{base}" for owner in ("Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob"))


def _moment(text: str) -> datetime | None:
    """Returns an RFC 3339 time in UTC; None if it is none, or the zero time that stands for no time."""
    match = _TIME.fullmatch(text)
    if match is None:
        return None
    fraction = f"{match[3] or '.0':0<7}"[:7]
    try:
        at = datetime.fromisoformat(f"{match[1]}T{match[2]}{fraction}{match[4].replace('Z', '+00:00')}").astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return at if at.year > 1970 else None
