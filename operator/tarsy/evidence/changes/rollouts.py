"""Reconstructs rollouts from the revisions that Kubernetes keeps: ReplicaSets and ControllerRevisions.

A revision of a Deployment is a ReplicaSet. A rollback uses an old one again, so its creation time says nothing: the
rollout is then dated by the Deployment's own condition Progressing. ReplicaSets of one template apart differ by what
`template_diff` finds between them.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise

from tarsy.evidence.changes.change import Change, ChangeType
from tarsy.evidence.changes.managers import writer_of
from tarsy.evidence.changes.template_diff import template_diff
from tarsy.evidence.fields import Object, integer, mapping, mappings, moment, string
from tarsy.evidence.snapshot import ObjectKey, Snapshot
from tarsy.evidence.workloads import condition

REVISION = "deployment.kubernetes.io/revision"
_FIELDS_SHOWN = 6


def rollouts(snapshot: Snapshot) -> Iterator[Change]:
    """Yields the rollouts of Deployments, StatefulSets and DaemonSets that their revisions tell of."""
    for kind, of in (("ReplicaSet", _of_replica_sets), ("ControllerRevision", _of_controller_revisions)):
        children: dict[ObjectKey, list[Object]] = defaultdict(list)
        for _, obj in snapshot.items(kind):
            if (owner := _owner(obj, snapshot)) is not None:
                children[owner].append(obj)
        for owner, found in children.items():
            yield from of(owner, snapshot.at(owner), found)


def _owner(obj: Object, snapshot: Snapshot) -> ObjectKey | None:
    for reference in mappings(obj, "metadata", "ownerReferences"):
        if reference.get("controller") is True:
            return snapshot.find_uid(string(reference, "uid"))
    return None


def _of_replica_sets(owner: ObjectKey, deployment: Object, found: list[Object]) -> Iterator[Change]:
    ordered = sorted(found, key=_revision)
    newest = len(ordered) - 1
    latest: datetime | None = None
    for place, (old, new) in enumerate(pairwise(ordered), 1):
        at, before = (moment(one, "metadata", "creationTimestamp") for one in (new, old))
        latest = max((t for t in (latest, before) if t is not None), default=None)
        back = at is not None and latest is not None and at < latest
        if back:
            at = moment(condition(deployment, "Progressing"), "lastUpdateTime") if place == newest else None
        if at is not None:
            fields = template_diff(mapping(old, "spec", "template"), mapping(new, "spec", "template"))
            what = "rolled back to an earlier revision" if back else f"rolled out revision {_revision(new)}"
            yield _rollout(owner, deployment, at, what, fields)


def _revision(replica_set: Object) -> int:
    text = string(replica_set, "metadata", "annotations", REVISION)
    return int(text) if text.isascii() and text.isdigit() else 0


def _of_controller_revisions(owner: ObjectKey, workload: Object, found: list[Object]) -> Iterator[Change]:
    ordered = sorted(found, key=lambda one: integer(one, "revision") or 0)
    for old, new in pairwise(ordered):
        at = moment(new, "metadata", "creationTimestamp")
        if at is not None:
            fields = template_diff(_template(old), _template(new))
            yield _rollout(owner, workload, at, f"rolled out revision {integer(new, 'revision')}", fields)


def _template(revision: Object) -> Object:
    return mapping(revision, "data", "spec", "template")


def _rollout(owner: ObjectKey, workload: Object, at: datetime, what: str, fields: tuple[str, ...]) -> Change:
    shown = "; ".join(fields[:_FIELDS_SHOWN]) or "the revisions that are kept do not differ"
    more = f"; and {len(fields) - _FIELDS_SHOWN} more" if len(fields) > _FIELDS_SHOWN else ""
    manager = writer_of(workload, ("spec", "template"), at)
    return Change(at, ChangeType.ROLLOUT, owner, f"{what}: {shown}{more}", manager, fields)
