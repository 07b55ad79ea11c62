"""Renders what Argo CD and Flux deliver into namespaces: source, revision, sync state, health, history.

Their objects are most often in a namespace of their own. A run sees of them only what is about its namespace: the
server filters by the destination, not by the object's place, and lists no resources of other namespaces.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tarsy.kubernetes_tools.reach import NamespaceReach

_HERE = "https://kubernetes.default.svc"
MOST_HISTORY, MOST_RESOURCES, MOST_MESSAGE = 5, 20, 400


def deliveries(kind: str, items: Iterable[Mapping[str, Any]], reach: NamespaceReach) -> list[str]:
    """Returns the text of each object of a kind that delivers into a namespace in reach."""
    render = _application if kind == "Application" else _flux
    texts = []
    for item in items:
        into = destinations(kind, item)
        if any(map(reach.includes, into)):
            # The words of a sync that covers several namespaces may be about objects of any of them.
            say = _cut if all(map(reach.includes, into)) else _withheld
            texts.append(render(item, reach, say))
    return texts


def destinations(kind: str, item: Mapping[str, Any]) -> frozenset[str]:
    """Returns the namespaces of this cluster that an object delivers into."""
    spec, status, meta = item.get("spec") or {}, item.get("status") or {}, item.get("metadata") or {}
    if kind == "Application":
        where = spec.get("destination") or {}
        if where.get("server") not in (None, "", _HERE) or where.get("name") not in (None, "", "in-cluster"):
            return frozenset()
        found = [where.get("namespace"), *(r.get("namespace") for r in status.get("resources") or ())]
    elif spec.get("kubeConfig"):
        return frozenset()
    else:
        # The id of an entry is namespace_name_group_kind.
        entries = (status.get("inventory") or {}).get("entries") or ()
        found = [str(entry.get("id", "")).partition("_")[0] for entry in entries]
        found.append(spec.get("targetNamespace") or (None if any(found) else meta.get("namespace")))
    return frozenset(str(name) for name in found if name)


def _application(item: Mapping[str, Any], reach: NamespaceReach, say: Callable[[object], str]) -> str:
    meta, spec, status = item.get("metadata") or {}, item.get("spec") or {}, item.get("status") or {}
    sync, health = status.get("sync") or {}, status.get("health") or {}
    revision = sync.get("revision") or ",".join(map(str, sync.get("revisions") or ()))
    lines = [
        f"Application {meta.get('namespace')}/{meta.get('name')} sync={sync.get('status')} "
        f"health={health.get('status')} revision={revision}"
    ]
    sources = spec.get("sources") or [spec.get("source") or {}]
    lines += [
        f"  source {s.get('repoURL')} path={s.get('path') or s.get('chart')} target={s.get('targetRevision')}"
        for s in sources
    ]
    if operation := status.get("operationState"):
        lines.append(
            f"  last sync {operation.get('phase')} started={operation.get('startedAt')} "
            f"finished={operation.get('finishedAt')}: {say(operation.get('message'))}"
        )
    for entry in list(status.get("history") or ())[-MOST_HISTORY:][::-1]:
        lines.append(f"  deployed {entry.get('deployedAt')} revision={entry.get('revision') or entry.get('revisions')}")
    lines += [f"  {c.get('type')}: {say(c.get('message'))}" for c in status.get("conditions") or ()]
    troubled = [
        r
        for r in status.get("resources") or ()
        if reach.includes(r.get("namespace"))
        and (r.get("status") != "Synced" or (r.get("health") or {}).get("status") not in (None, "Healthy"))
    ]
    lines += [
        f"  {r.get('kind')}/{r.get('name')} sync={r.get('status')} "
        f"health={(r.get('health') or {}).get('status')} {say((r.get('health') or {}).get('message'))}".rstrip()
        for r in troubled[:MOST_RESOURCES]
    ]
    if len(troubled) > MOST_RESOURCES:
        lines.append(f"  [{len(troubled) - MOST_RESOURCES} more resources are not in sync or not healthy]")
    return "\n".join(lines)


def _flux(item: Mapping[str, Any], _: NamespaceReach, say: Callable[[object], str]) -> str:
    meta, spec, status = item.get("metadata") or {}, item.get("spec") or {}, item.get("status") or {}
    source = spec.get("sourceRef") or ((spec.get("chart") or {}).get("spec") or {}).get("sourceRef") or {}
    chart = (spec.get("chart") or {}).get("spec") or {}
    lines = [
        f"{item.get('kind')} {meta.get('namespace')}/{meta.get('name')} "
        f"applied={status.get('lastAppliedRevision') or status.get('lastAttemptedRevision')} "
        f"attempted={status.get('lastAttemptedRevision')} suspended={bool(spec.get('suspend'))}",
        f"  source {source.get('kind')}/{source.get('name')} path={spec.get('path') or chart.get('chart')} "
        f"version={chart.get('version', '')}".rstrip(),
    ]
    lines += [
        f"  {c.get('type')}={c.get('status')} since={c.get('lastTransitionTime')} {c.get('reason')}: "
        f"{say(c.get('message'))}"
        for c in status.get("conditions") or ()
    ]
    for entry in list(status.get("history") or ())[:MOST_HISTORY]:
        lines.append(
            f"  release version={entry.get('chartVersion')} app={entry.get('appVersion')} status={entry.get('status')} "
            f"deployed={entry.get('lastDeployed')}"
        )
    return "\n".join(lines)


def _cut(text: object) -> str:
    said = " ".join(str(text or "").split())
    return said if len(said) <= MOST_MESSAGE else f"{said[:MOST_MESSAGE]}..."


def _withheld(text: object) -> str:
    return "(the message is withheld: it may be about other namespaces)" if text else ""
