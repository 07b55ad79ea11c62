"""Provides a Kubernetes API with the shipped admission and roles, a local webhook, and users of a namespace.

Decision: the server is one of its own for this folder, because admission concerns the whole cluster. The Service of the
webhook leads to 127.0.0.1 by its external name, as there is no pod network.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

import rights
from apis import ApiKind, LocalApi, configuration_of, new_api
from e2e.waiting import until
from tarsy.http.admission.webhook import CONFIGURATION, Admission
from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.meta import API_VERSION
from tarsy_dev.objects import install_crds, manifest, put

SHOP, SYSTEM, LIBRARY = "shop", "tarsy-system", "tarsy-library"
OPERATOR = f"system:serviceaccount:{SYSTEM}:tarsy-operator"
RBAC = "rbac.authorization.k8s.io"
NEEDS_POLICIES = (1, 30)
SERVICE, CONFIGURED = manifest("base/admission.yaml")
POLICIES = [
    obj
    for name in ("accept", "approve", "author", "promote", "registrations", "review", "use")
    for obj in manifest(f"components/policies/{name}.yaml")
]
As = Callable[..., contextlib.AbstractAsyncContextManager[KubeClient]]


def binding(role: str, who: str, namespace: str = SHOP) -> dict[str, Any]:
    """Lets a group have a ClusterRole in a namespace."""
    return rights.binding(f"{role}-{who}", namespace, "ClusterRole", role, rights.group(who))


def thing(kind: str, name: str, **spec: Any) -> dict[str, Any]:
    """An object of one of these kinds in the shop, that says no more than it must."""
    least: dict[str, dict[str, Any]] = {
        "Alert": {"alertType": "PodCrash", "data": "it crashed"},
        "Investigation": {"alert": {"alertType": "PodCrash", "data": "it crashed"}},
        "ChatMessage": {"investigationRef": {"name": "crash"}, "question": "Why?"},
        "AlertSchedule": {"schedule": "0 7 * * *", "template": {"alertType": "PodCrash", "data": "check it"}},
    }
    meta = {"name": name, "namespace": SHOP}
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": meta, "spec": least[kind] | spec}


async def _install(api: LocalApi) -> None:
    async with await KubeClient.load(api.kubeconfig) as admin:
        await install_crds(admin)
        for name in (SHOP, SYSTEM, LIBRARY):
            await put(admin, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for name in ("base/people", "base/clusterrole", "library/users"):
            await rights.put_rights(admin, manifest(f"{name}.yaml"))
        for role, group in (("tarsy-viewer", "viewers"), ("tarsy-investigator", "on-call"), ("tarsy-author", "authors"),
                            ("tarsy-tracer", "tracers"), ("tarsy-promoter", "promoters"),
                            ("tarsy-approver", "approvers"), ("tarsy-tool-acceptor", "acceptors"),
                            ("tarsy-reviewer", "reviewers")):  # fmt: skip
            await rights.put_rights(admin, [binding(role, group)])


@pytest.fixture(scope="package")
def server(api_kind: ApiKind) -> Iterator[LocalApi]:
    """The API with roles and bindings, and no admission yet."""
    with new_api(api_kind) as server:
        asyncio.run(_install(server))
        yield server


@pytest.fixture
async def admin(server: LocalApi) -> AsyncIterator[KubeClient]:
    """Who may do everything; all that the test has made in the shop is gone at its end, and admission with it."""
    async with KubeClient(await configuration_of(server.kubeconfig)) as client:
        yield client
        await client.delete("MutatingWebhookConfiguration", None, CONFIGURATION)
        if server.version >= NEEDS_POLICIES:
            for obj in POLICIES:
                await client.delete(obj["kind"], None, obj["metadata"]["name"])
        await until("no admission is in force", lambda: _admits(client, stamped=False))
        for kind in (
            "Alert",
            "AlertSchedule",
            "Investigation",
            "ChatMessage",
            "Chain",
            "MCPServer",
            "ToolApproval",
            "Review",
        ):
            for obj in await client.list(kind, SHOP):
                await client.delete(kind, SHOP, obj["metadata"]["name"])


@pytest.fixture
def as_user(server: LocalApi) -> As:
    """A client that is somebody in some groups."""

    @contextlib.asynccontextmanager
    async def client(name: str, *groups: str) -> AsyncIterator[KubeClient]:
        async with await KubeClient.load(server.kubeconfig_for(name, groups)) as found:
            yield found

    return client


@pytest.fixture
async def webhook(server: LocalApi, admin: KubeClient, as_user: As) -> AsyncIterator[Admission]:
    """The webhook, installed and served with the operator's rights."""
    groups = ("system:serviceaccounts", f"system:serviceaccounts:{SYSTEM}")
    async with as_user(OPERATOR, *groups) as operator:
        await put(admin, CONFIGURED)
        async with serving(operator) as admission:
            await lead_to(admin, admission.port)
            await stamping(admin)
            yield admission


@contextlib.asynccontextmanager
async def serving(
    operator: KubeClient, *, files: Path | None = None, look_seconds: float = 30.0
) -> AsyncIterator[Admission]:
    """One replica of the webhook."""
    admission = Admission(operator, SYSTEM, host="127.0.0.1", port=0, files=files, look_seconds=look_seconds)
    task = asyncio.create_task(admission.run())
    try:
        async with asyncio.timeout(60):
            await admission.settled.wait()
        yield admission
    finally:
        task.cancel()
        await asyncio.wait([task], timeout=20)


async def lead_to(admin: KubeClient, port: int) -> None:
    """Makes the API server call this port."""
    await put(admin, SERVICE | {"spec": {"type": "ExternalName", "externalName": "127.0.0.1"}})
    found = await admin.get("MutatingWebhookConfiguration", None, CONFIGURATION)
    for hook in found["webhooks"]:
        hook["clientConfig"]["service"]["port"] = port
    await admin.replace(found)


async def stamping(admin: KubeClient) -> None:
    """Waits until the API server has seen the webhook, as it does through a watch of its own, and believes it."""

    await until("the webhook stamps", lambda: _admits(admin, stamped=True))


async def _admits(admin: KubeClient, *, stamped: bool) -> bool:
    """Whether an Alert without an author gets in, and gets one or none."""
    probe = thing("Alert", f"probe-{uuid4().hex[:8]}")
    try:
        made = await admin.create(probe)
    except ApiError:
        return False
    await admin.delete("Alert", SHOP, probe["metadata"]["name"])
    return ("author" in made["spec"]) is stamped


async def put_policies(admin: KubeClient) -> None:
    """The shipped policies with their bindings."""
    for obj in POLICIES:
        await put(admin, obj)
