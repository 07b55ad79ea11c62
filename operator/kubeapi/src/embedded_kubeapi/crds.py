"""Completes and validates CustomResourceDefinitions, and serves the kinds that they define.

The conditions `NamesAccepted` and `Established` are written with the object itself: there is no controller to wait for,
and `kubectl wait --for=condition=Established` finds them at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from embedded_kubeapi.cel.patterns import BadPattern, Pattern
from embedded_kubeapi.errors import FieldError, not_supported, required, wrong
from embedded_kubeapi.jsonpath import BadPath, parse
from embedded_kubeapi.objects import DNS_SUBDOMAIN, Key, Obj, now
from embedded_kubeapi.registry import Registry
from embedded_kubeapi.resource import Column, Resource
from embedded_kubeapi.schema.model import Schema
from embedded_kubeapi.schema.references import undefined_fields
from embedded_kubeapi.schema.rules import RuleError
from embedded_kubeapi.store import Event, Store

CRDS: Key = ("apiextensions.k8s.io", "customresourcedefinitions")
CLEANUP_FINALIZER = "customresourcecleanup.apiextensions.k8s.io"
_TYPES = ("object", "array", "string", "integer", "number", "boolean")
_ROOT = "spec.versions[{at}].schema.openAPIV3Schema"


def stored_at(crd: Obj) -> Key:
    """Returns the storage key of a CRD's custom resources."""
    return crd["spec"]["group"], crd["spec"]["names"]["plural"]


def complete_crd(crd: Obj, old: Obj | None, others: Iterable[Obj]) -> None:
    """Sets the fields of a CRD that the API sets: names, conversion, status with conditions.

    Args:
        crd: the CRD to complete, changed in place.
        old: the stored CRD that it replaces, or None.
        others: the other stored CRDs, whose names may conflict.
    """
    spec = crd.get("spec")
    if not isinstance(spec, dict) or not isinstance(spec.get("names"), dict):
        return
    names = spec["names"]
    if kind := names.get("kind"):
        names.setdefault("singular", str(kind).lower())
        names.setdefault("listKind", f"{kind}List")
    spec.setdefault("conversion", {"strategy": "None"})
    storage = [version["name"] for version in spec.get("versions") or () if version.get("storage")]
    before = (old or {}).get("status") or {}
    stored = list(dict.fromkeys([*(before.get("storedVersions") or ()), *storage]))
    clash = _clash(crd, others)
    accepted = ("False", "NameConflict", clash) if clash else ("True", "NoConflicts", "no conflicts found")
    established = (
        ("False", "NotAccepted", "not all names are accepted")
        if clash
        else ("True", "InitialNamesAccepted", "the initial names have been accepted")
    )
    known = {condition["type"]: condition for condition in before.get("conditions") or ()}
    wanted = {"NamesAccepted": accepted, "Established": established}
    conditions = [_condition(known.get(name), name, *state) for name, state in wanted.items()]
    conditions += [condition for name, condition in known.items() if name not in wanted]
    crd["status"] = {"acceptedNames": names, "conditions": conditions, "storedVersions": stored}


def _condition(known: Obj | None, name: str, status: str, reason: str, message: str) -> Obj:
    same = known is not None and known["status"] == status
    time = known["lastTransitionTime"] if known and same else now()
    return {"type": name, "status": status, "reason": reason, "message": message, "lastTransitionTime": time}


def _clash(crd: Obj, others: Iterable[Obj]) -> str:
    names = _names(crd)
    for other in others:
        same_group = other["spec"]["group"] == crd["spec"].get("group")
        if other["metadata"]["name"] != crd["metadata"]["name"] and same_group and (taken := names & _names(other)):
            return f'"{sorted(taken)[0]}" is already in use'
    return ""


def _names(crd: Obj) -> set[str]:
    names = crd["spec"]["names"]
    return {
        *(names.get(key) or "" for key in ("plural", "singular", "kind", "listKind")),
        *(names.get("shortNames") or ()),
    }


def check_crd(crd: Obj, old: Obj | None) -> list[FieldError]:
    """Returns the errors in a CRD, and compiles its rules."""
    spec = crd.get("spec")
    if not isinstance(spec, dict):
        return [required("spec")]
    names, versions = spec.get("names") or {}, spec.get("versions") or []
    errors = [required(f"spec.{name}") for name in ("group", "scope") if not spec.get(name)]
    errors += [required(f"spec.names.{name}") for name in ("plural", "kind") if not names.get(name)]
    if not versions:
        errors.append(required("spec.versions", "must have at least one version"))
    if errors:
        return errors
    expected = f"{names['plural']}.{spec['group']}"
    if crd["metadata"]["name"] != expected:
        detail = 'must be spec.names.plural+"."+spec.group'
        errors.append(wrong("metadata.name", crd["metadata"]["name"], detail))
    if "." not in spec["group"] or not DNS_SUBDOMAIN.fullmatch(spec["group"]):
        errors.append(wrong("spec.group", spec["group"], "should be a domain with at least one dot"))
    if spec["scope"] not in ("Cluster", "Namespaced"):
        errors.append(not_supported("spec.scope", spec["scope"], ("Cluster", "Namespaced")))
    if sum(bool(version.get("storage")) for version in versions) != 1:
        errors.append(wrong("spec.versions", "<versions>", "must have exactly one version marked as storage version"))
    known = {version["name"]: version.get("schema") for version in old["spec"]["versions"]} if old else {}
    for at, version in enumerate(versions):
        errors += _check_version(version, at, changed=known.get(version["name"]) != version.get("schema"))
    if old is not None:
        for path in ("group", "scope"):
            if old["spec"][path] != spec[path]:
                errors.append(wrong(f"spec.{path}", spec[path], "field is immutable"))
    return errors


def _check_version(version: dict[str, Any], at: int, changed: bool) -> Iterator[FieldError]:
    root = _ROOT.format(at=at)
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if not isinstance(schema, dict):
        yield required(f"spec.versions[{at}].schema.openAPIV3Schema")
        return
    if schema.get("type") != "object":
        yield wrong(f"{root}.type", schema.get("type", ""), 'must be "object" at the root')
    yield from _check_structural(schema, root)
    try:
        Schema(schema)
    except RuleError as error:
        yield wrong(f"{root}{error.path}.rule", error.rule.get("rule"), f"compilation failed: {error.why}")
    else:
        for place, rule, field in undefined_fields(schema) if changed else ():
            yield wrong(root + place, rule, f"compilation failed: ERROR: <input>:1:1: undefined field '{field}'")
    for kind, key in (("additionalPrinterColumns", "jsonPath"), ("selectableFields", "jsonPath")):
        for index, item in enumerate(version.get(kind) or ()):
            path = f"spec.versions[{at}].{kind}[{index}].{key}"
            try:
                parse(str(item.get(key) or ""))
            except BadPath as error:
                yield wrong(path, item.get(key), str(error))
    if any(not str(item.get("jsonPath", "")).startswith(".") for item in version.get("selectableFields") or ()):
        yield wrong(f"spec.versions[{at}].selectableFields", "<fields>", "must start with .")


def _check_structural(schema: dict[str, Any], path: str) -> Iterator[FieldError]:
    kind = schema.get("type")
    loose = schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields")
    if kind is None and not loose:
        yield required(f"{path}.type", "must not be empty for specified object fields")
    elif kind is not None and kind not in _TYPES:
        yield not_supported(f"{path}.type", kind, _TYPES)
    if kind == "array" and not isinstance(schema.get("items"), dict):
        yield required(f"{path}.items", "must be specified")
    if schema.get("properties") and schema.get("additionalProperties"):
        yield _both(path)
    if pattern := schema.get("pattern"):
        try:
            Pattern(pattern)
        except BadPattern as error:
            yield wrong(f"{path}.pattern", pattern, f"must be a valid regular expression, but isn't: {error}")
    if schema.get("x-kubernetes-list-type") == "map":
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        if not keys:
            yield required(f"{path}.x-kubernetes-list-map-keys", "must not be empty if x-kubernetes-list-type is map")
        items = schema.get("items") or {}
        for key in keys:
            if key not in (items.get("required") or ()) and "default" not in (items.get("properties") or {}).get(
                key, {}
            ):
                detail = "is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
                yield required(f"{path}.items.properties[{key}].default", detail)
    for name, part in (schema.get("properties") or {}).items():
        yield from _check_structural(part, f"{path}.properties[{name}]")
    if isinstance(schema.get("items"), dict):
        yield from _check_structural(schema["items"], f"{path}.items")
    if isinstance(schema.get("additionalProperties"), dict):
        yield from _check_structural(schema["additionalProperties"], f"{path}.additionalProperties")


def _both(path: str) -> FieldError:
    return FieldError(
        "FieldValueForbidden",
        f"{path}.additionalProperties",
        "Forbidden: additionalProperties and properties are mutual exclusive",
    )


def resources_of(crd: Obj) -> Iterator[Resource]:
    """Returns the kinds that a CRD defines."""
    spec = crd["spec"]
    names = spec["names"]
    for version in spec["versions"]:
        if not version.get("served", True):
            continue
        subresources = version.get("subresources") or {}
        warning = (
            version.get("deprecationWarning") or f"{spec['group']}/{version['name']} {names['kind']} is deprecated"
        )
        yield Resource(
            group=spec["group"],
            version=version["name"],
            plural=names["plural"],
            kind=names["kind"],
            namespaced=spec["scope"] == "Namespaced",
            singular=names.get("singular") or names["kind"].lower(),
            list_kind=names.get("listKind") or names["kind"] + "List",
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=frozenset(subresources),
            columns=tuple(_column(column) for column in version.get("additionalPrinterColumns") or ()),
            schema=Schema(version["schema"]["openAPIV3Schema"]),
            selectable=tuple(field["jsonPath"].removeprefix(".") for field in version.get("selectableFields") or ()),
            custom=True,
            deprecated=warning if version.get("deprecated") else "",
            generations=True,
        )


def _column(column: dict[str, Any]) -> Column:
    return Column(
        column["name"],
        column["jsonPath"],
        column["type"],
        column.get("description", ""),
        column.get("priority", 0),
        column.get("format", ""),
    )


class CrdServing:
    """Keeps the registry in sync with the CRDs in the store."""

    def __init__(self, store: Store, registry: Registry) -> None:
        self._registry = registry
        for crd in store.objects(CRDS):
            self._serve(crd)
        store.listen(CRDS, self._on_event)

    def _on_event(self, event: Event) -> None:
        if event.type == "DELETED":
            self._registry.remove(stored_at(event.obj))
        elif event.old is None or event.old["spec"] != event.obj["spec"]:
            self._registry.remove(stored_at(event.obj))
            self._serve(event.obj)

    def _serve(self, crd: Obj) -> None:
        conditions = {c["type"]: c["status"] for c in crd["status"]["conditions"]}
        if conditions.get("Established") == "True":
            for resource in resources_of(crd):
                self._registry.add(resource)
