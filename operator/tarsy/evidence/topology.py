"""Finds which objects can affect which: the scope of a target, and its blast radius.

An edge points from the object that affects to the object that is affected (`edges.py`). The target of an alert stands
for itself, its owners and all that they own, because an alert names a pod where the Deployment changed. Each relation
has a weight; the reach of an object is the product of the weights on its best path, at most `MAX_STEPS` long. Cycles
(owners that own each other) end there too.
"""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tarsy.evidence.edges import Edge, Relation, find_edges
from tarsy.evidence.fields import string
from tarsy.evidence.selection import Selection
from tarsy.evidence.snapshot import Gap, ObjectKey, Snapshot

MAX_STEPS = 3
"""Longest path of edges from the target, besides owners."""

NAMESPACE_REACH = 0.1
"""Reach of an object of the same namespace that no path leads to."""


WEIGHTS: Mapping[Relation, float] = {
    Relation.OWNS: 1.0,
    Relation.CONFIGURES: 0.9,
    Relation.DEPLOYS: 0.9,
    Relation.SELECTS: 0.8,
    Relation.RESTRICTS: 0.8,
    Relation.SCALES: 0.8,
    Relation.STORES: 0.8,
    Relation.RUNS: 0.7,
    Relation.LIMITS: 0.7,
    Relation.SERVES: 0.6,
    Relation.ROUTES: 0.6,
    Relation.AUTHORIZES: 0.6,
    Relation.PROTECTS: 0.4,
}
"""Weight of a relation: how likely a change of the one object is to be felt by the other."""


@dataclass(frozen=True, slots=True)
class Reach:
    """Lists how strongly an object affects a target.

    Attributes:
        weight: from 0 to 1.
        path: the edges, from the object to the target's group; empty: it is of the group, or only of the namespace.
    """

    weight: float
    path: tuple[Edge, ...] = ()


class Topology:
    """The edges between the objects of a snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self._into: dict[ObjectKey, list[Edge]] = defaultdict(list)
        self._out: dict[ObjectKey, list[Edge]] = defaultdict(list)
        self._scopes: dict[ObjectKey, Mapping[ObjectKey, Reach]] = {}
        self.selection = Selection(snapshot)
        for edge in sorted(set(find_edges(snapshot, self.selection))):
            self._into[edge.target].append(edge)
            self._out[edge.source].append(edge)

    @property
    def gaps(self) -> Sequence[Gap]:
        """Returns the objects that could not be read or followed."""
        return [*self.snapshot.gaps, *self.selection.gaps]

    def into(self, key: ObjectKey) -> Sequence[Edge]:
        """Returns the edges of objects that affect an object."""
        return self._into.get(key, [])

    def out_of(self, key: ObjectKey) -> Sequence[Edge]:
        """Returns the edges to objects that an object affects."""
        return self._out.get(key, [])

    def group(self, target: ObjectKey) -> frozenset[ObjectKey]:
        """Returns a target with its owners, and everything that these own."""
        top, seen = target, {target}
        while (owner := next((e.source for e in self.into(top) if e.relation is Relation.OWNS), None)) is not None:
            if owner in seen:
                break  # owners that own each other
            top = owner
            seen.add(owner)
        waiting = [top]
        while waiting:
            for edge in self.out_of(waiting.pop()):
                if edge.relation is Relation.OWNS and edge.target not in seen:
                    seen.add(edge.target)
                    waiting.append(edge.target)
        return frozenset(seen)

    def scope(self, target: ObjectKey) -> Mapping[ObjectKey, Reach]:
        """Returns the objects that can affect a target, with their reach; the target's group first.

        A pod without a node is affected by every node: by its labels, its taints and its free resources. The scope of
        a target is computed once.
        """
        if target not in self._scopes:
            self._scopes[target] = self._scope(target)
        return self._scopes[target]

    def _scope(self, target: ObjectKey) -> Mapping[ObjectKey, Reach]:
        found = dict(self._walk(target, self.into, lambda edge: edge.source))
        waiting = (self.snapshot.at(key) for key in self.group(target) if key.kind == "Pod")
        if any(not string(pod, "spec", "nodeName") for pod in waiting):
            for node in self.snapshot.keys("Node"):
                found.setdefault(node, Reach(WEIGHTS[Relation.RUNS]))
        return found

    def blast_radius(self, target: ObjectKey) -> Mapping[ObjectKey, Reach]:
        """Returns the objects that a target can affect, with its reach to each; the target's group first."""
        return self._walk(target, self.out_of, lambda edge: edge.target)

    def _walk(
        self,
        target: ObjectKey,
        next_of: Callable[[ObjectKey], Sequence[Edge]],
        end: Callable[[Edge], ObjectKey],
    ) -> Mapping[ObjectKey, Reach]:
        found = {key: Reach(1.0) for key in sorted(self.group(target))}
        border = dict(found)
        for _ in range(MAX_STEPS):
            after: dict[ObjectKey, Reach] = {}
            for key, reach in border.items():
                for edge in next_of(key):
                    weight, other = reach.weight * WEIGHTS[edge.relation], end(edge)
                    best = after.get(other) or found.get(other)
                    if best is None or weight > best.weight:
                        after[other] = Reach(weight, (edge, *reach.path))
            found.update(after)
            border = after
        return found
