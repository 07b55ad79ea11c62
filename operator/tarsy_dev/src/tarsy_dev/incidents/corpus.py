"""Loads an incident from its file into a Snapshot, as a reader with all rights over the namespace would have read it.

`!ago 40m` stands for the time 40 minutes before the snapshot was read, `!ago -2h` for two hours after it, `!micro 40m`
for the same with microseconds, which the API demands of an Event's `eventTime` and `lastObservedTime`. What the
product does not read is left out here too: other kinds, other namespaces, the data of ConfigMaps.
"""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from tarsy.evidence.fields import Object
from tarsy.evidence.reading import KINDS
from tarsy.evidence.snapshot import ObjectKey, Snapshot

FOLDER = Path(__file__).parents[5] / "tests/incidents"
"""The corpus of a checkout; the package does not contain it."""

READ_AT = datetime(2026, 3, 10, 18, 30, tzinfo=UTC)
"""The time now of an incident, where nothing else is asked for."""

KINDS_OF_INCIDENTS = {"cause": 12, "distractor": 4, "no-fault": 4}
"""Incidents of each kind in each half."""

_CLUSTER = {one.kind for one in KINDS if not one.namespaced}
_READ = {one.kind: one for one in KINDS}
_AGE = re.compile(r"(\d+)([dhms])")
_UNITS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_IDENTITY = ("apiVersion", "kind", "metadata")


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that a rule may find.

    Attributes:
        text: the fault in words.
        objects: `KIND/NAME` of the failing objects and of the cause.
        visible: whether objects and Events show it; logs are not read.
    """

    text: str
    objects: Sequence[str]
    visible: bool


@dataclass(frozen=True, slots=True)
class Incident:
    """An incident and what is true of it.

    Attributes:
        name: that of its file.
        half: A or B; floors hold on B, so that work on A can be shown not to be a fit.
        kind: cause, no-fault or distractor (a harmless change is nearer to the onset than the cause).
        target: the object that the alert names.
        change: the object whose change is the cause; None: no visible change is.
        faults: what a rule may rightly find.
        rules: names of rules whose text describes one of the faults.
        distractors: `KIND/NAME` of objects whose change is harmless, where none of them has the name of the cause.
        objects: of the cluster, in the form of the API.
        read_at: the time now.
    """

    name: str
    half: str
    kind: str
    target: ObjectKey
    change: ObjectKey | None
    faults: Sequence[Fault]
    rules: frozenset[str]
    distractors: Sequence[str]
    objects: Sequence[Mapping[str, Any]]
    read_at: datetime = READ_AT

    @property
    def namespace(self) -> str:
        """Returns the namespace of the target."""
        return self.target.namespace

    def snapshot(self) -> Snapshot:
        """Returns the objects as the product reads them, every kind listed in full."""
        seen = [_as_read(one) for one in self.objects if _is_read(one, self.namespace)]
        listed = frozenset((one.kind, self.namespace if one.namespaced else "") for one in KINDS)
        return Snapshot(self.read_at, seen, listed)


def load_incidents() -> Sequence[Incident]:
    """Returns all incidents of the checkout by name."""
    return [load_incident(path) for path in sorted((FOLDER / "cases").glob("*.yaml"))]


def load_incident(path: Path, read_at: datetime = READ_AT) -> Incident:
    """Returns the incident of a file; later objects replace those of `noise` with the same key.

    Args:
        path: of the file.
        read_at: the time now; ages of the file are counted from it.
    """
    document, beside = _read(path, read_at), path.parents[1] / "noise"
    noise = [one for name in document.get("noise", ()) for one in _read(beside / f"{name}.yaml", read_at)]
    namespace, truth = document["namespace"], document["truth"]
    return Incident(
        document["name"],
        document["half"],
        document["kind"],
        key_of(document["target"], namespace),
        key_of(truth["change"], namespace) if truth["change"] else None,
        [Fault(one["text"], one["objects"], one["visible"]) for one in truth["faults"]],
        frozenset(truth["rules"]),
        truth.get("distractors", ()),
        list(_last_of_each([*noise, *document["before"]])),
        read_at,
    )


def key_of(text: str, namespace: str) -> ObjectKey:
    """Returns the key of `KIND/NAME`; cluster-scoped kinds have no namespace."""
    kind, _, name = text.partition("/")
    return ObjectKey(kind, "" if kind in _CLUSTER else namespace, name)


def time_ago(age: str, read_at: datetime = READ_AT) -> str:
    """Returns the time of an age such as `3d`, `1h20m` or `-2h` as the API writes it."""
    found: list[tuple[str, str]] = _AGE.findall(age)
    if "".join(number + unit for number, unit in found) != age.removeprefix("-") or not found:
        raise ValueError(f"{age!r} is no age; an age is like 3d, 1h20m or 45s")
    span = sum((timedelta(**{_UNITS[unit]: int(number)}) for number, unit in found), timedelta())
    return (read_at + span if age.startswith("-") else read_at - span).strftime("%Y-%m-%dT%H:%M:%SZ")


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _micro(time: str) -> str:
    return time.replace("Z", ".000000Z")


@functools.cache
def _yaml_at(read_at: datetime) -> Any:
    at: Any = type("_Yaml", (_Loader,), {})
    at.add_constructor("!ago", lambda loader, node: time_ago(loader.construct_scalar(node), read_at))
    at.add_constructor("!micro", lambda loader, node: _micro(time_ago(loader.construct_scalar(node), read_at)))
    return at


@functools.cache
def _read(path: Path, read_at: datetime) -> Any:
    return yaml.load(path.read_text(), _yaml_at(read_at))


def _last_of_each(objects: Iterable[Mapping[str, Any]]) -> Iterable[Mapping[str, Any]]:
    return {(one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"]): one for one in objects}.values()


def _is_read(obj: Mapping[str, Any], namespace: str) -> bool:
    return obj["kind"] in _READ and obj["metadata"].get("namespace", namespace) == namespace


def _as_read(obj: Mapping[str, Any]) -> Object:
    return {key: obj[key] for key in _IDENTITY} if _READ[obj["kind"]].metadata_only else obj
