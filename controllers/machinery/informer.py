"""Takes the events of the watch into the cache, and queues the keys of the objects that they concern.

Decides nothing about an object and writes nothing; events of the watch, listings and our own writes are treated alike.

Decision: dependencies between objects are not stored. All configuration, and every object that waits, is reconciled
again when a spec changes: a reconcile that changes nothing is cheap, and a forgotten dependency would leave an object
waiting for ever. A change of a status queues an Investigation's Alert, the questions about it and the Alerts that were
folded into an Alert, and an EvalRun's suite. Where it changes what others rely on (readiness, availability, tools), it
also queues the configuration of its namespace that depends on others; for the library, that of all namespaces. These
dependencies have no circles, so the queue comes to rest.

Decision: the event of a status that this process wrote to an unfinished Alert or Investigation does not queue it again,
nor does a change of an Investigation that its Alert does not tell queue the Alert: most reconciles of an investigation
found nothing to do. A status is written over the version that it was computed from, so that event
contains nothing new but the status; a generation that no event has brought yet is reconciled whoever wrote the status,
because the watch may tell of two changes in one event.
"""

import asyncio
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

from tarsy.controllers.machinery.cache import PASSIVE, Cache, Key, Version
from tarsy.controllers.machinery.queue import KeyedQueue
from tarsy.controllers.schedules.times import SCHEDULE_NAME
from tarsy.plan.readiness import JUDGED_BY_OTHERS
from tarsy.resources.meta import AnyResource, Resource, condition
from tarsy.resources.v1alpha1 import (
    KINDS,
    Agent,
    Alert,
    AlertSchedule,
    ChatMessage,
    EvalRun,
    EvalSuite,
    Investigation,
    LLMProvider,
    MCPServer,
    Skill,
)
from tarsy.resources.v1alpha1.common import ConditionType

_R = TypeVar("_R", bound=AnyResource)

_ECHOED = (Alert.KIND, Investigation.KIND)
"""Kinds whose reconcile does nothing after a write of its own, or of the publisher, that did not end them."""

_CONFIGURATION = tuple(kind for kind in KINDS if kind not in PASSIVE)

_RELIED_ON: Mapping[str, tuple[ConditionType, ...]] = {
    Agent.KIND: (ConditionType.READY,),
    LLMProvider.KIND: (ConditionType.READY, ConditionType.SERVING),
    MCPServer.KIND: (ConditionType.READY, ConditionType.AVAILABLE, ConditionType.VERIFIED),
    Skill.KIND: (ConditionType.READY,),
    EvalSuite.KIND: (ConditionType.READY,),
    EvalRun.KIND: (ConditionType.ACCEPTED, ConditionType.COMPLETE, ConditionType.PASSED),
}
"""The conditions that the configuration which names an object is judged by."""


class Informer:
    """Updates the cache and the queue.

    Args:
        cache: is filled.
        queue: is told who is to be looked at.
        library_namespace: whose objects are used from other namespaces.

    `missed` is set when the watch listed what was known: that tells what is there, not what has gone meanwhile. With
    `missed_all` the watch itself had told of it before, so that it has listed all kinds anew; else it has just begun,
    and only the configuration was known, which is listed before the watch.
    """

    def __init__(self, cache: Cache, queue: KeyedQueue[Key], library_namespace: str = "") -> None:
        self._cache = cache
        self._queue = queue
        self._library_namespace = library_namespace
        self._told: dict[Key, tuple[object, ...]] = {}
        self._waiting: dict[Key, None] = {}
        self._deleted: dict[Key, set[str]] = {}
        self._followers: dict[Key, dict[Key, None]] = {}
        self._generations: dict[Key, tuple[str, int]] = {}
        self._alert_news: dict[Key, tuple[object, ...]] = {}
        self._listed_first: set[Key] = set()
        """Keys that a listing of our own told of, and the watch has not yet."""
        self.missed = asyncio.Event()
        self.missed_all = False

    def event(self, kind: str | None, raw: Mapping[str, Any]) -> None:
        """Takes an event of the watch.

        Args:
            kind: ADDED, MODIFIED or DELETED; None: the object was listed.
            raw: the object, of a kind of ours or a Namespace.
        """
        meta = raw["metadata"]
        if raw.get("kind") == "Namespace":
            self._cache.set_namespace(meta["name"], None if kind == "DELETED" else meta.get("labels") or {})
            self._wake_dependents(None)
            return
        key = Key(raw["kind"], meta.get("namespace", ""), meta["name"])
        if kind is None and self._cache.version(key) is not None:
            self.missed.set()
            self.missed_all = self.missed_all or key not in self._listed_first
        if kind == "DELETED":
            self.gone(key, meta["uid"])
        else:
            self.seen(raw)
        self._listed_first.discard(key)

    def seen(self, raw: Mapping[str, Any], instead_of: Version | None = None) -> None:
        """Takes an object that exists, and queues the objects that it concerns."""
        meta = raw["metadata"]
        before = self._cache.version(Key(raw["kind"], meta.get("namespace", ""), meta["name"]))
        key = self._cache.put(raw, watched=True, instead_of=instead_of)
        if before is None:
            self._listed_first.add(key)
        after = self._cache.version(key)
        if before is not None and after is not None and before.uid != after.uid:
            self.gone(key, before.uid)
        if key.kind in _ECHOED:
            self._cache.after_write(key, partial(self._look_unless_echo, key, Version.of(raw)))
        else:
            self.look_at(key)
        self._note_waiting(key)
        if key.kind == Alert.KIND:
            self._note_follower(key, raw)
            self._wake_followers(key)
            self._wake_schedule(key, raw)
        if key.kind == Investigation.KIND:
            self._wake_alert(key, raw)
            self._wake_questions(key)
        if key.kind == EvalRun.KIND:
            self._wake_suite(key, raw)
        if before is None or after is None or (before.uid, before.generation) != (after.uid, after.generation):
            self._spec_changed(key)
        if self._has_other_news(key):
            self._wake_users(key)

    def gone(self, key: Key, uid: str) -> None:
        """Removes an object that no longer exists, whichever object has its name now."""
        old = self._cache.find(key) if (self._cache.version(key) or Version("", 0, "")).uid == uid else None
        self._cache.drop(key, uid)
        self._told.pop(key, None)
        self._generations.pop(key, None)
        self._alert_news.pop(key, None)
        self._listed_first.discard(key)
        self._note_waiting(key)
        if key.kind == Alert.KIND:
            self._wake_followers(key)
        self._deleted.setdefault(key, set()).add(uid)
        self._queue.add(key)
        if isinstance(old, Investigation) and old.spec.alert_ref is not None:
            self._queue.add(Key(Alert.KIND, key.namespace, old.spec.alert_ref.name))
        self._spec_changed(key)

    def deleted(self, key: Key) -> tuple[str, ...]:
        """Lists the uids of the deleted objects of a name, until `ended` is called for each."""
        return tuple(self._deleted.get(key, ()))

    def ended(self, key: Key, uid: str) -> None:
        """Notes that the deletion of an object was handled."""
        self._deleted[key].discard(uid)
        if not self._deleted[key]:
            del self._deleted[key]

    def look_at_all(self) -> None:
        """Queues every known object."""
        for key in self._cache.all_keys():
            self.look_at(key)

    def look_at(self, key: Key) -> None:
        """Queues an object; finished ones, of which there may be tens of thousands, only when idle."""
        if self._cache.finished(key) is not None:
            self._queue.add_when_idle(key)
        else:
            self._queue.add(key)

    def _spec_changed(self, key: Key) -> None:
        """Queues the dependents of a changed spec; a status has none, but for an Investigation's Alert."""
        if key.kind not in PASSIVE:
            self._wake_dependents(key)
        elif key.kind == Alert.KIND:
            for other, found in self._waiting_in(key.namespace, Investigation):
                reference = found.spec.alert_ref
                if reference is not None and reference.name == key.name:
                    self._queue.add(other)

    def _look_unless_echo(self, key: Key, told: Version) -> None:
        if not self._is_echo(key, told):
            self.look_at(key)

    def _is_echo(self, key: Key, told: Version) -> bool:
        """Checks for an event that tells no more than a status that this process wrote; `told` is its version."""
        if self._cache.finished(key) is not None:
            self._generations.pop(key, None)
            return False
        generation = told.uid, told.generation
        known, self._generations[key] = self._generations.get(key), generation
        here = self._cache.version(key)
        return (
            known == generation
            and here is not None
            and here.uid == told.uid
            and self._cache.is_written(key)
            and (told.same_as(here) or told.older_than(here))
        )

    def _wake_alert(self, key: Key, raw: Mapping[str, Any]) -> None:
        """Queues the Alert of an Investigation, where something has changed that the Alert tells of it."""
        reference = (raw.get("spec") or {}).get("alertRef") or {}
        if not reference.get("name"):
            return
        alert = Key(Alert.KIND, key.namespace, reference["name"])
        found = None if self._cache.finished(key) is not None else self._cache.find(key)
        if not isinstance(found, Investigation):
            self._alert_news.pop(key, None)
            self.look_at(alert)
            return
        accepted = condition(found.status.conditions, ConditionType.ACCEPTED)
        refused = accepted.message if accepted is not None and accepted.status == "False" else None
        news = found.metadata.uid, refused
        known, self._alert_news[key] = self._alert_news.get(key), news
        if known != news:
            self.look_at(alert)

    def _note_follower(self, alert: Key, raw: Mapping[str, Any]) -> None:
        """Notes which Alert this one was folded into."""
        status = raw.get("status")
        leader = status.get("foldedInto") if isinstance(status, Mapping) else None
        if isinstance(leader, Mapping) and leader.get("name"):
            self._followers.setdefault(Key(Alert.KIND, alert.namespace, leader["name"]), {})[alert] = None

    def _wake_followers(self, alert: Key) -> None:
        """Queues the Alerts that were folded into this one."""
        for follower in list(self._followers.get(alert, ())):
            if self._cache.version(follower) is None:
                del self._followers[alert][follower]
            else:
                self.look_at(follower)
        if not self._followers.get(alert, True):
            del self._followers[alert]

    def _wake_questions(self, investigation: Key) -> None:
        """Queues the questions that wait for this Investigation to exist."""
        for key, found in self._waiting_in(investigation.namespace, ChatMessage):
            if found.spec.investigation_ref.name == investigation.name:
                self._queue.add(key)

    def _wake_suite(self, run: Key, raw: Mapping[str, Any]) -> None:
        """Queues the EvalSuite of a run that has a verdict, which the suite tells."""
        reference, status = (raw.get("spec") or {}).get("suiteRef") or {}, raw.get("status")
        if reference.get("name") and isinstance(status, Mapping) and status.get("finishedAt"):
            self._queue.add(Key(EvalSuite.KIND, run.namespace, reference["name"]))

    def _wake_schedule(self, alert: Key, raw: Mapping[str, Any]) -> None:
        """Queues the AlertSchedule of an Alert that has ended."""
        name = (raw["metadata"].get("annotations") or {}).get(SCHEDULE_NAME)
        if name and self._cache.finished(alert) is not None:
            schedule = Key(AlertSchedule.KIND, alert.namespace, name)
            if self._cache.version(schedule) is not None:
                self._queue.add(schedule)

    def _waiting_in(self, namespace: str, kind: type[_R]) -> Iterator[tuple[Key, _R]]:
        """Lists the objects of a kind in a namespace that wait; one that the watch will report as finished does not."""
        for key in self._waiting:
            if (key.kind, key.namespace) == (kind.KIND, namespace) and self._cache.finished(key) is None:
                found = self._cache.get(kind, namespace, key.name)
                if found is not None:
                    yield key, found

    def _wake_dependents(self, changed: Key | None) -> None:
        """Queues every object that may have waited for a change of configuration."""
        for kind in _CONFIGURATION:
            for key in self._cache.keys_of(kind):
                if key != changed:
                    self._queue.add(key)
        for key in self._waiting:
            self._queue.add(key)

    def _has_other_news(self, key: Key) -> bool:
        """Checks whether an object reports something else to its users than when it was last seen.

        What was told is kept here, not compared with the cache: that has what this controller writes before the watch
        tells of it.
        """
        found = self._cache.find(key) if key.kind in _RELIED_ON else None
        if not isinstance(found, Resource):
            return False
        news: tuple[object, ...] = tuple(
            (one.type, one.status, one.reason, one.observed_generation)
            for one in found.status.conditions
            if one.type in _RELIED_ON[key.kind]
        )
        if isinstance(found, MCPServer):
            news = (*news, found.status.tools_hash)
        before, self._told[key] = self._told.get(key), news
        return before is not None and before != news

    def _wake_users(self, changed: Key) -> None:
        """Queues the objects that may rely on `changed`: configuration, and those that wait for a plan."""
        everywhere = changed.namespace == self._library_namespace
        for kind in JUDGED_BY_OTHERS:
            for key in self._cache.keys_of(kind.KIND):
                if key != changed and (everywhere or key.namespace == changed.namespace):
                    self._queue.add(key)
        for key in self._waiting if changed.kind == MCPServer.KIND else ():
            if everywhere or key.namespace == changed.namespace:
                self._queue.add(key)

    def _note_waiting(self, key: Key) -> None:
        """Notes Alerts, Investigations and questions that are neither accepted nor finished, and so wait."""
        self._waiting.pop(key, None)
        if self._cache.finished(key) is not None:
            return
        found = self._cache.find(key)
        if isinstance(found, Alert | Investigation | ChatMessage):
            accepted = condition(found.status.conditions, ConditionType.ACCEPTED)
            if accepted is None or accepted.status != "True":
                self._waiting[key] = None
