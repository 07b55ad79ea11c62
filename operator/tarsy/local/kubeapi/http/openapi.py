"""OpenAPI of what is served, version 3 by group and version, and version 2 of everything.

kubectl reads it to validate, to diff, and to explain. Custom resources come with their schemas; built-in kinds only say
that they are objects.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tarsy.local.kubeapi.objects import Obj
from tarsy.local.kubeapi.registry import Registry
from tarsy.local.kubeapi.resource import Resource

_GVK = "x-kubernetes-group-version-kind"
_META_NAME = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_INFO = {"title": "Kubernetes", "version": "v1.36.0"}
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "pretty")
_DOCS = {"apiVersion": "APIVersion defines the versioned schema of this representation of an object.",
         "kind": "Kind is a string value representing the REST resource this object represents."}  # fmt: skip
# What the old form of OpenAPI cannot say.
_ONLY_V3 = ("nullable", "anyOf", "oneOf", "not", "x-kubernetes-validations")


def path_of(resource: Resource) -> str:
    """Such as apis/apps/v1."""
    return f"apis/{resource.api_version}" if resource.group else f"api/{resource.version}"


def index(registry: Registry) -> Obj:
    """/openapi/v3."""
    paths = {path_of(resource): None for resource in registry}
    urls = {path: {"serverRelativeURL": f"/openapi/v3/{path}?hash={registry.revision}"} for path in paths}
    return {"paths": urls}


def document_v3(resources: Iterable[Resource]) -> Obj:
    """/openapi/v3/apis/GROUP/VERSION."""
    schemas: Obj = {_META_NAME: _object_meta()}
    paths: Obj = {}
    for resource in resources:
        name = schema_name(resource)
        schemas[name] = _schema(resource, f"#/components/schemas/{_META_NAME}")
        reference = {"schema": {"$ref": f"#/components/schemas/{name}"}}
        content = dict.fromkeys(("application/json", "application/yaml"), reference)
        paths |= _paths(resource, {"description": "OK", "content": content}, v3=True)
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": schemas}}


def document_v2(registry: Registry) -> Obj:
    """/openapi/v2."""
    definitions: Obj = {_META_NAME: _object_meta()}
    paths: Obj = {}
    for resource in registry:
        name = schema_name(resource)
        definitions[name] = _plain(_schema(resource, f"#/definitions/{_META_NAME}"))
        answer = {"description": "OK", "schema": {"$ref": f"#/definitions/{name}"}}
        paths |= _paths(resource, answer, v3=False)
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": definitions}


def schema_name(resource: Resource) -> str:
    """Such as dev.tarsy.v1alpha1.Investigation."""
    group = ".".join(reversed(resource.group.split("."))) if resource.group else "io.k8s.api.core"
    return f"{group}.{resource.version}.{resource.kind}"


def _schema(resource: Resource, meta: str) -> Obj:
    document: Obj = dict(resource.schema.document) if resource.schema else {"type": "object"}
    if resource.schema is None:
        document["x-kubernetes-preserve-unknown-fields"] = True
    properties = {
        name: part for name, part in (document.get("properties") or {}).items() if name not in (*_DOCS, "metadata")
    }
    common: Obj = {name: {"type": "string", "description": text} for name, text in _DOCS.items()}
    common["metadata"] = {"description": "Standard object's metadata.", "allOf": [{"$ref": meta}]}
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    return {**document, "properties": {**common, **properties}, _GVK: [kind]}


def _object_meta() -> Obj:
    strings = ("name", "generateName", "namespace", "uid", "resourceVersion", "creationTimestamp", "deletionTimestamp")
    properties: Obj = {name: {"type": "string"} for name in strings}
    properties |= {name: {"type": "integer"} for name in ("generation", "deletionGracePeriodSeconds")}
    strings_map = {"type": "object", "additionalProperties": {"type": "string"}}
    properties |= {"labels": strings_map, "annotations": strings_map}
    properties["finalizers"] = {
        "type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set",
        "x-kubernetes-patch-strategy": "merge",
    }  # fmt: skip
    properties["ownerReferences"] = {
        "type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["uid"],
        "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "uid",
    }  # fmt: skip
    properties["managedFields"] = {"type": "array", "items": {"type": "object"}}
    return {"type": "object", "description": "Metadata that all persisted objects have.", "properties": properties}


def _paths(resource: Resource, answer: Obj, v3: bool) -> Obj:
    base = f"/{path_of(resource)}/" + ("namespaces/{namespace}/" if resource.namespaced else "") + resource.plural
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    text: Obj = {"schema": {"type": "string"}} if v3 else {"type": "string"}

    def operation(action: str) -> Obj:
        parameters = [{"name": name, "in": "query", **text} for name in _PARAMETERS]
        name = f"{action}{resource.version}{resource.kind}"
        return {"operationId": name, "x-kubernetes-action": action, _GVK: kind, "parameters": parameters,
                "responses": {"200": answer}}  # fmt: skip

    named = {
        "get": operation("get"),
        "put": operation("put"),
        "patch": operation("patch"),
        "delete": operation("delete"),
    }
    return {base: {"get": operation("list"), "post": operation("post")}, base + "/{name}": named}


def _plain(schema: Any) -> Any:
    if isinstance(schema, list):
        return [_plain(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {name: _plain(part) for name, part in schema.items() if name not in _ONLY_V3 or not _is_keyword(schema)}
    if kept.get("x-kubernetes-int-or-string"):
        kept.pop("type", None)
    return kept


def _is_keyword(schema: Obj) -> bool:
    return "type" in schema or "x-kubernetes-int-or-string" in schema
