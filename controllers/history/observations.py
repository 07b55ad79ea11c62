"""Turns objects into observations, in a thread: JSON, digests and masking take milliseconds an object."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from tarsy.controllers.history.places import KnownState, Place
from tarsy.evidence.fields import mapping, string
from tarsy.evidence.history.form import FormRules, form_of, is_recorded, selected
from tarsy.evidence.history.versions import Observation, next_step, older
from tarsy.record.reading.object_history import HistoryStep, ObjectHead, ObjectIdentity
from tarsy.record.text import clean

DELETED = "DELETED"
ADDED = "ADDED"
LISTED = "LISTED"
_NAME_LENGTH = 253


@dataclass(frozen=True, slots=True)
class SeenObject:
    """An object that a listing or a watch told of.

    Attributes:
        document: the event as JSON; None: `raw` is the object.
        raw: the object.
        action: LISTED, ADDED, MODIFIED or DELETED.
        seen_at: when.
    """

    action: str
    seen_at: datetime
    document: bytes | None = None
    raw: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Batch:
    """Holds new observations of a kind: in each round, an object occurs at most once.

    Attributes:
        rounds: observations of states that are not recorded.
        versions: the resourceVersion of each object whose state is recorded already.
    """

    rounds: Sequence[Sequence[Observation]]
    versions: Mapping[str, str]


def observed(place: Place, seen: Sequence[SeenObject], rules: FormRules, since: datetime | None) -> Batch:
    """Returns what is new of objects of a kind.

    Args:
        place: the kind in its namespace.
        seen: the objects, in the order in which they were seen.
        rules: how values are replaced.
        since: from when on all changes of the kind were seen, for those that are listed now.
    """
    rounds: list[dict[str, Observation]] = []
    versions: dict[str, str] = {}
    news: dict[str, bytes | None] = {}
    for one in seen:
        raw = one.raw if one.raw is not None else orjson.loads(one.document or b"{}").get("object", {})
        metadata = mapping(raw, "metadata")
        uid, version = string(metadata, "uid"), string(metadata, "resourceVersion")
        raw = {**raw, "kind": place.kind.kind}
        known = place.known.get(uid)
        if not uid or not is_recorded(raw) or (known is not None and older(version, known.resource_version)):
            continue
        before = news.get(uid, known.digest if known is not None else None)
        form, digest = None, b""
        if one.action == DELETED:
            news[uid] = None
            if before is None:
                continue
        else:
            state = selected(raw)
            if not state and before is None:
                continue
            digest = rules.digests.of_state(state)
            if before == digest:
                versions[uid] = version
                continue
            news[uid] = digest
            form = form_of(place.kind.kind, state, rules)
        name = clean(string(metadata, "name"))[:_NAME_LENGTH]
        found = Observation(
            object=ObjectIdentity(place.namespace_uid, place.namespace, place.kind.kind, name, uid),
            seen_at=one.seen_at,
            since=since,
            digest=digest,
            key_id=rules.digests.key_id,
            resource_version=version,
            form=form,
            raw=raw,
            exact=one.action != LISTED,
            added=one.action == ADDED,
        )
        versions[uid] = version
        _append(rounds, uid, found)
    return Batch([list(one.values()) for one in rounds], versions)


def missing(place: Place, listed: set[str], seen_at: datetime, since: datetime | None, key_id: bytes) -> Batch:
    """Returns the objects that a full listing of a kind did not have: they were deleted.

    Args:
        place: the kind in its namespace.
        listed: uids of the listed objects.
        seen_at: when the listing began.
        since: from when on they may have been deleted.
        key_id: identifies the key of the digests.
    """
    gone = [
        Observation(
            object=ObjectIdentity(place.namespace_uid, place.namespace, place.kind.kind, known.name, uid),
            seen_at=seen_at,
            since=since,
            digest=b"",
            key_id=key_id,
            resource_version="",
            form=None,
            raw={},
            exact=False,
        )
        for uid, known in place.known.items()
        if uid not in listed
    ]
    return Batch([gone] if gone else [], {})


def decided(heads: Mapping[str, ObjectHead], observations: Sequence[Observation]) -> Sequence[HistoryStep]:
    """Returns what observations of different objects add to the history."""
    steps = (next_step(heads.get(one.object.uid), one) for one in observations)
    return [step for step in steps if step is not None]


def learn(place: Place, batch: Batch, observations: Sequence[Observation]) -> None:
    """Notes the recorded states of a round in what is known of its kind.

    Args:
        place: the kind in a namespace.
        batch: of changes, with the versions of their objects.
        observations: what was recorded of the batch.
    """
    for one in observations:
        if one.form is None:
            place.known.pop(one.object.uid, None)
        else:
            version = batch.versions.get(one.object.uid, "")
            place.known[one.object.uid] = KnownState(one.object.name, one.digest, version)


def _append(rounds: list[dict[str, Observation]], uid: str, found: Observation) -> None:
    """Adds an observation to the first round after those that have its object."""
    number = sum(uid in one for one in rounds)
    if number == len(rounds):
        rounds.append({})
    rounds[number][uid] = found
