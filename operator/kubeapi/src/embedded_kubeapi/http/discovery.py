"""Serves discovery of groups, versions and kinds, in the old form (three documents) and the aggregated form.

The latter is "Aggregated discovery" on kubernetes.io/docs/reference/using-api/api-concepts.
"""

from __future__ import annotations

from collections.abc import Iterable

from embedded_kubeapi.objects import Obj
from embedded_kubeapi.registry import Registry
from embedded_kubeapi.resource import Resource

_AGGREGATED = "apidiscovery.k8s.io"
# What a subresource takes and gives, where it is not the kind itself: group, version, kind.
_KINDS = {"scale": ("autoscaling", "v1", "Scale"), "token": ("authentication.k8s.io", "v1", "TokenRequest"),
          "eviction": ("policy", "v1", "Eviction"), "binding": ("", "v1", "Binding")}  # fmt: skip
_CUSTOM = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_VERBS = {"token": ["create"], "eviction": ["create"], "binding": ["create"], "log": ["get"], "finalize": ["update"]}


def api_versions() -> Obj:
    """/api."""
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}


def group_list(registry: Registry, proxied: dict[str, list[str]]) -> Obj:
    """/apis; `proxied` are the groups of other servers."""
    groups = [_versions(name, versions) for name, versions in all_groups(registry, proxied).items()]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def all_groups(registry: Registry, proxied: dict[str, list[str]]) -> dict[str, list[str]]:
    """Returns the served groups with their versions, aggregated ones last."""
    groups = registry.groups()
    for name, versions in proxied.items():
        groups[name] = list(dict.fromkeys([*groups.get(name, ()), *versions]))
    return groups


def api_group(name: str, versions: list[str]) -> Obj:
    """/apis/GROUP."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_versions(name, versions)}


def _versions(name: str, versions: list[str]) -> Obj:
    shown = [{"groupVersion": f"{name}/{version}", "version": version} for version in versions]
    return {"name": name, "versions": shown, "preferredVersion": shown[0]}


def resource_list(resources: Iterable[Resource], group_version: str) -> Obj:
    """/api/v1 and /apis/GROUP/VERSION."""
    found = []
    for resource in resources:
        entry: Obj = {
            "name": resource.plural,
            "singularName": resource.singular,
            "namespaced": resource.namespaced,
            "kind": resource.kind,
            "verbs": _verbs(resource),
        }
        if resource.short_names:
            entry["shortNames"] = list(resource.short_names)
        if resource.categories:
            entry["categories"] = list(resource.categories)
        if resource.stored:
            entry["storageVersionHash"] = "tarsyEmbedded="
        found.append(entry)
        for sub in sorted(resource.subresources):
            group, version, kind = _KINDS.get(sub, ("", "", resource.kind))
            part: Obj = {"name": f"{resource.plural}/{sub}", "singularName": "", "namespaced": resource.namespaced}
            if version:
                part |= {"group": group, "version": version}
            found.append({**part, "kind": kind, "verbs": _VERBS.get(sub, ["get", "patch", "update"])})
    body: Obj = {"kind": "APIResourceList", "groupVersion": group_version, "resources": found}
    return body if group_version == "v1" else body | {"apiVersion": "v1"}  # as the real API has it


def _verbs(resource: Resource) -> list[str]:
    """Sorts verbs as the real API does: in its fixed order for custom resources, else alphabetically."""
    return [verb for verb in _CUSTOM if verb in resource.verbs] if resource.custom else list(resource.verbs)


def aggregated_version(accept: str) -> str:
    """Returns the version of aggregated discovery in an Accept header; empty if it requests none."""
    for part in accept.replace(" ", "").split(","):
        if f"g={_AGGREGATED}" in part and "as=APIGroupDiscoveryList" in part:
            for version in ("v2", "v2beta1"):
                if f"v={version}" in part.split(";"):
                    return version
    return ""


def aggregated(registry: Registry, core: bool, version: str) -> tuple[Obj, str]:
    """Returns /api (with `core`) or /apis in the aggregated form of `version`, and its content type."""
    groups = {"": ["v1"]} if core else registry.groups()
    items = []
    for name, versions in groups.items():
        shown = []
        for each in versions:
            found = [_discovered(resource) for resource in registry.resources(name, each)]
            shown.append({"version": each, "resources": found, "freshness": "Current"})
        items.append({"metadata": {"name": name, "creationTimestamp": None}, "versions": shown})
    body: Obj = {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"{_AGGREGATED}/{version}",
        "metadata": {},
        "items": items,
    }
    return body, f"application/json;g={_AGGREGATED};v={version};as=APIGroupDiscoveryList"


def _discovered(resource: Resource) -> Obj:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    entry: Obj = {
        "resource": resource.plural,
        "responseKind": kind,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": _verbs(resource),
    }
    if resource.short_names:
        entry["shortNames"] = list(resource.short_names)
    if resource.categories:
        entry["categories"] = list(resource.categories)
    if resource.subresources:
        entry["subresources"] = [_discovered_part(resource, sub) for sub in sorted(resource.subresources)]
    return entry


def _discovered_part(resource: Resource, sub: str) -> Obj:
    group, version, kind = _KINDS.get(sub, (resource.group, resource.version, resource.kind))
    return {
        "subresource": sub,
        "responseKind": {"group": group, "version": version, "kind": kind},
        "verbs": _VERBS.get(sub, ["get", "patch", "update"]),
    }
