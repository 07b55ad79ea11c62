"""Reconstructs deployments of Argo CD and Flux from the status of their objects, where these are served."""

from collections.abc import Iterator

from tarsy.evidence.changes.change import Change, ChangeType
from tarsy.evidence.fields import Object, mapping, mappings, moment, one_line, string
from tarsy.evidence.snapshot import ObjectKey, Snapshot
from tarsy.evidence.workloads import condition

_REVISION = 12


def gitops_changes(snapshot: Snapshot) -> Iterator[Change]:
    """Yields the deployments of Applications (Argo CD), Kustomizations and HelmReleases (Flux)."""
    for key, application in snapshot.items("Application"):
        yield from _of_application(key, application)
    for key, kustomization in snapshot.items("Kustomization"):
        yield from _of_kustomization(key, kustomization)
    for key, release in snapshot.items("HelmRelease"):
        yield from _of_release(key, release)


def _of_application(key: ObjectKey, application: Object) -> Iterator[Change]:
    for entry in mappings(application, "status", "history"):
        at = moment(entry, "deployedAt")
        if at is not None:
            by = string(entry, "initiatedBy", "username") or "argocd"
            yield Change(at, ChangeType.GITOPS, key, f"deployed revision {_short(string(entry, 'revision'))}", by)
    state = mapping(application, "status", "operationState")
    at = moment(state, "finishedAt")
    if at is not None and string(state, "phase") in ("Failed", "Error"):
        yield Change(at, ChangeType.GITOPS, key, f"failed to sync: {_line(string(state, 'message'))}", "argocd")


def _of_kustomization(key: ObjectKey, kustomization: Object) -> Iterator[Change]:
    ready = condition(kustomization, "Ready")
    at = moment(ready, "lastTransitionTime")
    if at is None:
        return
    if string(ready, "status") == "True":
        revision = _short(string(kustomization, "status", "lastAppliedRevision"))
        yield Change(at, ChangeType.GITOPS, key, f"applied revision {revision}", "kustomize-controller")
    else:
        yield Change(
            at, ChangeType.GITOPS, key, f"failed to apply: {_line(string(ready, 'message'))}", "kustomize-controller"
        )


def _of_release(key: ObjectKey, release: Object) -> Iterator[Change]:
    for entry in mappings(release, "status", "history"):
        at = moment(entry, "lastDeployed")
        if at is not None:
            chart = f"{string(entry, 'chartName')} {string(entry, 'chartVersion')}".strip()
            status = string(entry, "status") or "unknown"
            yield Change(at, ChangeType.GITOPS, key, f"released chart {chart}, status {status}", "helm-controller")


def _short(revision: str) -> str:
    """Shortens a revision as `git log` does; `main@sha1:...` keeps its branch."""
    branch, at, digest = revision.rpartition("@")
    text = digest.removeprefix("sha1:")
    return f"{branch}{at}{text[:_REVISION]}" if text else "unknown"


def _line(text: str) -> str:
    return one_line(text, "no message")
