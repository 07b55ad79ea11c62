"""Compares the cache with the cluster: finds missed additions, changes and deletions, and runs without an object.

An object that is only in the cache was deleted, unless it came while the list was being read: so the cache is read
before the list, and the record before the cache. An object whose deletion the watch told while the list was being read
stays deleted, because the list is older. A run is stopped only after the API was asked for its object by name.
"""

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Protocol
from uuid import UUID

from tarsy.controllers.machinery.cache import PASSIVE, Cache, Key, Version
from tarsy.kube.client import PAGE_SIZE, ApiError, KubeClient
from tarsy.resources.v1alpha1 import KINDS, ChatMessage, Investigation
from tarsy.store.reading.reads import Reads
from tarsy.store.runs.lifecycle import Runs

_log = logging.getLogger(__name__)

_OF_RUNS = (Investigation.KIND, ChatMessage.KIND)

MISSED_SECONDS = 0.5
"""From the last object that the watch lists anew to a relist: other kinds follow, they lost the same connection."""

LISTING_SECONDS = 60.0
"""From the first such object to a relist at the latest, however long the watch lists."""


class Seen(Protocol):
    """Takes an object that exists; `instead_of` is the version that it is known to follow."""

    def __call__(self, raw: Mapping[str, Any], instead_of: Version | None = None) -> None: ...


class _Gone(Protocol):
    """Takes note of an object that no longer exists."""

    def __call__(self, key: Key, uid: str) -> None: ...


async def learn(client: KubeClient, cache: Cache, namespaces: tuple[str, ...], *, seen: Seen) -> None:
    """Lists the configuration before the first run is planned.

    A Chain that nobody has told of yet is waited for; defaults of a namespace would be missed without a word, with its
    budget and its masking. A kind that may not be listed, or is not there, is left to the watch, which says so.

    Args:
        client: the Kubernetes API.
        cache: the cached objects.
        namespaces: that the operator watches; empty: all.
        seen: takes each object that differs from the cache.

    Raises:
        ApiError: the Kubernetes API failed or could not be reached.
    """
    for kind in (kind for kind in KINDS if kind not in PASSIVE):
        for space in namespaces or (None,):
            try:
                await _list(kind, (space,), client, cache, seen)
            except ApiError as error:
                if error.reason not in ("Forbidden", "NotFound"):
                    raise
                _log.warning("%s could not be listed: %s", kind, error.message)


async def until_listed(missed: asyncio.Event) -> None:
    """Waits until the watch lists no further object anew, and clears `missed`, which is set with each of them."""
    clock = asyncio.get_running_loop().time
    until = clock() + LISTING_SECONDS
    while missed.is_set() and clock() < until:
        missed.clear()
        await asyncio.sleep(MISSED_SECONDS)
    missed.clear()


async def relist(
    client: KubeClient,
    cache: Cache,
    reads: Reads,
    runs: Runs,
    namespaces: tuple[str, ...],
    *,
    seen: Seen,
    gone: _Gone,
) -> None:
    """Lists all kinds once, and stops runs without an object.

    Args:
        client: the Kubernetes API.
        cache: the cached objects.
        reads: the records.
        runs: stops runs.
        namespaces: that the operator watches; empty: all.
        seen: takes each object that differs from the cache.
        gone: takes each object that no longer exists.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
        StoreError: the record could not be read or written.
    """
    unfinished = await reads.unfinished()
    living: set[str] = set()
    for kind in KINDS:
        living |= await _compare(kind, namespaces, client, cache, seen, gone)
    await _stop_without_objects(unfinished, living, client, reads, runs, namespaces)


async def relist_while_watch_lists(
    client: KubeClient,
    cache: Cache,
    reads: Reads,
    runs: Runs,
    namespaces: tuple[str, ...],
    *,
    seen: Seen,
    gone: _Gone,
) -> None:
    """Does what `relist` does, for a watch that has just begun: it lists the objects of runs, which may be many.

    So only configuration is listed a second time. The API is asked by name for the objects of unfinished runs that
    the watch has not told of; if they are more than a page, their kinds are listed. Arguments and errors are
    those of `relist`.
    """
    unfinished = await reads.unfinished()
    for kind in (kind for kind in KINDS if kind not in PASSIVE):
        await _compare(kind, namespaces, client, cache, seen, gone)
    living = {version.uid for kind in _OF_RUNS for key in cache.keys_of(kind) if (version := cache.version(key))}
    if len({str(run) for run in unfinished} - living) > PAGE_SIZE:
        for kind in _OF_RUNS:
            living |= await _compare(kind, namespaces, client, cache, seen, gone)
    await _stop_without_objects(unfinished, living, client, reads, runs, namespaces)


async def _compare(
    kind: str, namespaces: tuple[str, ...], client: KubeClient, cache: Cache, seen: Seen, gone: _Gone
) -> set[str]:
    """Lists a kind, passes on what is new and what has gone, and returns the uids that exist."""
    before, there = await _list(kind, namespaces or (None,), client, cache, seen)
    for key, version in before.items():
        if version.uid not in there:
            gone(key, version.uid)
    return there


async def _list(
    kind: str, spaces: tuple[str | None, ...], client: KubeClient, cache: Cache, seen: Seen
) -> tuple[dict[Key, Version], set[str]]:
    """Lists a kind and passes on what differs from the cache; returns the cached versions and the uids that exist."""
    before = {key: version for key in cache.keys_of(kind) if (version := cache.version(key))}
    deletions, there = cache.deletions, set[str]()
    for space in spaces:
        async for page in client.pages(kind, space):
            for raw in page:
                meta = raw["metadata"]
                there.add(meta["uid"])
                known = before.get(Key(kind, meta.get("namespace", ""), meta["name"]))
                if known != Version.of(raw) and not cache.gone_since(meta["uid"], deletions):
                    seen({**raw, "kind": kind}, known)
    return before, there


async def _stop_without_objects(
    unfinished: Iterable[UUID],
    living: Collection[str],
    client: KubeClient,
    reads: Reads,
    runs: Runs,
    namespaces: tuple[str, ...],
) -> None:
    for run in unfinished:
        if str(run) not in living:
            await _stop_without_object(run, client, reads, runs, namespaces)


async def _stop_without_object(
    identity: UUID, client: KubeClient, reads: Reads, runs: Runs, namespaces: tuple[str, ...]
) -> None:
    record = await reads.record(identity)
    if record is None or (namespaces and record.namespace not in namespaces):
        return
    kind = Investigation.KIND if record.parent is None else ChatMessage.KIND
    raw = await client.find(kind, record.namespace, record.name)
    if raw is None or raw["metadata"]["uid"] != str(identity):
        await runs.object_deleted(identity)
