"""Prepares an object for the store: types, unknown fields, defaults, metadata, validation.

Unknown fields are refused, told or dropped as "Field validation" on kubernetes.io/docs/reference/using-api/api-concepts
says; an object that a patch made is judged as if it had been sent.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from embedded_kubeapi.admission.expressions import check_expressions
from embedded_kubeapi.builtin.strategies import strategy_of
from embedded_kubeapi.call import Call
from embedded_kubeapi.crds import CRDS, check_crd, complete_crd
from embedded_kubeapi.errors import ApiError, FieldError, bad_request, conflict, invalid, show
from embedded_kubeapi.metadata import check_change, check_metadata, check_name
from embedded_kubeapi.objects import Obj, copy, generated_name, new_uid, now
from embedded_kubeapi.resource import Resource
from embedded_kubeapi.schema.builtin import DecodeError

_SERVER_OWNED = ("uid", "creationTimestamp", "generation", "resourceVersion", "deletionTimestamp",
                 "deletionGracePeriodSeconds", "selfLink")  # fmt: skip
_STRINGS = ("name", "generateName", "namespace", "resourceVersion", "uid")
_MAPS = ("labels", "annotations")
_LISTS = ("finalizers", "ownerReferences", "managedFields")


def typed(resource: Resource, sent: Any, namespace: str | None, name: str | None) -> Obj:
    """Checks that the sent object has this kind and fits the URL; returns it with a private copy of its metadata.

    Raises:
        ApiError: 400, it is something else.
    """
    if not isinstance(sent, dict):
        raise bad_request("the object provided is unrecognized (must be of type " + resource.kind + ")")
    place = f'{resource.kind} in version "{resource.version}" cannot be handled as a '
    for field in ("kind", "apiVersion") if resource.custom else ():
        if not sent.get(field):
            shown = "Kind" if field == "kind" else field
            raise bad_request(f"{place}{resource.kind}: unmarshalerDecoder: Object '{shown}' is missing")
    version, kind = sent.get("apiVersion") or resource.api_version, sent.get("kind") or resource.kind
    if kind != resource.kind and resource.custom:
        error = FieldError("FieldValueInvalid", "kind", f"Invalid value: {show(kind)}: must be {resource.kind}")
        raise invalid(resource.group, str(kind), (sent.get("metadata") or {}).get("name", ""), [error])
    if kind != resource.kind:
        raise bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {resource.kind}')
    if version != resource.api_version:
        text = f"the API version in the data ({version}) does not match the expected API version "
        raise bad_request(f"{text}({resource.api_version})")
    meta = _checked_meta(resource, sent.get("metadata"))
    if resource.namespaced:
        if meta.get("namespace") and namespace is not None and meta["namespace"] != namespace:
            raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
        meta["namespace"] = namespace or meta.get("namespace") or "default"
    elif meta.get("namespace"):
        raise bad_request("the namespace of the provided object does not match the namespace sent on the request")
    else:
        meta.pop("namespace", None)
    if name is not None:
        if meta.get("name") and meta["name"] != name:
            shown = f"the name of the object ({meta['name']}) does not match the name on the URL ({name})"
            raise bad_request(shown)
        meta["name"] = name
    rest = {key: value for key, value in sent.items() if key not in ("apiVersion", "kind", "metadata")}
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, **rest}


def _checked_meta(resource: Resource, meta: Any) -> Obj:
    if meta is None:
        meta = {}
    if not isinstance(meta, dict):
        raise _unreadable(resource, "metadata", "v1.ObjectMeta")
    kept = {name: value for name, value in meta.items() if value is not None}
    for names, kind, shown in ((_STRINGS, str, "string"), (_MAPS, dict, "map[string]string"), (_LISTS, list, "slice")):
        for field in names:
            if field in kept and not isinstance(kept[field], kind):
                raise _unreadable(resource, f"metadata.{field}", shown)
    for field in _MAPS:
        for value in kept.get(field, {}).values():
            if not isinstance(value, str):
                raise _unreadable(resource, f"metadata.{field}", "string")
        if field in kept and not kept[field]:
            del kept[field]
    for field in ("finalizers", "ownerReferences"):
        if field in kept and not kept[field]:
            del kept[field]
    return kept


def _unreadable(resource: Resource, field: str, expected: str) -> ApiError:
    text = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: json: '
    return bad_request(f"{text}cannot unmarshal into Go struct field .{field} of type {expected}")


def clean(resource: Resource, obj: Obj, call: Call, *, patch: str | None = None) -> Obj:
    """Returns a copy with defaults and without unknown fields; `call.validation` decides whether those are errors.

    Args:
        patch: the text of the patched object, if it was a patch that brought them.

    Raises:
        ApiError: 400, a value is of a wrong type; 400 (422 for a patch), unknown fields and strict validation.
    """
    if resource.schema is None:
        return copied(obj)
    try:
        kept, unknown = resource.schema.clean(obj)
    except DecodeError as wrong_type:
        place = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}'
        raise bad_request(f"{place}: {wrong_type}") from None
    if unknown and call.validation == "Strict":
        shown = "strict decoding error: " + ", ".join(f'unknown field "{path}"' for path in sorted(unknown))
        if patch is not None:
            error = FieldError("FieldValueInvalid", "patch", f"Invalid value: {show(patch)}: {shown}")
            raise invalid("", "", "", [error])
        text = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {shown}'
        raise bad_request(text)
    if call.validation == "Warn":
        for path in sorted(unknown):
            call.warn(f'unknown field "{path}"')
    return kept


def copied(obj: Obj) -> Obj:
    found: Obj = copy(obj)
    return found


def begin_create(resource: Resource, obj: Obj) -> None:
    """Sets uid, creation time and name of a new object."""
    meta = obj["metadata"]
    if not meta.get("name") and (prefix := meta.get("generateName")):
        meta["name"] = generated_name(prefix)
    for field in _SERVER_OWNED:
        meta.pop(field, None)
    meta["uid"] = new_uid()
    meta["creationTimestamp"] = now()
    if resource.generations:
        meta["generation"] = 1
    if resource.has_status:
        obj.pop("status", None)


def begin_update(resource: Resource, obj: Obj, old: Obj, subresource: str) -> Obj:
    """Returns the object that replaces `old`; server-owned fields and the other part (spec or status) are kept.

    Raises:
        ApiError: 409, it was made from another object or from an older state.
    """
    meta, before = obj["metadata"], old["metadata"]
    group, plural, name = resource.group, resource.plural, before["name"]
    if meta.get("uid") and meta["uid"] != before["uid"]:
        why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {before['uid']}"
        raise conflict(group, plural, name, why)
    version = meta.get("resourceVersion")
    if version and version != "0" and version != before["resourceVersion"]:
        raise conflict(group, plural, name)
    if subresource == "status":
        obj = {**{key: value for key, value in old.items() if key != "status"}, "metadata": dict(before)} | (
            {"status": obj["status"]} if "status" in obj else {}
        )
        if "managedFields" in meta:
            obj["metadata"]["managedFields"] = meta["managedFields"]
        return obj
    for field in _SERVER_OWNED:
        meta.pop(field, None)
        if field in before:
            meta[field] = before[field]
    if resource.has_status:
        obj.pop("status", None)
        if "status" in old:
            obj["status"] = old["status"]
    return obj


def complete(resource: Resource, obj: Obj, old: Obj | None, crds: Iterable[Obj]) -> None:
    """Applies the completion rules of the kind to `obj`; `old` is the object that it replaces, or None."""
    strategy_of(resource.key).complete(obj, old)
    if resource.key == CRDS:
        complete_crd(obj, old, crds)


def check(resource: Resource, obj: Obj, old: Obj | None) -> None:
    """Raises ApiError with all errors in `obj`; `old` is the object that it replaces, or None.

    Raises:
        ApiError: 422 with all of it.
    """
    meta = obj["metadata"]
    errors: list[FieldError] = []
    if old is None:
        if not meta.get("name"):
            text = "Required value: name or generateName is required"
            errors.append(FieldError("FieldValueRequired", "metadata.name", text))
        else:
            errors.extend(check_name(resource.key, meta["name"]))
    else:
        errors.extend(check_change(meta, old["metadata"]))
    errors.extend(check_metadata(meta))
    if resource.schema is not None:
        errors.extend(resource.schema.check(obj, old, errors))
    if resource.key == CRDS:
        errors.extend(check_crd(obj, old))
    errors.extend(check_expressions(resource.key, obj))
    before = None if old is None else resource.stored_form(old)
    errors.extend(strategy_of(resource.key).check(resource.stored_form(obj), before))
    if errors:
        raise invalid(resource.group, resource.kind, meta.get("name") or meta.get("generateName") or "", errors)


def count_generation(resource: Resource, obj: Obj, old: Obj) -> None:
    """Increments the generation of `obj` if its spec differs from that of `old`."""
    ignored = {"metadata", "status"} if resource.has_status else {"metadata"}
    fields = (obj.keys() | old.keys()) - ignored - {"apiVersion", "kind"}
    if resource.generations and any(obj.get(field) != old.get(field) for field in fields):
        obj["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1


def same(obj: Obj, old: Obj) -> bool:
    """Reports whether a write changes only managed fields."""

    def bare(meta: Obj) -> Obj:
        return {key: value for key, value in meta.items() if key not in ("managedFields", "resourceVersion")}

    if bare(obj["metadata"]) != bare(old["metadata"]):
        return False
    return all(obj.get(key) == old.get(key) for key in obj.keys() | old.keys() if key != "metadata")
