"""Builds the OpenAPI documents of the served kinds: v3 per group and version, v2 for everything.

kubectl reads it to validate, to diff, and to explain. A custom resource comes with its schema; a built-in kind, and
each object inside it, is a definition that others refer to, so a type that contains itself (JSONSchemaProps) ends.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from embedded_kubeapi.objects import Obj
from embedded_kubeapi.registry import Registry
from embedded_kubeapi.resource import Resource
from embedded_kubeapi.schema.builtin import BuiltinSchema
from embedded_kubeapi.schema.models import META, Type, documentation, model
from embedded_kubeapi.shape import ModelShape

_GVK = "x-kubernetes-group-version-kind"
_INFO = {"title": "Kubernetes", "version": "v1.36.0"}
_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation", "pretty")
_DOCS = {"apiVersion": "APIVersion defines the versioned schema of this representation of an object.",
         "kind": "Kind is a string value representing the REST resource this object represents."}  # fmt: skip
# What the old form of OpenAPI cannot say.
_ONLY_V3 = ("nullable", "anyOf", "oneOf", "not", "x-kubernetes-validations")
_MODEL = re.compile(r"^([A-Z][a-z]+)?(V\d+(?:(?:alpha|beta)\d+)?)(?=[A-Z])")
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
_SCALARS: dict[str, Obj] = {
    "string": {"type": "string"}, "integer": {"type": "integer", "format": "int64"},
    "number": {"type": "number", "format": "double"}, "boolean": {"type": "boolean"},
    "time": {"type": "string", "format": "date-time"}, "bytes": {"type": "string", "format": "byte"},
    "any": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
}  # fmt: skip
_COMMON: Obj = {
    _QUANTITY: {"description": "An amount with a unit, such as 500m or 1Gi.",
                "oneOf": [{"type": "string"}, {"type": "number"}]},
    _INT_OR_STRING: {"format": "int-or-string", "description": "A number or a text, such as 25%.",
                     "oneOf": [{"type": "integer"}, {"type": "string"}]},
}  # fmt: skip
# Unions, of which kubectl takes away what is not set any more.
_RETAINING = {("V1PodSpec", "volumes"): "merge,retainKeys", ("V1DeploymentSpec", "strategy"): "retainKeys"}
_V3, _V2 = "#/components/schemas/", "#/definitions/"


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
    schemas = _definitions(resources, _V3)
    paths: Obj = {}
    for resource in resources:
        reference = {"schema": {"$ref": _V3 + schema_name(resource)}}
        content = dict.fromkeys(("application/json", "application/yaml"), reference)
        paths |= _paths(resource, {"description": "OK", "content": content}, v3=True)
    return {"openapi": "3.0.0", "info": _INFO, "paths": paths, "components": {"schemas": schemas}}


def document_v2(registry: Registry) -> Obj:
    """/openapi/v2."""
    resources = list(registry)
    paths: Obj = {}
    definitions = {name: _plain(part) for name, part in _definitions(resources, _V2).items()}
    for name in _COMMON:
        definitions[name] = _plain({**_COMMON[name], "type": "string"})  # the old form has no oneOf
    for resource in resources:
        answer = {"description": "OK", "schema": {"$ref": _V2 + schema_name(resource)}}
        paths |= _paths(resource, answer, v3=False)
    return {"swagger": "2.0", "info": _INFO, "paths": paths, "definitions": definitions}


def schema_name(resource: Resource) -> str:
    """Such as dev.tarsy.v1alpha1.Investigation."""
    if isinstance(resource.schema, BuiltinSchema):
        return _name(resource.schema.model)
    group = ".".join(reversed(resource.group.split("."))) if resource.group else "io.k8s.api.core"
    return f"{group}.{resource.version}.{resource.kind}"


def _definitions(resources: Iterable[Resource], prefix: str) -> Obj:
    found: Obj = {**_COMMON}
    waiting = [META]
    for resource in resources:
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        if isinstance(resource.schema, BuiltinSchema):
            name = resource.schema.model
            found[_name(name)] = {**_definition(name, prefix, waiting), _GVK: [kind]}
        else:
            document = resource.schema.document if resource.schema else dict(_SCALARS["any"])
            found[schema_name(resource)] = {**_custom(document, prefix), _GVK: [kind]}
    while waiting:
        name = waiting.pop()
        if _name(name) not in found:
            found[_name(name)] = _definition(name, prefix, waiting)
    return found


def _custom(document: Obj, prefix: str) -> Obj:
    properties = {
        name: part for name, part in (document.get("properties") or {}).items() if name not in (*_DOCS, "metadata")
    }
    common: Obj = {name: {"type": "string", "description": text} for name, text in _DOCS.items()}
    common["metadata"] = _refer(prefix, _name(META), "Standard object's metadata.")
    return {**document, "properties": {**common, **properties}}


def _definition(name: str, prefix: str, waiting: list[str]) -> Obj:
    """Returns the definition of a model, and adds the models that it refers to to `waiting`."""
    told, shape = documentation(name), ModelShape(Type("model", model=name))
    properties = {}
    for field, kind in model(name).fields.items():
        part = _property(kind, prefix, waiting, told.fields.get(field, ""))
        if kind.kind in ("list", "map"):
            part |= _merging(shape.field(field))
        if strategy := _RETAINING.get((name, field)):
            part["x-kubernetes-patch-strategy"] = strategy
        properties[field] = part
    found: Obj = {"type": "object", "description": told.about, "properties": properties}
    if told.required:
        found["required"] = sorted(told.required)
    return found | ({"x-kubernetes-map-type": "atomic"} if shape.atomic_map else {})


def _property(kind: Type, prefix: str, waiting: list[str], text: str) -> Obj:
    about: Obj = {"description": text} if text else {}
    match kind.kind:
        case "model":
            waiting.append(kind.model)
            return _refer(prefix, _name(kind.model), text)
        case "quantity":
            return _refer(prefix, _QUANTITY, text)
        case "int-or-string":
            return _refer(prefix, _INT_OR_STRING, text)
        case "list" | "map":
            inside = _property(kind.of or Type("any"), prefix, waiting, "")
            key = "items" if kind.kind == "list" else "additionalProperties"
            return {**about, "type": "array" if kind.kind == "list" else "object", key: inside}
        case _:
            return {**about, **_SCALARS[kind.kind]}


def _refer(prefix: str, name: str, text: str) -> Obj:
    reference = {"$ref": prefix + name}
    return {"description": text, "allOf": [reference]} if text else reference


def _merging(shape: Any) -> Obj:
    if shape.atomic_map:
        return {"x-kubernetes-map-type": "atomic"}
    match shape.list_type:
        case "map":
            return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(shape.keys),
                    "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": shape.keys[0]}  # fmt: skip
        case "set":
            return {"x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"}
        case _:
            return {}


def _name(name: str) -> str:
    match = _MODEL.match(name)
    if name == META or match is None:
        return f"io.k8s.apimachinery.pkg.apis.meta.v1.{name.removeprefix('V1')}"
    group = f"{match[1].lower()}." if match[1] else ""
    return f"io.k8s.api.{group}{match[2].lower()}.{name[match.end() :]}"


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
    if isinstance(kept.get("allOf"), list) and "$ref" in kept["allOf"][0]:
        kept |= kept.pop("allOf")[0]  # readers of the old form know no allOf
    return kept


def _is_keyword(schema: Obj) -> bool:
    return "type" in schema or "x-kubernetes-int-or-string" in schema
