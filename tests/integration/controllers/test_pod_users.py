"""Who chooses the user of pods: the cluster where it has security context constraints, as OpenShift."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from apis import ApiKind, configuration_of, new_api
from e2e.waiting import until
from tarsy.controllers.tool_workloads.pod_users import assigned
from tarsy.kube.client import ApiError, KubeClient
from tarsy_dev.objects import put

GROUP = "security.openshift.io"
CONSTRAINTS: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": f"securitycontextconstraints.{GROUP}"},
    "spec": {
        "group": GROUP,
        "scope": "Cluster",
        "names": {
            "kind": "SecurityContextConstraints",
            "plural": "securitycontextconstraints",
            "singular": "securitycontextconstraints",
            "listKind": "SecurityContextConstraintsList",
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}


@pytest.fixture
async def admin(api_kind: ApiKind) -> AsyncIterator[KubeClient]:
    """A cluster of its own, because what it serves is changed."""
    with new_api(api_kind) as api:
        async with KubeClient(await configuration_of(api.kubeconfig)) as client:
            yield client


async def test_a_cluster_with_security_context_constraints_assigns_users(admin: KubeClient) -> None:
    assert not await assigned(admin, "Auto")
    assert await assigned(admin, "Assigned")
    await put(admin, CONSTRAINTS)
    await until("the group is served", lambda: assigned(admin, "Auto"))
    assert not await assigned(admin, "Fixed")


@pytest.mark.once("no Kubernetes API takes part")
@pytest.mark.parametrize(("status", "known"), [(403, True), (404, True), (0, False), (503, False)])
async def test_a_cluster_that_does_not_answer_is_asked_again(status: int, known: bool) -> None:
    class Refusing(KubeClient):
        def __init__(self) -> None:
            pass

        async def read(self, target: str, query: Any = None) -> dict[str, Any]:
            raise ApiError(status, "", "no")

    if known:
        assert not await assigned(Refusing(), "Auto")
        return
    with pytest.raises(ApiError):
        await assigned(Refusing(), "Auto")
