"""Prepares what most rules ask: pods that should run, their events, their workload."""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property

from tarsy.evidence.edges import Relation
from tarsy.evidence.events import event_message, recent_events
from tarsy.evidence.fields import Object, mappings, string
from tarsy.evidence.snapshot import ObjectKey, Snapshot
from tarsy.evidence.topology import Topology
from tarsy.evidence.workloads import ContainerState, container_states, is_over, is_ready


class Facts:
    """The objects of a snapshot as rules look at them."""

    def __init__(self, snapshot: Snapshot, topology: Topology) -> None:
        self.snapshot = snapshot
        self.topology = topology
        self._events = recent_events(snapshot)
        self._workloads: dict[ObjectKey, ObjectKey] = {}

    @cached_property
    def pods(self) -> Sequence[tuple[ObjectKey, Object]]:
        """The pods that have not ended and are not being deleted."""
        return [(key, pod) for key, pod in self.snapshot.items("Pod") if not is_over(pod)]

    @cached_property
    def unready_pods(self) -> Sequence[tuple[ObjectKey, Object]]:
        """The pods of `pods` that are not ready."""
        return [(key, pod) for key, pod in self.pods if not is_ready(pod)]

    @cached_property
    def unscheduled_pods(self) -> Sequence[tuple[ObjectKey, Object]]:
        """The pods of `pods` that have no node."""
        return [(key, pod) for key, pod in self.pods if not string(pod, "spec", "nodeName")]

    @cached_property
    def failing_containers(self) -> Sequence[tuple[ObjectKey, Object, ContainerState]]:
        """The containers of unready pods that wait, or that ended."""
        return [
            (key, pod, state)
            for key, pod in self.unready_pods
            for state in container_states(pod)
            if not state.ready and (state.waiting or state.ended)
        ]

    def messages(self, key: ObjectKey, *reasons: str) -> Iterator[str]:
        """Yields the messages of recent Events of an object with one of these reasons, the latest first."""
        for event in self._events.get(key, []):
            if string(event, "reason") in reasons:
                yield event_message(event)

    def message(self, key: ObjectKey, pattern: re.Pattern[str], *reasons: str) -> str:
        """Returns the latest message of an object that a pattern finds; empty: there is none."""
        return next((text for text in self.messages(key, *reasons) if pattern.search(text)), "")

    def workload(self, key: ObjectKey) -> ObjectKey:
        """Returns the topmost owner of an object, or the object itself."""
        seen = {key: None}
        while key not in self._workloads and (owner := self._owner(key)) is not None and owner not in seen:
            key = owner
            seen[owner] = None
        top = self._workloads.get(key, key)
        self._workloads.update(dict.fromkeys(seen, top))
        return top

    def _owner(self, key: ObjectKey) -> ObjectKey | None:
        for edge in self.topology.into(key):
            if edge.relation is Relation.OWNS:
                return edge.source
        owners = mappings(self.snapshot.at(key), "metadata", "ownerReferences")
        return next(
            (ObjectKey(string(o, "kind"), key.namespace, string(o, "name")) for o in owners if o.get("controller")),
            None,
        )
