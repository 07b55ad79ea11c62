"""Finds kinds that the API server serves and the operator does not watch.

Watches discovery and lists one object of each kind, decides whether the watch covers them, writes nothing. kopf learns
of new kinds from CustomResourceDefinitions alone, and ignores its first listing of them: when the right to list them
comes after the CRDs (any order of `kubectl apply`, GitOps), it watches nothing and says nothing. So what kopf was
started with is compared with discovery, which every identity may read. A right to list that is missing is found the
same way: kopf tries such a kind again and again without an end.
"""

import asyncio
import itertools
import logging
from collections.abc import Iterator

from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.kinds import path
from tarsy.resources.meta import API_VERSION
from tarsy.resources.v1alpha1 import KINDS

_log = logging.getLogger(__name__)

DISCOVERY_SECONDS = 5.0
"""Pause between two looks at discovery."""

SETTLE_SECONDS = 1.0
"""Pause until it is looked whether more kinds came."""

FIRST_PAUSES = (0.2, 0.5, 1.0, 2.0)


class WatchCoverage:
    """Compares the served kinds with the watched ones; see `why_not`.

    Args:
        client: the identity that watches.
        namespaces: the ones that are watched; empty: all.
    """

    def __init__(self, client: KubeClient, namespaces: tuple[str, ...] = ()) -> None:
        self._client = client
        self._spaces: tuple[str | None, ...] = namespaces or (None,)
        self._started_with: frozenset[str] = frozenset()
        self._listed: set[tuple[str, str | None]] = set()
        self._why: str | None = "the watch has not started yet"

    def why_not(self) -> str | None:
        """Explains in a sentence why a served kind is not watched; None when every one is."""
        return self._why

    async def start(self) -> None:
        """Reads the served kinds before a watch starts; returns when the API server answers."""
        for pause in _pauses():
            try:
                self._started_with = await self._served()
                break
            except ApiError as error:
                _log.warning(
                    "the kinds that the API server serves could not be read; retrying in %g s: %s", pause, error.message
                )
                await asyncio.sleep(pause)
        self._listed.clear()

    async def until_outdated(self) -> None:
        """Returns when a kind is served that the watch was not started with."""
        before: frozenset[str] = frozenset()
        for pause in _pauses():
            try:
                served = await self._served()
                self._started_with &= served  # one that is deleted and comes back is new
                unwatched = served - self._started_with
                # Nine definitions come one after another: the last of them is waited for.
                if unwatched and unwatched == before:
                    _log.warning("%s; restarting the watch", _not_watched(unwatched))
                    return
                before = unwatched
                self._tell(_not_watched(unwatched) if unwatched else await self._unlisted(served))
            except ApiError as error:
                _log.debug("the kinds that the API server serves could not be read: %s", error.message)
            await asyncio.sleep(SETTLE_SECONDS if before else pause)

    def _tell(self, why: str | None) -> None:
        if why != self._why:
            _log.log(
                logging.INFO if why is None else logging.WARNING, "watch: %s", why or "all served kinds are watched"
            )
        self._why = why

    async def _served(self) -> frozenset[str]:
        """Reads which kinds of this project are served.

        Raises:
            ApiError: discovery could not be read.
        """
        try:
            answer = await self._client.read(f"/apis/{API_VERSION}")
        except ApiError as error:
            if error.status == 404:
                return frozenset()
            raise
        plurals = {resource["name"] for resource in answer.get("resources") or ()}
        return frozenset(name for name, kind in KINDS.items() if kind.PLURAL in plurals)

    async def _unlisted(self, served: frozenset[str]) -> str | None:
        """Explains why a served kind cannot be listed, and so not watched; each is tried until it succeeded once."""
        for kind, space in itertools.product(sorted(served), self._spaces):
            if (kind, space) in self._listed:
                continue
            try:
                await self._client.read(path(kind, space), {"limit": "1"})
            except ApiError as error:
                if error.reason != "Forbidden":
                    raise
                _log.debug("%s", error.message)
                return f"{KINDS[kind].PLURAL} are not watched: the operator is not allowed to list them{_in(space)}"
            self._listed.add((kind, space))
        return None


def _not_watched(kinds: frozenset[str]) -> str:
    names = ", ".join(sorted(KINDS[kind].PLURAL for kind in kinds))
    return f"the API server serves {names}, which the operator does not watch yet"


def _in(space: str | None) -> str:
    return f" in namespace {space}" if space else ""


def _pauses() -> Iterator[float]:
    return itertools.chain(FIRST_PAUSES, itertools.repeat(DISCOVERY_SECONDS))
