"""Assembles the objects behind one embedded API: store, kinds, roles, lifecycle, writes, request handling.

The state outlives the listening socket: an outage (`stop_apiserver`) closes only the socket.
"""

from __future__ import annotations

from pathlib import Path

from embedded_kubeapi.admission.chain import Chain
from embedded_kubeapi.admission.policies import Policies
from embedded_kubeapi.admission.webhooks import Webhooks
from embedded_kubeapi.auth.escalation import Escalation
from embedded_kubeapi.auth.front_proxy import front_proxy_objects
from embedded_kubeapi.auth.rbac import Aggregation, Rbac
from embedded_kubeapi.auth.roles import bootstrap_objects
from embedded_kubeapi.auth.tokens import TokenIssuer
from embedded_kubeapi.builtin.catalog import builtin_resources
from embedded_kubeapi.builtin.strategies import strategy_of
from embedded_kubeapi.crds import CrdServing
from embedded_kubeapi.http.app import App, Parts
from embedded_kubeapi.http.proxy import FrontProxy, Proxy
from embedded_kubeapi.journal import Journal
from embedded_kubeapi.lifecycle import NAMESPACES, Lifecycle
from embedded_kubeapi.objects import Obj, new_uid, now
from embedded_kubeapi.pki import Pki
from embedded_kubeapi.registry import Registry
from embedded_kubeapi.store import Store
from embedded_kubeapi.writes import Writes


class Cluster:
    """The complete API without its socket; must be created on the loop that serves it.

    Args:
        keep: the file in which objects outlive the process; None to forget them.
        log_size: how many events a watch can go back.

    Raises:
        JournalInUse: another process has the file.
    """

    def __init__(self, pki: Pki, keep: Path | None, log_size: int) -> None:
        self.store = Store(log_size)
        self._journal = Journal(keep) if keep else None
        if self._journal:
            self._journal.open(self.store)
        self.registry = Registry(builtin_resources())
        CrdServing(self.store, self.registry)
        self._lifecycle = Lifecycle(self.store, self.registry, pki.path("ca.crt").read_text())
        rbac = Rbac(self.store)
        self._webhooks = Webhooks(self.store, rbac)
        admission = Chain([Escalation(self.store, rbac), self._webhooks, Policies(self.store, self.registry, rbac)])
        self.writes = Writes(self.store, self.registry, self._lifecycle, admission)
        self._furnish(pki)
        Aggregation(self.store)
        front = FrontProxy(pki.path("front-proxy-client.crt"), pki.path("front-proxy-client.key"))
        self.proxy = Proxy(self.store, front)
        parts = Parts(self.store, self.registry, self.writes, rbac, TokenIssuer(self.store), self.proxy)
        self.app = App(parts)
        self.proxy.check_all()

    async def close(self) -> None:
        """Stops the background tasks and closes the file."""
        await self.proxy.close()
        await self._webhooks.close()
        if self._journal:
            self._journal.close()

    def _furnish(self, pki: Pki) -> None:
        for obj in bootstrap_objects():
            self._put(obj, anew=False)
        for namespace in self.store.objects(NAMESPACES):
            self._lifecycle.furnish(namespace["metadata"]["name"])
        for obj in front_proxy_objects(pki):
            self._put(obj, anew=True)

    def _put(self, obj: Obj, *, anew: bool) -> None:
        """Stores an object if it does not exist; with `anew` it replaces a kept one."""
        resource = self.registry.by_kind(obj["apiVersion"], obj["kind"])
        if resource is None:
            raise LookupError(f"{obj['kind']} is not a built-in kind")
        meta = obj["metadata"]
        found = self.store.get(resource.key, meta.get("namespace"), meta["name"])
        if found is None or anew:
            own = {key: found["metadata"][key] for key in ("uid", "creationTimestamp")} if found else {}
            made = {**obj, "metadata": {"uid": new_uid(), "creationTimestamp": now(), **meta, **own}}
            strategy_of(resource.key).complete(made, None)
            self.store.put(resource.key, made)
