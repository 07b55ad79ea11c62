"""Converts Events between their two forms, core and events.k8s.io; they are stored in the core form.

The fields that only the old form has are the `deprecated…` ones of the new form (k8s.io/kubernetes, pkg/apis/events).
"""

from __future__ import annotations

from embedded_kubeapi.objects import Obj
from embedded_kubeapi.resource import Conversion

_NEW_NAMES = {
    "involvedObject": "regarding", "message": "note", "reportingComponent": "reportingController",
    "source": "deprecatedSource", "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp", "count": "deprecatedCount",
}  # fmt: skip
_CORE_NAMES = {new: core for core, new in _NEW_NAMES.items()}


def selectable(fields: tuple[str, ...]) -> tuple[str, ...]:
    """Translates field selectors of the new form to the core form."""
    return tuple(".".join((_NEW_NAMES.get(first, first), *rest)) for first, *rest in (f.split(".") for f in fields))


def _shown(core: Obj) -> Obj:
    return {_NEW_NAMES.get(name, name): value for name, value in core.items()} | {"apiVersion": "events.k8s.io/v1"}


def _stored(event: Obj) -> Obj:
    return {_CORE_NAMES.get(name, name): value for name, value in event.items()} | {"apiVersion": "v1"}


EVENTS_V1 = Conversion("", _shown, _stored)
