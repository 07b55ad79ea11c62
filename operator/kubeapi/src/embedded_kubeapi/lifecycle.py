"""Implements what follows a write: finalizers, garbage collection, namespace deletion, cleanup after CRDs.

These are the few controllers without which clients would wait for ever. They act at once, before the answer to the
request that made them act, so nothing is seen in Terminating that nobody holds with a finalizer.
"""

from __future__ import annotations

from collections import deque

from embedded_kubeapi.crds import CLEANUP_FINALIZER, CRDS, stored_at
from embedded_kubeapi.objects import Key, Obj, new_uid, now
from embedded_kubeapi.registry import Registry
from embedded_kubeapi.store import Place, Store

NAMESPACES: Key = ("", "namespaces")
_FOREGROUND = "foregroundDeletion"
ROOT_CA = "kube-root-ca.crt"


class Lifecycle:
    """Completes deletions: finalizers, dependents, contents of namespaces.

    Args:
        root_ca: PEM of the authority that namespaces' `kube-root-ca.crt` ConfigMaps hold.
    """

    def __init__(self, store: Store, registry: Registry, root_ca: str) -> None:
        self._store = store
        self._registry = registry
        self._root_ca = root_ca
        self._pending: deque[Place] = deque()
        self._settling = False

    def created(self, key: Key, obj: Obj) -> None:
        """Runs the effects of a new object."""
        if key == NAMESPACES:
            self.furnish(obj["metadata"]["name"])
        references = obj["metadata"].get("ownerReferences")
        if references and not any(self._owner_exists(obj, reference) for reference in references):
            self.delete(key, obj)

    def furnish(self, namespace: str) -> None:
        """Creates a namespace's default ServiceAccount and root certificate, as the controllers do."""
        account = {"apiVersion": "v1", "kind": "ServiceAccount"}
        authority = {"apiVersion": "v1", "kind": "ConfigMap", "data": {"ca.crt": self._root_ca}}
        for plural, name, body in (("serviceaccounts", "default", account), ("configmaps", ROOT_CA, authority)):
            found = self._store.get(("", plural), namespace, name)
            if found is None or (name == ROOT_CA and found.get("data") != authority["data"]):
                meta = {"name": name, "namespace": namespace, "uid": new_uid(), "creationTimestamp": now()}
                self._store.put(("", plural), {**body, "metadata": found["metadata"].copy() if found else meta})

    def delete(self, key: Key, obj: Obj, policy: str = "Background") -> Obj:
        """Deletes an object, or marks it if finalizers hold it; returns its last or marked state.

        Args:
            policy: what happens to the objects it owns: Background, Foreground or Orphan.
        """
        if policy == "Orphan":
            for place in self._store.dependents(obj["metadata"]["uid"]):
                self._let_go(place, obj["metadata"]["uid"])
        finalizers = list(obj["metadata"].get("finalizers") or ())
        if policy == "Foreground" and _FOREGROUND not in finalizers and self._blocked(obj):
            finalizers.append(_FOREGROUND)
        if key == CRDS and self._store.count(stored_at(obj)) and CLEANUP_FINALIZER not in finalizers:
            finalizers.append(CLEANUP_FINALIZER)
        holds = bool(finalizers) or key == NAMESPACES
        if not holds:
            return self._remove(key, obj)
        if not obj["metadata"].get("deletionTimestamp"):
            obj = self._store.put(key, _marked(key, obj, finalizers))
        self._terminate(key, obj)
        return obj

    def updated(self, key: Key, obj: Obj) -> None:
        """Finishes a deletion after the last finalizer is removed."""
        meta = obj["metadata"]
        if meta.get("deletionTimestamp") and not meta.get("finalizers") and key != NAMESPACES:
            self._remove(key, obj)
        elif meta.get("deletionTimestamp"):
            self._settle()

    def _terminate(self, key: Key, obj: Obj) -> None:
        meta = obj["metadata"]
        if key == NAMESPACES:
            for content_key in self._store.kinds():
                for content in self._store.objects(content_key, meta["name"]):
                    self._delete_again(content_key, content)
        elif key == CRDS:
            for content in self._store.objects(stored_at(obj)):
                self._delete_again(stored_at(obj), content)
        if _FOREGROUND in (meta.get("finalizers") or ()):
            for place in self._store.dependents(meta["uid"]):
                self._let_go_or_delete(place, meta["uid"], "Foreground")
        self._pending.append((key, meta.get("namespace") or "", meta["name"]))
        self._settle()

    def _delete_again(self, key: Key, listed: Obj) -> None:
        meta = listed["metadata"]
        current = self._store.get(key, meta.get("namespace"), meta["name"])
        if current is not None and not current["metadata"].get("deletionTimestamp"):
            self.delete(key, current)

    def _remove(self, key: Key, obj: Obj) -> Obj:
        last = self._store.remove(key, obj)
        meta = obj["metadata"]
        for place in self._store.dependents(meta["uid"]):
            self._let_go_or_delete(place, meta["uid"], "Background")
        for reference in meta.get("ownerReferences") or ():
            self._pending.extend(self._waiting_owner(meta.get("namespace"), reference))
        if meta.get("namespace"):
            self._pending.append((NAMESPACES, "", meta["namespace"]))
        crd = self._store.get(CRDS, None, f"{key[1]}.{key[0]}")
        if crd is not None:
            self._pending.append((CRDS, "", crd["metadata"]["name"]))
        self._settle()
        return last

    def _settle(self) -> None:
        """Deletes terminating objects that nothing holds any longer."""
        if self._settling:
            return
        self._settling = True
        try:
            while self._pending:
                key, namespace, name = self._pending.popleft()
                obj = self._store.get(key, namespace, name)
                if obj is not None and obj["metadata"].get("deletionTimestamp"):
                    self._settle_one(key, obj)
        finally:
            self._settling = False

    def _settle_one(self, key: Key, obj: Obj) -> None:
        meta = obj["metadata"]
        finalizers = list(meta.get("finalizers") or ())
        if _FOREGROUND in finalizers and not self._blocked(obj):
            finalizers.remove(_FOREGROUND)
        if CLEANUP_FINALIZER in finalizers and not self._store.count(stored_at(obj)):
            finalizers.remove(CLEANUP_FINALIZER)
        full = key == NAMESPACES and any(self._store.objects(kind, meta["name"]) for kind in self._store.kinds())
        if not finalizers and not full:
            self._remove(key, obj)
        elif finalizers != (meta.get("finalizers") or []):
            self._store.put(key, {**obj, "metadata": {**meta, "finalizers": finalizers}})

    def _blocked(self, obj: Obj) -> bool:
        uid = obj["metadata"]["uid"]
        for key, namespace, name in self._store.dependents(uid):
            dependent = self._store.get(key, namespace, name)
            references = (dependent or {}).get("metadata", {}).get("ownerReferences") or ()
            if any(reference["uid"] == uid and reference.get("blockOwnerDeletion") for reference in references):
                return True
        return False

    def _let_go_or_delete(self, place: Place, uid: str, policy: str) -> None:
        key, namespace, name = place
        obj = self._store.get(key, namespace, name)
        if obj is None or obj["metadata"].get("deletionTimestamp"):
            return
        others = [r for r in obj["metadata"].get("ownerReferences") or () if r["uid"] != uid]
        if any(self._owner_exists(obj, reference) for reference in others):
            self._let_go(place, uid)
        else:
            self.delete(key, obj, policy)

    def _let_go(self, place: Place, uid: str) -> None:
        key, namespace, name = place
        if obj := self._store.get(key, namespace, name):
            meta = dict(obj["metadata"])
            left = [reference for reference in meta.pop("ownerReferences", ()) if reference["uid"] != uid]
            if left:
                meta["ownerReferences"] = left
            self._store.put(key, {**obj, "metadata": meta})

    def _owner_exists(self, obj: Obj, reference: Obj) -> bool:
        resource = self._registry.by_kind(reference.get("apiVersion", ""), reference.get("kind", ""))
        if resource is None:
            return True  # a kind that is not served is not known to be gone
        namespace = obj["metadata"].get("namespace") if resource.namespaced else None
        owner = self._store.get(resource.key, namespace, reference.get("name", ""))
        return owner is not None and owner["metadata"]["uid"] == reference["uid"]

    def _waiting_owner(self, namespace: str | None, reference: Obj) -> list[Place]:
        resource = self._registry.by_kind(reference.get("apiVersion", ""), reference.get("kind", ""))
        if resource is None:
            return []
        return [(resource.key, (namespace or "") if resource.namespaced else "", reference.get("name", ""))]


def _marked(key: Key, obj: Obj, finalizers: list[str]) -> Obj:
    meta = {**obj["metadata"], "deletionTimestamp": now()}
    if finalizers:
        meta["finalizers"] = finalizers
    if key == NAMESPACES:
        return {**obj, "metadata": meta, "status": {**(obj.get("status") or {}), "phase": "Terminating"}}
    meta["deletionGracePeriodSeconds"] = 0
    if "generation" in meta:
        meta["generation"] += 1
    if key == CRDS:
        conditions = [c for c in obj["status"]["conditions"] if c["type"] != "Terminating"]
        why = {"reason": "InstanceDeletionInProgress", "message": "CustomResource deletion is in progress"}
        conditions.append({"type": "Terminating", "status": "True", **why, "lastTransitionTime": now()})
        return {**obj, "metadata": meta, "status": {**obj["status"], "conditions": conditions}}
    return {**obj, "metadata": meta}
