"""Records changes of the status of conditions of configuration objects, for their health over time.

Watches: nothing of its own; every reconcile shows it the object before and after. Decides: which conditions have
another status or lastTransitionTime than what is recorded. Writes: those to Postgres, at most once a second.

Decision: it records what the status of an object is, not what a reconcile is about to write. So nothing is lost when
the controller dies between status and record: the next one sees the object, compares it with the last recorded change
of each condition, and writes what is missing. A status that changes again and again takes `A_MINUTE` rows of an object
a minute: what comes faster is left out and counted, and the last status is recorded when there is room again.
"""

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from pydantic import ValidationError

from tarsy.controllers.machinery.cache import UnreadableObject
from tarsy.controllers.machinery.while_active import run_while_active
from tarsy.kube.client import ApiError
from tarsy.kube.lease import LeaderElection
from tarsy.masking import MaskingError
from tarsy.record.reading.condition_transition import ABSENT, ConditionHead, ConditionTransition
from tarsy.record.reading.object_history import ObjectIdentity
from tarsy.resources.health import CONFIGURATION_KINDS, address_of
from tarsy.resources.meta import AnyResource, Conditions, Status
from tarsy.resources.schema import whole_seconds
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.store.errors import StoreError

_log = logging.getLogger(__name__)

RECORDED_KINDS: Final = frozenset(kind.KIND for kind in CONFIGURATION_KINDS)

A_MINUTE: Final = 12
"""Rows of one object that are written in a minute, and states of it that wait to be compared."""

AT_ONCE: Final = 200
"""Objects whose states are compared and written together."""

PAUSE_SECONDS: Final = 1.0
RETRY_SECONDS: Final = 5.0
WITHHELD: Final = "The message could not be searched for secrets and is withheld."
_TYPES: Final = frozenset(ConditionType)


class TransitionStore(Protocol):
    """Reads and writes changes (`tarsy.store.history.condition_transitions`)."""

    async def heads(self, uids: list[str], /) -> Mapping[str, tuple[str, dict[str, ConditionHead]]]: ...

    async def write(self, changes: list[ConditionTransition], /) -> int: ...


@dataclass(frozen=True, slots=True)
class _Reported:
    """A condition as an object reports it."""

    status: str
    at: datetime
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class _State:
    """The conditions of an object as they were seen, and how many states just before were left out."""

    uid: str
    kind: str
    namespace: str
    name: str
    conditions: Mapping[str, _Reported]
    address: str | None
    seen_at: datetime
    omitted: int = 0

    def stamps(self) -> list[tuple[str, str, datetime]]:
        """Returns what makes it another state than the one before."""
        return [(type_, one.status, one.at) for type_, one in self.conditions.items()]


@dataclass(slots=True)
class _Known:
    """What is recorded of an object, and the times (`time.monotonic`) of its last rows."""

    namespace_uid: str
    heads: dict[str, ConditionHead]
    written: deque[float] = field(default_factory=lambda: deque(maxlen=A_MINUTE))

    def room(self, now: float) -> int:
        """Returns the number of rows that may be written now."""
        while self.written and self.written[0] <= now - 60.0:
            self.written.popleft()
        return A_MINUTE - len(self.written)


@dataclass(slots=True)
class _Compared:
    """Changes of an object, the heads after them, and the states that must wait for room."""

    changes: list[ConditionTransition]
    heads: dict[str, ConditionHead]
    left: list[_State]


class TransitionRecorder:
    """Records changes of conditions.

    Args:
        store: the record.
        namespace_uid: returns the uid of a namespace, None when there is none; raises ApiError.
        mask: masks a message.
        kept: age from which a change is not recorded any more, because it would be deleted; None: any is.
        clock: the monotonic time in seconds.
    """

    def __init__(
        self,
        store: TransitionStore,
        namespace_uid: Callable[[str], Awaitable[str | None]],
        mask: Callable[[str], str],
        kept: timedelta | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._namespace_uid = namespace_uid
        self._mask = mask
        self._kept = kept
        self._clock = clock
        self._last: dict[str, _State] = {}
        self._known: dict[str, _Known] = {}
        self._waiting: dict[str, list[_State]] = {}
        self._wake = asyncio.Event()

    def observe(self, found: AnyResource | UnreadableObject | None) -> None:
        """Takes the conditions of an object of a configuration kind; nothing is done when they are as before."""
        state = _state_of(found)
        if state is None:
            return
        before = self._last.get(state.uid)
        if before is not None and before.stamps() == state.stamps():
            return
        self._last[state.uid] = state
        self._waiting[state.uid] = _bounded([*self._waiting.get(state.uid, ()), state])
        self._wake.set()

    def forget(self, uid: str) -> None:
        """Drops what is kept of a deleted object; what waits is still recorded."""
        self._last.pop(uid, None)
        self._known.pop(uid, None)

    async def run(self, election: LeaderElection) -> None:
        """Records while this replica is active, until cancelled; a failure of it ends nothing else."""
        await run_while_active(election, self._work, "the recorder of condition transitions")

    async def _work(self) -> None:
        """Writes what is observed; another active controller may have written before, so what is recorded is read."""
        self._known.clear()
        failing = False
        while True:
            if not self._waiting:
                self._wake.clear()
                await self._wake.wait()
            try:
                await self.flush()
                failing = False
            except (ApiError, StoreError) as error:
                if not failing:
                    _log.warning("transitions of conditions wait to be recorded: %s", error)
                failing = True
            await asyncio.sleep(RETRY_SECONDS if failing else PAUSE_SECONDS)

    async def flush(self) -> None:
        """Compares and writes what waits and has room, once. Raises StoreError and ApiError: all of it still waits."""
        now = self._clock()
        uids = [uid for uid in self._waiting if uid not in self._known or self._known[uid].room(now) > 0][:AT_ONCE]
        taken = {uid: self._waiting.pop(uid) for uid in uids}
        compared: dict[str, _Compared] = {}
        try:
            known = await self._learned(uids)
            await self._name_namespaces([(known[uid], states[0].namespace) for uid, states in taken.items()])
            compared = {uid: self._compare(states, known[uid]) for uid, states in taken.items()}
            changes = [change for one in compared.values() for change in one.changes]
            if changes:
                await self._store.write(changes)
            taken = {uid: one.left for uid, one in compared.items()}
            self._settle(compared)
        finally:  # after an error, or a cancellation: all of it
            for uid, states in taken.items():
                if states:
                    self._waiting[uid] = _bounded([*states, *self._waiting.get(uid, ())])

    async def _learned(self, uids: list[str]) -> dict[str, _Known]:
        """Returns what is recorded; it is read of objects that are seen for the first time."""
        known = {uid: self._known[uid] for uid in uids if uid in self._known}
        if new := [uid for uid in uids if uid not in known]:
            recorded = await self._store.heads(new)
            learned = {uid: _Known(*recorded.get(uid, ("", {}))) for uid in new}
            self._known |= learned
            known |= learned
        return known

    async def _name_namespaces(self, objects: list[tuple[_Known, str]]) -> None:
        """Looks up the namespaces of objects of which nothing is recorded; an object stays in its namespace."""
        unknown = {namespace for known, namespace in objects if not known.namespace_uid}
        uids = {namespace: await self._namespace_uid(namespace) or "" for namespace in unknown}
        for known, namespace in objects:
            known.namespace_uid = known.namespace_uid or uids[namespace]

    def _compare(self, states: list[_State], known: _Known) -> _Compared:
        """Finds the changes that are not recorded, as many as have room, in the states of one object.

        Args:
            states: of the object, the oldest first.
            known: what is recorded of it.
        """
        if not known.namespace_uid:  # the namespace is gone, and the object with it
            return _Compared([], known.heads, [])
        room, found = known.room(self._clock()), _Compared([], dict(known.heads), [])
        oldest = None if self._kept is None else datetime.now(UTC) - self._kept
        for place, state in enumerate(states):
            new = _news(state, found.heads)
            if len(found.changes) + len(new) > room:
                found.left = states[place:]
                break
            recorded = [(type_, one) for type_, one in new.items() if oldest is None or one.at > oldest]
            for number, (type_, one) in enumerate(recorded):
                omitted = state.omitted if number == 0 else 0
                was = found.heads.get(type_)
                found.changes.append(self._change(state, type_, one, was, known.namespace_uid, omitted))
            found.heads.update({type_: ConditionHead(one.status, one.at) for type_, one in new.items()})
        return found

    def _settle(self, compared: Mapping[str, _Compared]) -> None:
        """Notes what was written."""
        now = self._clock()
        for uid, one in compared.items():
            if (known := self._known.get(uid)) is not None:
                known.heads = one.heads
                known.written.extend([now] * len(one.changes))
            if uid not in self._last:  # it was deleted
                self._known.pop(uid, None)

    def _change(
        self, state: _State, type_: str, now: _Reported, was: ConditionHead | None, namespace_uid: str, omitted: int
    ) -> ConditionTransition:
        return ConditionTransition(
            object=ObjectIdentity(namespace_uid, state.namespace, state.kind, state.name, state.uid),
            type=type_,
            at=now.at,
            status=now.status,
            was=None if was is None else was.status,
            reason=now.reason,
            message=self._masked(now.message),
            address=state.address,
            omitted=omitted,
        )

    def _masked(self, message: str) -> str:
        try:
            return self._mask(message)
        except MaskingError as error:
            _log.warning("a message of a condition is recorded as withheld: %s", error)
            return WITHHELD


def _state_of(found: AnyResource | UnreadableObject | None) -> _State | None:
    """Reads the conditions of an object; None: it is of another kind, or a controller has not visited it yet."""
    now = whole_seconds(datetime.now(UTC))
    if isinstance(found, UnreadableObject):
        meta, kind, address = found.raw["metadata"], found.raw["kind"], None
        uid, namespace, name = meta.get("uid", ""), meta.get("namespace", ""), meta["name"]
        conditions = _readable(found.raw.get("status"))
    elif found is not None:
        kind, address, conditions = found.KIND, address_of(found), found.status.conditions
        uid, namespace, name = found.metadata.uid, found.metadata.namespace, found.metadata.name
    else:
        return None
    if kind not in RECORDED_KINDS or not uid or not conditions:
        return None
    reported = {
        one.type: _Reported(one.status, one.last_transition_time, one.reason, one.message)
        for one in conditions
        if one.type in _TYPES and one.last_transition_time is not None
    }
    return _State(uid, kind, namespace, name, reported, address, now)


def _readable(status: object) -> Conditions:
    try:
        return Status.model_validate(status or {}).conditions
    except ValidationError:
        return ()


def _news(state: _State, heads: Mapping[str, ConditionHead]) -> dict[str, _Reported]:
    """Returns the conditions that differ from what is recorded, and those that are recorded and missing."""
    news = {
        type_: one for type_, one in state.conditions.items() if heads.get(type_) != ConditionHead(one.status, one.at)
    }
    for type_, head in heads.items():
        if type_ not in state.conditions and head.status != ABSENT:
            news[type_] = _Reported(ABSENT, max(state.seen_at, head.at), ABSENT, "")
    return dict(sorted(news.items(), key=lambda item: item[1].at))


def _bounded(states: list[_State]) -> list[_State]:
    """Leaves out the states before the last one that are too many; it counts them."""
    excess = len(states) - A_MINUTE
    if excess <= 0:
        return states
    gone, last = states[A_MINUTE - 1 : -1], states[-1]
    omitted = last.omitted + sum(1 + one.omitted for one in gone)
    return [*states[: A_MINUTE - 1], replace(last, omitted=omitted)]
