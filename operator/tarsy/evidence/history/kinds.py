"""Names the kinds whose changes are recorded, and the label of namespaces where they are."""

from tarsy.evidence.reading import KINDS, ReadKind

HISTORY_LABEL = "tarsy.dev/history"
"""Label of Namespaces whose objects have a history; its value tells what of them is recorded."""

_LEFT_OUT = frozenset({"Event", "ServiceAccount", "ReplicaSet", "ControllerRevision"})
"""Namespaced kinds that evidence reads and the history does not have: each change of a revision is its workload's."""

RECORDED_KINDS: tuple[ReadKind, ...] = tuple(kind for kind in KINDS if kind.namespaced and kind.kind not in _LEFT_OUT)
"""The kinds that are recorded. Secrets are none of them: a watch of their metadata needs the right to read them."""
