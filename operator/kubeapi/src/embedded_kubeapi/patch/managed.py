"""Tracks in `metadata.managedFields` which manager wrote each field.

A plain write takes what it changes from everybody else; what it removes belongs to nobody. Apply is in `apply.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from embedded_kubeapi.objects import Obj, now
from embedded_kubeapi.patch.fields import Path, changed, fields_of, from_fields_v1, to_fields_v1
from embedded_kubeapi.shape import Shape


@dataclass(frozen=True)
class Writer:
    """One entry's identity: who, how, through which version and subresource."""

    manager: str
    operation: str
    api_version: str
    subresource: str = ""


@dataclass
class Share:
    """Holds the fields of one writer, with the time of its last write."""

    paths: set[Path]
    time: str


Managers = dict[Writer, Share]


def read_managers(obj: Obj | None) -> Managers:
    """The entries of an object; unreadable ones are dropped."""
    found: Managers = {}
    for entry in (obj or {}).get("metadata", {}).get("managedFields") or ():
        if not isinstance(entry, dict) or not entry.get("operation"):
            continue
        writer = Writer(
            entry.get("manager", ""), entry["operation"], entry.get("apiVersion", ""), entry.get("subresource", "")
        )
        found[writer] = Share(from_fields_v1(entry.get("fieldsV1")), entry.get("time", ""))
    return found


def write_managers(managers: Managers) -> list[dict[str, Any]]:
    """The entries as the object shows them: applied ones first, then by time."""
    entries = []
    ordered = sorted(managers.items(), key=lambda kv: (kv[0].operation != "Apply", kv[1].time, kv[0].manager))
    for writer, share in ordered:
        if share.paths:
            entry = {
                "manager": writer.manager,
                "operation": writer.operation,
                "apiVersion": writer.api_version,
                "time": share.time,
                "fieldsType": "FieldsV1",
                "fieldsV1": to_fields_v1(share.paths),
            }
            entries.append(entry | ({"subresource": writer.subresource} if writer.subresource else {}))
    return entries


def base_managers(live: Obj | None, sent: Obj) -> Managers:
    """Returns the entries that a write starts from: those that it sends, which may rename or reset them, else the
    stored ones."""
    given = sent.get("metadata", {}).get("managedFields")
    return read_managers(live) if given is None else read_managers(sent)


def after_update(live: Obj | None, new: Obj, writer: Writer, shape: Shape, base: Managers) -> Managers:
    """The entries after a create, update or patch by `writer`."""
    before = fields_of(live, shape, containers=True) if live is not None else {}
    present = fields_of(new, shape, containers=True)
    taken = changed(before, present)
    removed = before.keys() - present.keys()
    after: Managers = {}
    for other, share in base.items():
        left = share.paths - removed
        if other != writer:
            left -= taken
        after[other] = Share(left, share.time)
    if taken:
        mine = after.get(writer)
        after[writer] = Share((mine.paths if mine else set()) | taken, now())
    return after
