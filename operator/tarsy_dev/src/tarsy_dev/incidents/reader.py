"""Serves the objects of an incident to the Kubernetes tools, as a Kubernetes API would, without a server."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from embedded_kubeapi.errors import ApiError
from embedded_kubeapi.selectors import field_requirements, label_selector
from tarsy.kubernetes_tools.cluster import ClusterError, ClusterReader
from tarsy.kubernetes_tools.kinds import READABLE_KINDS, Kind
from tarsy_dev.incidents.corpus import Incident

_NO_LOGS = "this incident has no logs"
_NOT_THERE = "the server could not find the requested resource"


class IncidentReader(ClusterReader):
    """Answers the requests of the Kubernetes tools from the objects of an incident, all of a list at once.

    An incident has neither logs nor metrics, and no objects of GitOps tools.

    Args:
        incident: whose objects are served.
    """

    def __init__(self, incident: Incident) -> None:
        super().__init__({})
        self._objects = incident.objects

    async def read(self, path: str, parameters: Mapping[str, str | None], *, doing: str) -> str:
        """Returns the text of the object or the list at a path.

        Args:
            path: as of the Kubernetes API.
            parameters: selectors and limits.
            doing: the request as "verb resource where", for errors.

        Raises:
            ClusterError: there is none, or a selector is wrong.
        """
        try:
            return json.dumps(self._answer(path, parameters, doing))
        except ApiError as error:
            raise ClusterError(400, f"cannot {doing}: {error}") from None

    def _answer(self, path: str, parameters: Mapping[str, str | None], doing: str) -> Mapping[str, Any]:
        kind, namespace, rest = _parts(path)
        if kind is None or len(rest) > 1:
            raise ClusterError(404, f"not found: cannot {doing}: {_NO_LOGS if kind else _NOT_THERE}")
        found = list(self._of(kind, namespace))
        if rest:
            named = [one for one in found if one["metadata"]["name"] == rest[0]]
            if not named:
                raise ClusterError(404, f'not found: cannot {doing}: {kind.plural} "{rest[0]}" not found')
            return named[0]
        has_labels = label_selector(parameters.get("labelSelector") or "")
        wanted = field_requirements(parameters.get("fieldSelector") or "")
        items = [
            one
            for one in found
            if has_labels(one["metadata"].get("labels") or {})
            and all((_field(one, name) == value) == equal for name, equal, value in wanted)
        ]
        return {"kind": f"{kind.name}List", "metadata": {}, "items": items}

    def _of(self, kind: Kind, namespace: str | None) -> Iterator[Mapping[str, Any]]:
        group = kind.api.removeprefix("apis/").removeprefix("api/").rpartition("/")[0]
        for one in self._objects:
            same = one["kind"] == kind.name and one["apiVersion"].rpartition("/")[0] == group
            if same and namespace in (None, one["metadata"].get("namespace")):
                yield one


def _parts(path: str) -> tuple[Kind | None, str | None, list[str]]:
    """Returns the kind of a path (None: not served), its namespace if any, and what follows the plural."""
    parts = path.strip("/").split("/")
    head = 2 if parts[0] == "api" else 3
    api, rest, namespace = "/".join(parts[:head]), parts[head:], None
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    kind = next((one for one in READABLE_KINDS if (one.api, one.plural) == (api, rest[0])), None)
    return kind, namespace, rest[1:]


def _field(one: Mapping[str, Any], name: str) -> str:
    found: Any = one
    for part in name.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return "" if found is None else str(found)
