"""Implements create, update, patch, apply and delete for every kind.

A write is prepared from the live object, judged (which may wait, for webhooks), and committed only if the live object
is still the one it was prepared from: otherwise a patch starts again, and an update is a conflict.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from embedded_kubeapi.admission.chain import Chain, Review
from embedded_kubeapi.call import Call
from embedded_kubeapi.crds import CRDS
from embedded_kubeapi.errors import (
    ApiError,
    FieldError,
    already_exists,
    bad_request,
    conflict,
    forbidden,
    invalid,
    not_found,
    required,
)  # fmt: skip
from embedded_kubeapi.lifecycle import NAMESPACES, Lifecycle
from embedded_kubeapi.objects import Obj
from embedded_kubeapi.patch.apply import apply
from embedded_kubeapi.patch.jsonpatch import PatchError, json_patch
from embedded_kubeapi.patch.managed import (
    Managers,
    Writer,
    after_update,
    base_managers,
    read_managers,
    write_managers,
)  # fmt: skip
from embedded_kubeapi.patch.merge import merge_patch
from embedded_kubeapi.patch.strategic import strategic_merge
from embedded_kubeapi.prepare import (
    begin_create,
    begin_update,
    check,
    clean,
    complete,
    copied,
    count_generation,
    same,
    typed,
)  # fmt: skip
from embedded_kubeapi.registry import Registry
from embedded_kubeapi.resource import Resource
from embedded_kubeapi.schema.builtin import DecodeError
from embedded_kubeapi.store import Store

PatchKind = Literal["json", "merge", "strategic", "apply"]
_TRIES = 10
_PROTECTED = ("default", "kube-system", "kube-public")


@dataclass(frozen=True)
class Candidate:
    """The new state of an object; `managers` if the write determines the managed fields."""

    obj: Obj
    managers: Managers | None = None
    patch: str | None = None


class Writes:
    """Implements all writes of objects."""

    def __init__(self, store: Store, registry: Registry, lifecycle: Lifecycle, admission: Chain) -> None:
        self._store = store
        self._registry = registry
        self._lifecycle = lifecycle
        self._admission = admission

    def get(self, resource: Resource, namespace: str | None, name: str) -> Obj:
        """Returns the stored object, which must not be changed; `namespace` is None for cluster-scoped kinds.

        Raises:
            ApiError: 404.
        """
        obj = self._store.get(resource.key, namespace if resource.namespaced else None, name)
        if obj is None:
            raise not_found(resource.group, resource.plural, name)
        return resource.shown(obj)

    async def create(self, resource: Resource, namespace: str | None, sent: Any, call: Call) -> Obj:
        """Creates the object `sent`; `call` has the options of the request.

        Raises:
            ApiError: 400, 403, 404 (its namespace), 409 or 422.
        """
        obj = typed(resource, sent, namespace, None)
        if obj["metadata"].get("resourceVersion"):
            raise ApiError(500, "", "resourceVersion should not be set on objects to be created")
        return await self._create(resource, Candidate(obj), call)

    async def _create(self, resource: Resource, candidate: Candidate, call: Call) -> Obj:
        obj = clean(resource, candidate.obj, call, patch=candidate.patch)
        begin_create(resource, obj)
        namespace = obj["metadata"].get("namespace") or ""
        self._check_namespace(resource, namespace, obj["metadata"].get("name", ""))
        review = Review(call, "CREATE", resource, namespace, obj["metadata"].get("name", ""), obj, None)
        mutated = await self._admission.mutate(review)
        if mutated is not None and mutated is not obj:
            obj = clean(resource, mutated, call)
        complete(resource, obj, None, self._store.objects(CRDS))
        check(resource, obj, None)
        await self._admission.validate(_judged(review, obj))
        name = obj["metadata"]["name"]
        if self._store.get(resource.key, namespace, name) is not None:
            raise already_exists(resource.group, resource.plural, name)
        self._check_namespace(resource, namespace, name)
        managers = candidate.managers
        if managers is None:
            writer = Writer(call.manager, "Update", resource.api_version)
            managers = after_update(None, obj, writer, resource.shape, base_managers(None, obj))
        obj["metadata"]["managedFields"] = write_managers(managers)
        if call.dry_run:
            return obj
        self._store.put(resource.key, resource.stored_form(obj))
        self._lifecycle.created(resource.key, obj)
        return obj

    async def update(
        self, resource: Resource, namespace: str | None, name: str, sent: Any, call: Call, subresource: str = ""
    ) -> Obj:
        """Replaces the object by `sent`; `subresource` is "", "status" or "scale".

        Raises:
            ApiError: 400, 403, 404, 409 or 422.
        """
        obj = typed(resource, sent, namespace, name)
        if resource.custom and not obj["metadata"].get("resourceVersion"):
            self.get(resource, namespace, name)
            text = "Invalid value: 0: must be specified for an update"
            error = FieldError("FieldValueInvalid", "metadata.resourceVersion", text)
            raise invalid(resource.group, resource.plural, name, [error])
        return await self._replace(resource, namespace, name, lambda _: Candidate(copied(obj)), call, subresource)

    async def patch(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        kind: PatchKind,
        body: Any,
        call: Call,
        subresource: str = "",
    ) -> tuple[Obj, bool]:
        """Patches the object with `body`; `kind` is the patch type. Returns the object, and whether apply created it.

        Raises:
            ApiError: 400, 403, 404, 409 or 422.
        """
        if kind == "apply":
            return await self._apply(resource, namespace, name, body, call, subresource)

        def changed(live: Obj) -> Candidate:
            try:
                patched = _patched(resource, live, kind, body)
            except PatchError as error:
                text = f"the server rejected our request due to an error in our request: {error}"
                raise ApiError(422, "Invalid", text, {}) from None
            return Candidate(typed(resource, patched, namespace, name), patch=json.dumps(patched))

        return await self._replace(resource, namespace, name, changed, call, subresource), False

    async def _apply(
        self, resource: Resource, namespace: str | None, name: str, body: Any, call: Call, subresource: str
    ) -> tuple[Obj, bool]:
        if not call.manager:
            error = required("fieldManager", "is required for apply patch")
            raise invalid("meta.k8s.io", "PatchOptions", "", [error])
        if isinstance(body, dict) and not (body.get("apiVersion") and body.get("kind")):
            group, _, version = str(body.get("apiVersion", "")).rpartition("/")
            raise bad_request(f"invalid object type: {group}/{version}, Kind={body.get('kind', '')}")
        if isinstance(body, dict) and body["apiVersion"] != resource.api_version:
            said = f"Specified patch version: {body.get('apiVersion', '')}, expected: {resource.api_version}"
            raise bad_request(f"Incorrect version specified in apply patch. {said}")
        declared = typed(resource, body, namespace, name)
        if "managedFields" in declared["metadata"]:
            raise bad_request("metadata.managedFields must be nil")
        self._check_declared(resource, declared)
        if subresource == "status":
            declared = {
                key: value for key, value in declared.items() if key in ("apiVersion", "kind", "metadata", "status")
            }
        elif resource.has_status:
            declared.pop("status", None)
        writer = Writer(call.manager, "Apply", resource.api_version, subresource)

        def applied(live: Obj | None) -> Candidate:
            return Candidate(*apply(live, declared, writer, resource.shape, call.force))

        live = self._store.get(resource.key, namespace if resource.namespaced else None, name)
        if live is not None or subresource:
            return await self._replace(resource, namespace, name, applied, call, subresource), False
        if declared["metadata"].get("uid") or declared["metadata"].get("resourceVersion"):
            raise conflict(resource.group, resource.plural, name)
        return await self._create(resource, applied(None), call), True

    def _check_declared(self, resource: Resource, declared: Obj) -> None:
        if resource.schema is None:
            return
        try:
            _, unknown = resource.schema.clean(declared)
        except DecodeError:
            return  # said in the words of a plain write, when the merged object is read
        if unknown:
            meta = declared["metadata"]
            place = f"{meta.get('namespace', '')}/{meta['name']}; {resource.api_version}, Kind={resource.kind}"
            fields = "; ".join(f".{path}: field not declared in schema" for path in sorted(unknown))
            raise ApiError(500, "", f"failed to create typed patch object ({place}): {fields}")

    async def _replace(
        self,
        resource: Resource,
        namespace: str | None,
        name: str,
        make: Callable[[Obj], Candidate],
        call: Call,
        subresource: str,
    ) -> Obj:
        for _ in range(_TRIES):
            live = self.get(resource, namespace, name)
            made = await self._try_replace(resource, live, make(live), call, subresource)
            if made is not None:
                return made
        raise conflict(resource.group, resource.plural, name)

    async def _try_replace(
        self, resource: Resource, live: Obj, candidate: Candidate, call: Call, subresource: str
    ) -> Obj | None:
        """Commits the object; returns None if another write came in between."""
        key, meta = resource.key, live["metadata"]
        sent = candidate.obj
        obj = begin_update(resource, {**sent, "metadata": dict(sent["metadata"])}, live, subresource)
        obj = clean(resource, obj, call, patch=candidate.patch)
        namespace, name = meta.get("namespace") or "", meta["name"]
        review = Review(call, "UPDATE", resource, namespace, name, obj, live, subresource)
        mutated = await self._admission.mutate(review)
        if mutated is not None and mutated is not obj:
            mutated = begin_update(resource, {**mutated, "metadata": dict(mutated["metadata"])}, live, subresource)
            obj = clean(resource, mutated, call)
        complete(resource, obj, live, self._store.objects(CRDS))
        check(resource, obj, live)
        await self._admission.validate(_judged(review, obj))
        current = self._store.get(key, namespace, name)
        if current is None or current["metadata"]["resourceVersion"] != meta["resourceVersion"]:
            if sent["metadata"].get("resourceVersion"):
                raise conflict(resource.group, resource.plural, name)
            return None
        managers = candidate.managers
        if managers is None:
            writer = Writer(call.manager, "Update", resource.api_version, subresource)
            managers = after_update(live, obj, writer, resource.shape, base_managers(live, obj))
        if same(obj, live) and _shares(managers) == _shares(read_managers(live)):
            return live
        count_generation(resource, obj, live)
        obj["metadata"]["managedFields"] = write_managers(managers)
        if call.dry_run:
            return obj
        self._store.put(key, resource.stored_form(obj))
        self._lifecycle.updated(key, obj)
        return obj

    async def delete(
        self, resource: Resource, namespace: str | None, name: str, options: Mapping[str, Any], call: Call
    ) -> Obj:
        """Deletes an object by `options` (DeleteOptions); returns its last state, or the one that finalizers hold.

        Raises:
            ApiError: 403, 404 or 409.
        """
        live = self.get(resource, namespace, name)
        for field, wanted in (options.get("preconditions") or {}).items():
            found = live["metadata"].get(field)
            if wanted and wanted != found:
                shown = {"uid": "UID", "resourceVersion": "ResourceVersion"}.get(field, field)
                why = f"the {shown} in the precondition ({wanted}) does not match the {shown} in record ({found}). "
                why += "The object might have been deleted and then recreated" if field == "uid" else "The object might"
                why += "" if field == "uid" else " have been modified"
                raise conflict(resource.group, resource.kind, name, why)
        if resource.key == NAMESPACES and name in _PROTECTED:
            raise forbidden("", "namespaces", name, "this namespace may not be deleted")
        review = Review(call, "DELETE", resource, live["metadata"].get("namespace") or "", name, None, live)
        await self._admission.validate(review)
        if call.dry_run or options.get("dryRun") == ["All"]:
            return live
        current = self._store.get(resource.key, live["metadata"].get("namespace"), name)
        if current is None:
            raise not_found(resource.group, resource.plural, name)
        policy = options.get("propagationPolicy") or ("Orphan" if options.get("orphanDependents") else "Background")
        return resource.shown(self._lifecycle.delete(resource.key, current, policy))

    def _check_namespace(self, resource: Resource, namespace: str, name: str) -> None:
        if not resource.namespaced:
            return
        found = self._store.get(NAMESPACES, None, namespace)
        if found is None:
            raise not_found("", "namespaces", namespace)
        if found["metadata"].get("deletionTimestamp"):
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            error = forbidden(resource.group, resource.plural, name, why)
            cause = {"reason": "NamespaceTerminating", "field": "metadata.namespace",
                     "message": f"namespace {namespace} is being terminated"}  # fmt: skip
            raise ApiError(403, "Forbidden", error.message, {**(error.details or {}), "causes": [cause]})


def _judged(review: Review, obj: Obj) -> Review:
    return Review(
        review.call, review.operation, review.resource, review.namespace, obj["metadata"]["name"], obj, review.old,
        review.subresource,
    )  # fmt: skip


def _patched(resource: Resource, live: Obj, kind: PatchKind, body: Any) -> Any:
    if kind == "json":
        if not isinstance(body, list):
            detail = "json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp"
            raise bad_request(f"error decoding patch: {detail}")
        return json_patch(live, body)
    if not isinstance(body, dict):
        raise PatchError("the patch must be an object")
    if kind == "merge":
        return merge_patch(live, body)
    return strategic_merge(live, body, resource.shape)


def _shares(managers: Managers) -> dict[Writer, frozenset[tuple[str, ...]]]:
    return {writer: frozenset(share.paths) for writer, share in managers.items() if share.paths}
