"""Holds the served kinds: built-in kinds always, custom ones while their CRD exists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from embedded_kubeapi.objects import Key
from embedded_kubeapi.resource import Resource

_VERSION = re.compile(r"v(\d+)(?:(alpha|beta)(\d+))?")
_STABILITY = {"alpha": 0, "beta": 1, "": 2}


class Registry:
    """The served kinds; `revision` counts changes, for the caches of discovery and OpenAPI."""

    def __init__(self, resources: Iterable[Resource] = ()) -> None:
        self.revision = 0
        self._served: dict[tuple[str, str, str], Resource] = {}
        for resource in resources:
            self.add(resource)

    def add(self, resource: Resource) -> None:
        """Adds or replaces a kind."""
        self._served[resource.group, resource.version, resource.plural] = resource
        self.revision += 1

    def remove(self, key: Key) -> None:
        """Removes all versions of a kind."""
        for served in [served for served in self._served if (served[0], served[2]) == key]:
            del self._served[served]
        self.revision += 1

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Returns a kind by its `group`, `version` and `plural` in URLs, or None."""
        return self._served.get((group, version, plural))

    def by_kind(self, api_version: str, kind: str) -> Resource | None:
        """Returns a kind by apiVersion and kind, or None."""
        return next((r for r in self._served.values() if r.kind == kind and r.api_version == api_version), None)

    def versions_of(self, key: Key) -> list[Resource]:
        """Returns all versions of a kind, the preferred one first."""
        found = [resource for resource in self._served.values() if resource.key == key]
        return sorted(found, key=lambda resource: version_order(resource.version))

    def __iter__(self) -> Iterator[Resource]:
        return iter(list(self._served.values()))

    def groups(self) -> dict[str, list[str]]:
        """Returns the named groups with their versions, preferred first."""
        found: dict[str, list[str]] = {}
        for resource in self._served.values():
            if resource.group:
                versions = found.setdefault(resource.group, [])
                if resource.version not in versions:
                    versions.append(resource.version)
        return {group: sorted(versions, key=version_order) for group, versions in found.items()}

    def resources(self, group: str, version: str) -> list[Resource]:
        """Returns the kinds of a group version, sorted by name."""
        found = [r for r in self._served.values() if (r.group, r.version) == (group, version)]
        return sorted(found, key=lambda resource: resource.plural)


def version_order(version: str) -> tuple[int, int, int, str]:
    """Returns a sort key: v2 before v1 before v1beta1 before v1alpha1 before anything else."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return (1, 0, 0, version)
    return (0, -_STABILITY[match[2] or ""], -int(match[1]) * 1000 - int(match[3] or 0), "")
