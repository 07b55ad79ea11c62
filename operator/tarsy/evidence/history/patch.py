"""Compares two forms of an object: a JSON Patch (RFC 6902), and the paths that changed, in words.

Each step also has the value before it (`old`, which appliers ignore), so that one step can be read without the rest.
A list of named items is compared by name while its order is the same; any other change of it replaces the list.
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from tarsy.evidence.fields import Object
from tarsy.record.reading.object_history import PatchStep

MAX_STEPS = 100
"""Maximum steps of a patch; with more, the patch replaces the whole object."""

MAX_FIELDS = 40
"""Maximum paths; the rest is left out."""

_NAMED = ("name", "containerPort", "key", "type")


@dataclass(slots=True)
class Difference:
    """The difference of two forms: the steps that make the second of the first, and the paths that they change."""

    steps: list[PatchStep] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)


def difference(old: Object, new: Object) -> Difference:
    """Returns what differs between two forms."""
    found = Difference()
    _compare(old, new, "", "", found)
    if len(found.steps) > MAX_STEPS:
        found.steps = [{"op": "replace", "path": "", "old": old, "value": new}]
    found.fields = list(dict.fromkeys(found.fields))[:MAX_FIELDS]
    return found


def apply_patch(form: Object, patch: Sequence[PatchStep]) -> Any:
    """Returns the form after a patch that `difference` made of it.

    Raises:
        LookupError: the patch is of another form.
    """
    found: Any = deepcopy(form)
    for step in patch:
        keys = [_unescaped(part) for part in step["path"].split("/")[1:]]
        if not keys:
            found = deepcopy(step.get("value", {}))
            continue
        target = found
        for key in keys[:-1]:
            target = target[int(key)] if isinstance(target, list) else target[key]
        last: Any = int(keys[-1]) if isinstance(target, list) else keys[-1]
        if step["op"] == "remove":
            del target[last]
        else:
            target[last] = deepcopy(step["value"])
    return found


def _compare(old: Any, new: Any, pointer: str, path: str, found: Difference) -> None:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            at, named = f"{pointer}/{_escaped(key)}", _joined(path, key)
            if key not in new:
                _note(found, named, {"op": "remove", "path": at, "old": old[key]})
            elif key not in old:
                _note(found, named, {"op": "add", "path": at, "value": new[key]})
            else:
                _compare(old[key], new[key], at, named, found)
        return
    if isinstance(old, list) and isinstance(new, list):
        before, after = _names(old), _names(new)
        if before == after and len(old) == len(new):
            for index, (one, other) in enumerate(zip(old, new, strict=True)):
                name = after[index] if after else str(index)
                _compare(one, other, f"{pointer}/{index}", f"{path}[{name}]", found)
            return
        if before is not None and after is not None:
            _note_items(old, new, before, after, path, found)
            found.steps.append({"op": "replace", "path": pointer, "old": old, "value": new})
            return
    if old != new or isinstance(old, bool) != isinstance(new, bool):  # to Python, 1 is True
        _note(found, path, {"op": "replace", "path": pointer, "old": old, "value": new})


def _note(found: Difference, path: str, step: PatchStep) -> None:
    found.steps.append(step)
    found.fields.append(path)


def _note_items(
    old: list[Any], new: list[Any], before: list[str], after: list[str], path: str, found: Difference
) -> None:
    """Names the items of a list that came, went, changed, or only moved."""
    olds, news = dict(zip(before, old, strict=True)), dict(zip(after, new, strict=True))
    names = [name for name in {**olds, **news} if olds.get(name) != news.get(name)]
    found.fields += [f"{path}[{name}]" for name in names] or [path]


def _names(items: list[Any]) -> list[str] | None:
    """Returns the unique names of items; None where they have none."""
    for key in _NAMED:
        names = [str(item.get(key)) for item in items if isinstance(item, Mapping) and key in item]
        if names and len(names) == len(items) == len(set(names)):
            return names
    return [] if not items else None


def _joined(path: str, key: str) -> str:
    if "." in key or "/" in key:
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _unescaped(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")
