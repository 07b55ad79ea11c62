"""Renders the revisions of a workload, and the difference of two of them, field by field."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tarsy.kubernetes_tools.classes import ClassedText, Part, classed_lines
from tarsy.kubernetes_tools.kinds import Refused

REVISION = "deployment.kubernetes.io/revision"
CAUSE = "kubernetes.io/change-cause"
MOST_REVISIONS, MOST_DIFFERENCES, LONGEST_VALUE = 20, 80, 300
_RECORDED = re.compile(
    r"spec\.(?!.*(?:\.env\[|\.command|\.args|[lL]abels|[sS]elector|annotations))[\w.\[\]-]+: "
    r"(?:added |removed )?[\w.,:/@%\"-]{1,200}(?: -> [\w.,:/@%\"-]{1,200})?"
)
"""A field whose values are figures, words, or an image: that it changed is what the line says."""

_NOT_OF_THE_AUTHOR = ("pod-template-hash", "controller-revision-hash")


@dataclass(frozen=True, slots=True)
class Revision:
    """One version of a pod template. `ready` is the state of its pods, if known."""

    number: int
    name: str
    created: str
    template: Mapping[str, Any] = field(default_factory=dict)
    cause: str | None = None
    ready: str | None = None

    def line(self) -> Iterator[Part]:
        """Yields the row of this revision."""
        images = ",".join(str(c.get("image")) for c in (self.template.get("spec") or {}).get("containers") or ())
        yield f"revision={self.number} {self.name} created={self.created}", True
        yield f" images={images}", False
        yield f" {self.ready}" if self.ready else "", True
        yield f" change-cause={self.cause!r}" if self.cause else "", False


def revisions(items: Iterable[Mapping[str, Any]], owner_uid: str) -> tuple[Revision, ...]:
    """Returns the revisions among ReplicaSets or ControllerRevisions that an owner controls, the newest first."""
    found = []
    for item in items:
        meta = item.get("metadata") or {}
        if any(owner.get("uid") == owner_uid for owner in meta.get("ownerReferences") or ()):
            found.append(_revision(item, meta))
    return tuple(sorted(found, key=lambda revision: (-revision.number, revision.name)))


def render_history(workload: str, found: tuple[Revision, ...], first: int | None, second: int | None) -> ClassedText:
    """Renders the list of revisions and the difference of two.

    Args:
        workload: kind and name, such as `Deployment/checkout`.
        found: its revisions, the newest first.
        first: number of the older one; None: the one before the other.
        second: number of the newer one; None: the newest.

    Raises:
        Refused: a named revision does not exist.
    """
    if not found:
        return classed_lines([[(f"{workload} has no recorded revisions", True)]])
    lines: list[Iterable[Part]] = [[(f"{workload}: {len(found)} recorded revisions, the newest first", True)]]
    lines += [revision.line() for revision in found[:MOST_REVISIONS]]
    if len(found) > MOST_REVISIONS:
        lines.append([(f"[{len(found) - MOST_REVISIONS} older revisions are left out]", True)])
    new = _pick(found, second) if second is not None else found[0]
    older = [revision for revision in found if revision.number < new.number]
    old = _pick(found, first) if first is not None else (older[0] if older else None)
    if old is None:
        return classed_lines([*lines, [("there is no older revision to compare with", True)]])
    return classed_lines([*lines, [], *([part] for part in _difference(old, new))])


def differences(old: object, new: object) -> tuple[str, ...]:
    """Returns one line per field that differs: `path: old -> new`, `path: added new`, `path: removed old`."""
    before, after = dict(_flat(old)), dict(_flat(new))
    lines = []
    for path in dict.fromkeys((*before, *after)):
        if path not in before:
            lines.append(f"{path}: added {_short(after[path])}")
        elif path not in after:
            lines.append(f"{path}: removed {_short(before[path])}")
        elif before[path] != after[path]:
            lines.append(f"{path}: {_short(before[path])} -> {_short(after[path])}")
    return tuple(lines)


def _difference(old: Revision, new: Revision) -> Iterator[Part]:
    lines = differences(_authored(old.template), _authored(new.template))
    head = f"difference of the pod template from revision {old.number} to {new.number}:"
    if not lines:
        yield f"{head} none", True
        return
    yield head, True
    for line in lines[:MOST_DIFFERENCES]:
        yield line, _RECORDED.fullmatch(line) is not None
    if len(lines) > MOST_DIFFERENCES:
        yield f"[{len(lines) - MOST_DIFFERENCES} more fields differ]", True


def _pick(found: Iterable[Revision], number: int) -> Revision:
    known = {revision.number: revision for revision in found}
    if number not in known:
        raise Refused(f"there is no revision {number}; recorded are {', '.join(map(str, sorted(known)))}")
    return known[number]


def _revision(item: Mapping[str, Any], meta: Mapping[str, Any]) -> Revision:
    notes = meta.get("annotations") or {}
    name, created = str(meta.get("name")), str(meta.get("creationTimestamp"))
    if "data" in item:  # a ControllerRevision
        template = (((item.get("data") or {}).get("spec")) or {}).get("template") or {}
        return Revision(_number(item.get("revision")), name, created, template, notes.get(CAUSE))
    spec, status = item.get("spec") or {}, item.get("status") or {}
    ready = f"pods={status.get('readyReplicas', 0)}/{spec.get('replicas', 0)} ready"
    return Revision(_number(notes.get(REVISION)), name, created, spec.get("template") or {}, notes.get(CAUSE), ready)


def _number(value: object) -> int:
    try:
        return int(str(value))
    except ValueError:
        return 0


def _authored(template: Mapping[str, Any]) -> dict[str, Any]:
    """The template without the labels that controllers add to each revision."""
    meta = dict(template.get("metadata") or {})
    meta.pop("creationTimestamp", None)
    meta["labels"] = {k: v for k, v in (meta.get("labels") or {}).items() if k not in _NOT_OF_THE_AUTHOR}
    return {**{key: value for key, value in template.items() if key != "$patch"}, "metadata": meta}


def _flat(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Yields the leaves of a JSON value. Items of a list that have a name go by it, so that order is no difference."""
    if isinstance(value, Mapping) and value:
        for key, part in value.items():
            yield from _flat(part, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list) and value:
        names = [part.get("name") if isinstance(part, Mapping) else None for part in value]
        by_name = all(isinstance(name, str) for name in names) and len(set(names)) == len(names)
        for index, part in enumerate(value):
            yield from _flat(part, f"{path}[{names[index] if by_name else index}]")
    elif value not in ({}, []):
        yield path, value


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}... ({len(text)} characters)"
