"""Shows what a call would change: objects and their change as text, without secrets and of limited size.

Decision: objects are masked as whole texts before they are compared, so that a secret is found by what stands around
it. Where only masked values differ, the comparison says so.
"""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from tarsy.engine.conversation.masking import Mask
from tarsy.masking import without_secrets_or_withheld
from tarsy.record.approvals.approval import plain_json
from tarsy.resources.v1alpha1.tool_approval import MAX_DIFF
from tarsy.runtime.approving.declared import DeclaredTarget, manifests_in

_WITHHELD = "[withheld: it could not be searched for secrets]"
_CUT = "\n[cut: the rest is too long to be shown here]"
_NOT_SHOWN = frozenset({"managedFields", "uid", "resourceVersion", "generation", "creationTimestamp", "selfLink"})
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def shown_objects(targets: Sequence[DeclaredTarget], objects: Sequence[Mapping[str, Any] | None], mask: Mask) -> str:
    """Returns the change of objects as a diff, or the objects where the change is not declared.

    Args:
        targets: of the call.
        objects: as they are, in the same order.
        mask: removes secrets.
    """
    parts = []
    for target, before in zip(targets, objects, strict=True):
        after = _after(target, before)
        parts.append(_whole(target, before, mask) if after is None else _diff(target, before, after, mask))
    return limited("\n".join(parts))


def shown_answer(
    text: str, targets: Sequence[DeclaredTarget], objects: Sequence[Mapping[str, Any] | None], mask: Mask
) -> str:
    """Returns the answer of a dry run: as a diff if it is the object as it would be, else as text.

    Args:
        text: answer of the tool.
        targets: of the call; empty: not known.
        objects: as they are, in the same order.
        mask: removes secrets.
    """
    if len(targets) == 1:
        try:
            documents = manifests_in(text)
        except ValueError:
            documents = []
        (target,), (before,) = targets, objects
        if len(documents) == 1 and isinstance(documents[0], Mapping) and _is(documents[0], target):
            return limited(_diff(target, before, documents[0], mask))
    return limited(_masked(text, mask))


def limited(text: str) -> str:
    """Cuts a text to the size of a preview."""
    return text if len(text) <= MAX_DIFF else text[: MAX_DIFF - len(_CUT)] + _CUT


def merged(value: Any, patch: Any) -> Any:
    """Applies a JSON merge patch (RFC 7396)."""
    if not isinstance(patch, Mapping):
        return patch
    found = dict(value) if isinstance(value, Mapping) else {}
    for key, change in patch.items():
        if change is None:
            found.pop(key, None)
        else:
            found[key] = merged(found.get(key), change)
    return found


def applied(value: Any, manifest: Any) -> Any:
    """Returns an object with the fields of a manifest; items of lists with names are merged by name."""
    if isinstance(value, Mapping) and isinstance(manifest, Mapping):
        return {**value, **{key: applied(value.get(key), item) for key, item in manifest.items()}}
    if isinstance(value, list) and isinstance(manifest, list) and _named(value) and _named(manifest):
        new = {item["name"]: item for item in manifest}
        kept = [applied(item, new.pop(item["name"])) if item["name"] in new else item for item in value]
        return [*kept, *new.values()]
    return manifest


def _named(items: Sequence[Any]) -> bool:
    names = [item.get("name") if isinstance(item, Mapping) else None for item in items]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _after(target: DeclaredTarget, before: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    if target.manifest is not None:
        found = applied(before or {}, target.manifest)
    elif target.change is not None and before is not None:
        found = merged(before, target.change)
    else:
        return None
    return found if isinstance(found, Mapping) else None


def _is(document: Mapping[str, Any], target: DeclaredTarget) -> bool:
    meta = document.get("metadata")
    return (
        isinstance(meta, Mapping) and document.get("kind") == target.name.kind and meta.get("name") == target.name.name
    )


def _whole(target: DeclaredTarget, before: Mapping[str, Any] | None, mask: Mask) -> str:
    if before is None:
        return f"# {target.name} does not exist"
    return f"# {target.name} as it is\n{_text(before, mask)}"


def _diff(target: DeclaredTarget, before: Mapping[str, Any] | None, after: Mapping[str, Any], mask: Mask) -> str:
    old, new = ("" if before is None else _text(before, mask)), _text(after, mask)
    name = str(target.name)
    lines = difflib.unified_diff(
        old.splitlines(), new.splitlines(), f"{name} (now)", f"{name} (after the call)", lineterm="", n=3
    )
    text = "\n".join(lines)
    if text:
        return text
    same = before is not None and _plain(before) == _plain(after)
    return f"# {name}: {'nothing changes' if same else 'only values that are masked change'}"


class _Plain(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True


def manifest_text(obj: Mapping[str, Any]) -> str:
    """Returns an object in YAML, without its status and what the API server alone writes."""
    return yaml.dump(_plain(obj), Dumper=_Plain, sort_keys=True, allow_unicode=True, width=1000)


def as_manifest(obj: Any) -> str | None:
    """Returns an object as a manifest in JSON; None for one that does not exist."""
    return None if obj is None else plain_json(obj)


def _text(obj: Mapping[str, Any], mask: Mask) -> str:
    return _masked(manifest_text(obj), mask)


def _masked(text: str, mask: Mask) -> str:
    return without_secrets_or_withheld(mask, text, "a preview", _WITHHELD).text


def _plain(obj: Mapping[str, Any]) -> dict[str, Any]:
    """Returns an object without its status and what the API server alone writes."""
    found = {key: value for key, value in obj.items() if key != "status"}
    meta = found.get("metadata")
    if isinstance(meta, Mapping):
        kept = {key: value for key, value in meta.items() if key not in _NOT_SHOWN}
        notes = kept.get("annotations")
        if isinstance(notes, Mapping):
            kept["annotations"] = {key: value for key, value in notes.items() if key != _LAST_APPLIED}
        found["metadata"] = kept
    return found
