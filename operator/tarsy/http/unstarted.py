"""Finds alerts without a run, and investigations that were not accepted.

Decision: objects are selected by the columns that kubectl prints, without their contents, because an alert may have
256 KiB. The columns of all objects of a namespace are read at most once in `SCAN_SECONDS`, whoever asks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from tarsy.http.review_cache import ReviewCache
from tarsy.kube.client import KubeClient
from tarsy.kube.kinds import path
from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1 import Alert, Investigation

SCAN_SECONDS: Final = 10.0
"""Age in seconds up to which what was found is used again."""

UNSTARTED_PHASES: Final[Mapping[type[AnyResource], frozenset[str]]] = {
    Alert: frozenset({"", "Pending", "Waiting", "Rejected"}),
    Investigation: frozenset({"", "Pending"}),
}
"""Phases of objects without a run; empty before the operator saw them."""

_TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
_PAGE: Final = "500"
_NAMESPACES: Final = 1_000
_FAR: Final = 9_999_999_999


@dataclass(frozen=True, slots=True)
class UnstartedObject:
    """An Alert or Investigation that may have no run.

    Args:
        kind: Alert or Investigation.
        namespace: of the object.
        name: of the object.
        created: time of its creation, as Kubernetes writes it.
    """

    kind: type[AnyResource]
    namespace: str
    name: str
    created: str

    @property
    def place(self) -> tuple[str, str, str, str]:
        """The sort key: the latest first."""
        age = _FAR - int(datetime.fromisoformat(self.created).timestamp())
        return str(age), self.kind.KIND, self.namespace, self.name


class UnstartedScans:
    """Finds the candidates of namespaces, at most once in `SCAN_SECONDS` each.

    Args:
        client: authenticated as the operator.
    """

    def __init__(self, client: KubeClient) -> None:
        self._client = client
        self._found: ReviewCache[tuple[str, str | None], list[UnstartedObject]] = ReviewCache(
            lambda _: SCAN_SECONDS, size=_NAMESPACES
        )

    async def of(self, kind: type[AnyResource], namespaces: Sequence[str]) -> list[UnstartedObject]:
        """Returns the candidates of a kind.

        Args:
            kind: Alert or Investigation.
            namespaces: empty: all namespaces.

        Raises:
            ApiError: the Kubernetes API is unavailable.
        """
        found: list[UnstartedObject] = []
        for namespace in dict.fromkeys(namespaces) or (None,):
            found += await self._found.get((kind.KIND, namespace), lambda at=namespace: self._scan(kind, at))  # type: ignore[misc]
        return found

    async def _scan(self, kind: type[AnyResource], namespace: str | None) -> list[UnstartedObject]:
        found: list[UnstartedObject] = []
        token, phase = "", -1
        while True:
            query = {"limit": _PAGE, "includeObject": "Metadata"} | ({"continue": token} if token else {})
            table = await self._client.request("GET", path(kind.KIND, namespace), query=query, accept=_TABLE)
            names = [column["name"] for column in table.get("columnDefinitions") or ()]
            phase = names.index("Phase") if "Phase" in names else phase
            found += _candidates(kind, table, phase)
            token = table.get("metadata", {}).get("continue") or ""
            if not token:
                return found


def _candidates(kind: type[AnyResource], table: Mapping[str, Any], phase: int) -> Iterator[UnstartedObject]:
    for row in table.get("rows") or ():
        if str(row["cells"][phase] or "") in UNSTARTED_PHASES[kind]:
            meta = row["object"]["metadata"]
            yield UnstartedObject(kind, meta["namespace"], meta["name"], meta["creationTimestamp"])
