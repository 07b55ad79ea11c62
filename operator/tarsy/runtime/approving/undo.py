"""Finds the call that would undo a call, from the object as it is before it.

Decision: the image of the object is masked before anything is made of it, and a masked value cannot be used: an undo
that needs one is refused, because it would write the mask over the secret.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from tarsy.engine.conversation.masking import Mask
from tarsy.plan.approval_expressions import ARGUMENTS, BEFORE, MANIFEST, NotEvaluated, evaluate
from tarsy.plan.model import ApprovalPlan
from tarsy.record.approvals.approval import plain_json
from tarsy.resources.v1alpha1.tool_approval import MAX_ARGUMENTS, MAX_CLAIM
from tarsy.runtime.approving.declared import manifests_in
from tarsy.runtime.approving.preview import as_manifest, manifest_text

_LARGEST = 64 * 1024
"""Characters of an image that is kept, at most."""


class _Masked:
    """Stands for a masked value; nothing can be made of it."""

    def _refuse(self, *_: object) -> NoReturn:
        raise TypeError("it needs a masked value, which is not stored")

    __eq__ = __str__ = __repr__ = __bool__ = __iter__ = __len__ = _refuse
    __hash__ = None  # type: ignore[assignment]


def masked_image(obj: Mapping[str, Any] | None, mask: Mask) -> tuple[Any, Any]:
    """Returns an object without secrets: to be kept, and to make an undo of. None for one that cannot be kept.

    Args:
        obj: as the Kubernetes API returned it; None: it does not exist.
        mask: removes secrets.
    """
    if obj is None:
        return None, None
    text = manifest_text(obj)
    if len(text) > _LARGEST:
        return None, _Masked()
    try:
        ((was,), (now,)) = manifests_in(text), manifests_in(mask(text))
    except Exception:  # a mask raises what it likes
        return None, _Masked()
    return now, _usable(was, now)


def _usable(was: Any, now: Any) -> Any:
    """Returns a masked value with what was masked in it replaced."""
    if isinstance(was, Mapping) and isinstance(now, Mapping) and was.keys() == now.keys():
        return {key: _usable(value, now[key]) for key, value in was.items()}
    if isinstance(was, list) and isinstance(now, list) and len(was) == len(now):
        return [_usable(one, other) for one, other in zip(was, now, strict=True)]
    return was if type(was) is type(now) and was == now else _Masked()


def undo_of(
    rules: ApprovalPlan, tool: str, arguments: Mapping[str, Any], images: Sequence[Any]
) -> Mapping[str, str] | None:
    """Returns the call that would undo a call, or why there is none (`note`); None: none is declared.

    Args:
        rules: of the server.
        tool: name of the tool.
        arguments: of the call, as they would be sent.
        images: the objects that it changes, from `masked_image`.
    """
    rule = rules.undo_rule(tool)
    if rule is None:
        return None
    if len(images) != 1:
        return {"note": "It cannot be undone by one call: it changes several objects, or they are not known."}
    (image,) = images
    whole: Any = _Masked() if _holds_masked(image) else as_manifest(image)
    try:
        found = evaluate(rule.arguments, {ARGUMENTS: arguments, BEFORE: image, MANIFEST: whole})
        if not isinstance(found, dict):
            raise NotEvaluated("its arguments are not a map")
        text = plain_json(_without_masked(found))
    except (NotEvaluated, ValueError, TypeError) as error:
        return {"note": f"It cannot be undone by {rule.tool}: {error}."[:MAX_CLAIM]}
    if len(text) > MAX_ARGUMENTS:
        return {"note": f"It cannot be undone by {rule.tool}: its arguments take more than {MAX_ARGUMENTS} characters."}
    return {"tool": rule.tool, "arguments": text}


def _holds_masked(value: Any) -> bool:
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, _Masked):
            return True
        waiting += part.values() if isinstance(part, Mapping) else part if isinstance(part, list) else ()
    return False


def _without_masked(value: Any) -> Any:
    if _holds_masked(value):
        raise NotEvaluated("it needs a masked value, which is not stored")
    return value
