"""Renders the owners of an object: its controllers, the tools that manage it, and who wrote its fields last."""

from collections.abc import Iterable, Mapping
from typing import Any

MOST_CHILDREN, MOST_WRITERS = 50, 10
_TRACES = (
    ("app.kubernetes.io/managed-by", "managed by"),
    ("meta.helm.sh/release-name", "Helm release"),
    ("meta.helm.sh/release-namespace", "namespace of the Helm release"),
    ("argocd.argoproj.io/tracking-id", "Argo CD"),
    ("argocd.argoproj.io/instance", "Argo CD Application"),
    ("kustomize.toolkit.fluxcd.io/name", "Flux Kustomization"),
    ("kustomize.toolkit.fluxcd.io/namespace", "namespace of the Flux Kustomization"),
    ("helm.toolkit.fluxcd.io/name", "Flux HelmRelease"),
    ("app.kubernetes.io/part-of", "part of"),
    ("app.kubernetes.io/instance", "instance"),
    ("app.kubernetes.io/version", "version"),
)


def controller_of(item: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Returns the owner reference of an object's controller, or of its first owner; None without owners."""
    owners = (item.get("metadata") or {}).get("ownerReferences") or []
    return next((owner for owner in owners if owner.get("controller")), owners[0] if owners else None)


def owned(items: Iterable[Mapping[str, Any]], uid: str) -> list[Mapping[str, Any]]:
    """Returns the objects that an owner has."""
    return [
        item
        for item in items
        if any(o.get("uid") == uid for o in (item.get("metadata") or {}).get("ownerReferences") or ())
    ]


def render_owners(
    chain: Iterable[tuple[str, Mapping[str, Any]]], end: str | None, children: Iterable[tuple[str, str]]
) -> str:
    """Renders the chain of owners from an object upwards, and what it owns.

    Args:
        chain: kind and object, the asked one first.
        end: a sentence about an owner that could not be read; None if the last of the chain has no owner.
        children: kind and name of what the object owns.
    """
    lines = []
    for depth, (kind, item) in enumerate(chain):
        meta = item.get("metadata") or {}
        lines.append(f"{'  ' * depth}{'owned by ' if depth else ''}{kind}/{meta.get('name')}")
        lines += [f"{'  ' * depth}  {line}" for line in (*_traces(meta), *_writers(meta))]
    lines.append(f"[{end}]" if end else "the last one has no owner")
    listed = list(children)
    if listed:
        lines.append("it owns:")
        lines += [f"  {kind}/{name}" for kind, name in listed[:MOST_CHILDREN]]
        if len(listed) > MOST_CHILDREN:
            lines.append(f"[{len(listed) - MOST_CHILDREN} more objects are left out]")
    return "\n".join(lines)


def _traces(meta: Mapping[str, Any]) -> list[str]:
    found = {**(meta.get("labels") or {}), **(meta.get("annotations") or {})}
    return [f"{word}: {found[key]}" for key, word in _TRACES if found.get(key)]


def _writers(meta: Mapping[str, Any]) -> list[str]:
    entries = sorted(meta.get("managedFields") or (), key=lambda entry: str(entry.get("time")), reverse=True)
    return [
        f"written by {entry.get('manager')} ({entry.get('operation')}"
        f"{', ' + entry['subresource'] if entry.get('subresource') else ''}) at {entry.get('time')}"
        for entry in entries[:MOST_WRITERS]
    ]
