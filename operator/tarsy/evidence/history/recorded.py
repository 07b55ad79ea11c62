"""Turns recorded versions into changes, and merges them with reconstructed ones.

Of one change that both know, the recorded one counts: it has the manager and the fields, and its time is exact.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tarsy.evidence.changes.change import Change, ChangeType, Source
from tarsy.evidence.changes.managers import NEAR
from tarsy.evidence.fields import one_line
from tarsy.evidence.snapshot import Gap, ObjectKey
from tarsy.record.reading.object_history import ObjectVersion, Unwatched, VersionAction

ONSET_BEFORE_ALERT = timedelta(days=1)
"""How long before its alert a failure may have begun for its changes to be read from the history."""

_FIELDS_SHOWN = 6
_VALUE_LENGTH = 120
_SHOWN_BELOW = ("spec", "containers", "failed", "deployed")
_DISTINCT = (ChangeType.RESTART, ChangeType.DELETE)


@dataclass(frozen=True, slots=True)
class RecordedHistory:
    """The history of a namespace, as far as its reader may read it.

    Attributes:
        changes: the recorded changes, the oldest first.
        gaps: windows and kinds that were not watched.
    """

    changes: Sequence[Change] = ()
    gaps: Sequence[Gap] = ()


def recorded_history(
    namespace: str, versions: Iterable[ObjectVersion], unwatched: Iterable[Unwatched]
) -> RecordedHistory:
    """Returns the history of a namespace from its recorded versions.

    Args:
        namespace: its name.
        versions: as read, of kinds that the reader may read only.
        unwatched: windows without a watch, of these kinds.
    """
    changes = sorted(recorded_changes(versions), key=lambda one: (one.at, one.object, one.summary))
    return RecordedHistory(changes, [Gap(one.kind, namespace, _told(one)) for one in unwatched])


def recorded_changes(versions: Iterable[ObjectVersion]) -> Iterator[Change]:
    """Yields the changes that versions tell of.

    A change of only labels or annotations is none, except of objects of the network, which are configured by them; nor
    is one of a type that only a newer version knows.
    """
    for one in versions:
        about_metadata = bool(one.fields) and all(field.startswith("metadata") for field in one.fields)
        if one.type not in set(ChangeType) or (about_metadata and one.type != ChangeType.NETWORK):
            continue
        key = ObjectKey(one.object.kind, one.object.namespace, one.object.name)
        yield Change(
            one.changed_at,
            ChangeType(one.type),
            key,
            _summary(one),
            one.manager,
            tuple(one.fields),
            Source.RECORDED,
        )


def merged_changes(reconstructed: Sequence[Change], recorded: Sequence[Change]) -> Sequence[Change]:
    """Returns the changes that a history or the present objects tell of, each once, the oldest first."""
    by_object: dict[ObjectKey, list[Change]] = {}
    for change in recorded:
        by_object.setdefault(change.object, []).append(change)
    kept = [one for one in reconstructed if not any(_same(one, other) for other in by_object.get(one.object, ()))]
    return sorted([*kept, *recorded], key=lambda one: (one.at, one.object, one.summary))


def _same(reconstructed: Change, recorded: Change) -> bool:
    if abs(reconstructed.at - recorded.at) > NEAR:
        return False
    distinct = reconstructed.type in _DISTINCT or recorded.type in _DISTINCT
    return reconstructed.type is recorded.type or not distinct


def _summary(version: ObjectVersion) -> str:
    """Describes a version in one line; values are those of the form, which has digests and masked text only."""
    when = "" if version.not_before is None else f", at some time after {_time(version.not_before)}"
    match version.action:
        case VersionAction.CREATED:
            return f"created{when}"
        case VersionAction.DELETED:
            return f"deleted{when}"
    if version.object.kind == "Pod":
        return f"{_pod_summary(version)}{when}"
    told = [_step_summary(version, step, field) for step, field in _with_fields(version)]
    if not told:
        return f"changed: {', '.join(version.fields[:_FIELDS_SHOWN]) or 'a masked value'}{when}"
    more = f"; and {len(version.fields) - _FIELDS_SHOWN} more" if len(version.fields) > _FIELDS_SHOWN else ""
    times = f", {version.count} times until {_time(version.last_at)}" if version.count > 1 else ""
    return f"changed: {'; '.join(told[:_FIELDS_SHOWN])}{more}{times}{when}"


def _with_fields(version: ObjectVersion) -> Iterator[tuple[dict[str, Any], str]]:
    """Yields steps with their paths in words, where there is one for each."""
    if len(version.patch) == len(version.fields):
        yield from ((dict(step), field) for step, field in zip(version.patch, version.fields, strict=True))


def _step_summary(version: ObjectVersion, step: dict[str, Any], field: str) -> str:
    old, new = step.get("old"), step.get("value")
    shown = field.split(".", 1)[0].split("[", 1)[0] in _SHOWN_BELOW and not _is_digest(old) and not _is_digest(new)
    if not shown:
        return {"add": f"{field} added", "remove": f"{field} removed"}.get(step["op"], field)
    match step["op"]:
        case "add":
            return f"{field} set to {_shown(new)}"
        case "remove":
            return f"{field} removed (was {_shown(old)})"
    return f"{field} {_shown(old)} -> {_shown(new)}"


def _pod_summary(version: ObjectVersion) -> str:
    ends = []
    for step in version.patch:
        path, value = str(step["path"]), step.get("value")
        parts = path.split("/")
        if path == "/failed":
            ends.append(f"failed: {value}")
        elif path == "/containers" and isinstance(value, dict):
            ends += [f"container {name} {_end(state)}" for name, state in value.items()]
        elif len(parts) == 3 and isinstance(value, dict):
            ends.append(f"container {parts[2]} {_end(value)}")
        elif len(parts) == 4 and parts[3] == "restarts":
            ends.append(f"container {parts[2]} ended again, {value} restarts in all")
    times = f", {version.count} times until {_time(version.last_at)}" if version.count > 1 else ""
    return ("; ".join(ends) or "restarted") + times


def _end(state: Any) -> str:
    found = state if isinstance(state, dict) else {}
    code, reason, restarts = found.get("exitCode"), found.get("reason") or "no reason", found.get("restarts")
    return f"ended with exit code {code} ({reason}), {restarts} restarts in all"


def _is_digest(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_is_digest(one) for one in value.values())
    if isinstance(value, list):
        return any(_is_digest(one) for one in value)
    return isinstance(value, str) and value.startswith("digest:")


def _shown(value: Any) -> str:
    text = one_line(value if isinstance(value, str) else repr(value))
    return text if len(text) <= _VALUE_LENGTH else f"{text[:_VALUE_LENGTH]}..."


def _told(window: Unwatched) -> str:
    since = "" if window.since is None else f" from {_time(window.since)}"
    until = "" if window.until is None else f" to {_time(window.until)}"
    return f"not watched{since}{until}: {window.reason}"


def _time(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"
