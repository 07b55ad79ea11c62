"""The informer: takes the news of the cluster into the cache, and puts into the queue whoever it concerns.

Decides nothing about an object and writes nothing: whose turn it is follows from what it is told, by the watch, the
listings and our own writes alike. Decision: who depends on whom is not kept. Whatever waits, and all configuration, is
looked at again when a spec changes, because a look that changes nothing costs next to nothing, and a dependency that
was forgotten leaves an object waiting for ever. A change of a status wakes an Investigation's Alert, the questions
about it and the Alerts that were folded into an Alert; and where it changes what others may rely on (is it Ready, does
it answer, which tools are there), the configuration of its namespace that depends on others, of all namespaces where it
is the library's. These dependencies have no circles, so it comes to rest after as many rounds as there are kinds in a
row.
"""

import asyncio
from collections.abc import Mapping
from typing import Any

from tarsy.controllers.machinery.cache import Cache, Key, Version
from tarsy.controllers.machinery.queue import KeyedQueue
from tarsy.controllers.machinery.relist import PASSIVE
from tarsy.plan.readiness import JUDGED_BY_OTHERS
from tarsy.resources.meta import Resource, condition
from tarsy.resources.v1alpha1 import (
    Agent,
    Alert,
    ChatMessage,
    Investigation,
    LLMProvider,
    MCPServer,
)
from tarsy.resources.v1alpha1.common import ConditionType

_RELIED_ON: Mapping[str, tuple[ConditionType, ...]] = {
    Agent.KIND: (ConditionType.READY,),
    LLMProvider.KIND: (ConditionType.READY, ConditionType.SERVING),
    MCPServer.KIND: (ConditionType.READY, ConditionType.AVAILABLE, ConditionType.VERIFIED),
}
"""The conditions that the configuration which names an object is judged by."""


class Informer:
    """What is known of the cluster, and whose turn it is.

    Args:
        cache: is filled.
        queue: is told who is to be looked at.
        library_namespace: whose objects are used from other namespaces.

    `missed` is set when the watch listed a kind anew: that tells what is there, not what has gone meanwhile.
    """

    def __init__(self, cache: Cache, queue: KeyedQueue[Key], library_namespace: str = "") -> None:
        self._cache = cache
        self._queue = queue
        self._library_namespace = library_namespace
        self._told: dict[Key, tuple[object, ...]] = {}
        self._waiting: dict[Key, None] = {}
        self._deleted: dict[Key, set[str]] = {}
        self._followers: dict[Key, dict[Key, None]] = {}
        self.missed = asyncio.Event()

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
        if kind == "DELETED":
            self.gone(key, meta["uid"])
        else:
            self.seen(raw)

    def seen(self, raw: Mapping[str, Any], instead_of: Version | None = None) -> None:
        """An object is there: takes it, and whoever it concerns is looked at."""
        meta = raw["metadata"]
        before = self._cache.version(Key(raw["kind"], meta.get("namespace", ""), meta["name"]))
        key = self._cache.put(raw, instead_of=instead_of)
        after = self._cache.version(key)
        if before is not None and after is not None and before.uid != after.uid:
            self.gone(key, before.uid)
        self.look_at(key)
        self._note_waiting(key)
        if key.kind == Alert.KIND:
            self._wake_followers(key)
        if key.kind == Investigation.KIND:
            self._wake_alert(raw)
            self._wake_questions(key)
        if before is None or after is None or (before.uid, before.generation) != (after.uid, after.generation):
            self._spec_changed(key)
        if self._has_other_news(key):
            self._wake_users(key)

    def gone(self, key: Key, uid: str) -> None:
        """An object is there no more, whatever has its name now."""
        old = self._cache.find(key) if (self._cache.version(key) or Version("", 0, "")).uid == uid else None
        self._cache.drop(key, uid)
        self._told.pop(key, None)
        self._note_waiting(key)
        if key.kind == Alert.KIND:
            self._wake_followers(key)
        self._deleted.setdefault(key, set()).add(uid)
        self._queue.add(key)
        if isinstance(old, Investigation) and old.spec.alert_ref is not None:
            self._queue.add(Key(Alert.KIND, key.namespace, old.spec.alert_ref.name))
        self._spec_changed(key)

    def deleted(self, key: Key) -> tuple[str, ...]:
        """The uids of those of this name that are gone, until `ended` says that nothing of them is left to do."""
        return tuple(self._deleted.get(key, ()))

    def ended(self, key: Key, uid: str) -> None:
        """What an object's end asked for was done."""
        self._deleted[key].discard(uid)
        if not self._deleted[key]:
            del self._deleted[key]

    def look_at_all(self) -> None:
        """Looks at every object that is known."""
        for key in self._cache.all_keys():
            self.look_at(key)

    def look_at(self, key: Key) -> None:
        """Soon; what has ended, of which there may be tens of thousands, when nothing else is to be done."""
        found = self._cache.find(key)
        ended = isinstance(found, Alert | Investigation) and condition(found.status.conditions, ConditionType.FINISHED)
        if ended and ended.status == "True":
            self._queue.add_when_idle(key)
        else:
            self._queue.add(key)

    def _spec_changed(self, key: Key) -> None:
        """Not for changes of a status: nobody depends on the status of another, but alerts on their Investigation's."""
        if key.kind not in PASSIVE:
            self._wake_dependents(key)
        elif key.kind == Alert.KIND:
            for other in self._waiting:
                found = self._cache.find(other) if other.namespace == key.namespace else None
                reference = found.spec.alert_ref if isinstance(found, Investigation) else None
                if reference is not None and reference.name == key.name:
                    self._queue.add(other)

    def _wake_alert(self, raw: Mapping[str, Any]) -> None:
        reference = (raw.get("spec") or {}).get("alertRef") or {}
        if reference.get("name"):
            self.look_at(Key(Alert.KIND, raw["metadata"].get("namespace", ""), reference["name"]))

    def _wake_followers(self, alert: Key) -> None:
        """Alerts that were folded into this one; notes what this one was folded into."""
        found = self._cache.find(alert)
        if isinstance(found, Alert) and found.status.folded_into is not None:
            leader = Key(Alert.KIND, alert.namespace, found.status.folded_into.name)
            self._followers.setdefault(leader, {})[alert] = None
        for follower in list(self._followers.get(alert, ())):
            if self._cache.find(follower) is None:
                del self._followers[alert][follower]
            else:
                self.look_at(follower)
        if not self._followers.get(alert, True):
            del self._followers[alert]

    def _wake_questions(self, investigation: Key) -> None:
        """Those that wait for an Investigation that was not there."""
        for key in self._waiting:
            found = self._cache.find(key) if key.namespace == investigation.namespace else None
            if isinstance(found, ChatMessage) and found.spec.investigation_ref.name == investigation.name:
                self._queue.add(key)

    def _wake_dependents(self, changed: Key | None) -> None:
        """Configuration changed: whatever may have waited for it is looked at again."""
        for key in self._cache.all_keys():
            if key.kind not in PASSIVE and key != changed:
                self._queue.add(key)
        for key in self._waiting:
            self._queue.add(key)

    def _has_other_news(self, key: Key) -> bool:
        """Whether an object that others rely on says something else than when it was seen last.

        What was told is kept here, not compared with the cache: that has what this controller writes before the watch
        tells of it.
        """
        found = self._cache.find(key)
        if not isinstance(found, Resource) or key.kind not in _RELIED_ON:
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
        """Whatever may rely on `changed`: configuration, and what waits for a plan."""
        everywhere = changed.namespace == self._library_namespace
        for kind in JUDGED_BY_OTHERS:
            for key in self._cache.keys_of(kind.KIND):
                if key != changed and (everywhere or key.namespace == changed.namespace):
                    self._queue.add(key)
        for key in self._waiting if changed.kind == MCPServer.KIND else ():
            if everywhere or key.namespace == changed.namespace:
                self._queue.add(key)

    def _note_waiting(self, key: Key) -> None:
        """Alerts, Investigations and questions that are not accepted, nor finished: they wait for something else."""
        found = self._cache.find(key)
        self._waiting.pop(key, None)
        if isinstance(found, Alert | Investigation | ChatMessage):
            accepted = condition(found.status.conditions, ConditionType.ACCEPTED)
            ended = condition(found.status.conditions, ConditionType.FINISHED)
            if (accepted is None or accepted.status != "True") and (ended is None or ended.status != "True"):
                self._waiting[key] = None
