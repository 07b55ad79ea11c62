"""Pods on OpenShift name no user and no group, and are otherwise the same."""

import copy
import shutil
from typing import Any

import pytest
from hack.chart.rendering import kustomized

pytestmark = pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl renders the manifests")
larger = pytest.mark.heavy("kubectl renders the base beside it")
COMPONENTS = (
    "components/git-fetcher",
    "components/github-tools",
    "components/gitlab-tools",
    "components/grafana-tools",
    "components/kubernetes-mcp-tools",
    "components/loki-tools",
    "components/prometheus-tools",
)
IDENTITY = ("runAsUser", "runAsGroup", "fsGroup")


@pytest.mark.parametrize(
    "overlay",
    [
        "base",
        pytest.param("overlays/workers", marks=larger),
        pytest.param("overlays/ha", marks=larger),
    ],
)
def test_openshift_chooses_the_user_of_every_pod_and_nothing_else_changes(overlay: str) -> None:
    usual = kustomized((overlay, "library"), COMPONENTS)
    there = kustomized((overlay, "library"), (*COMPONENTS, "components/openshift"))
    assert set(usual) == set(there)
    deployments = 0
    for key, obj in usual.items():
        wanted: dict[str, Any] = copy.deepcopy(dict(obj))
        if key[1] == "Deployment":
            deployments += 1
            security = wanted["spec"]["template"]["spec"]["securityContext"]
            assert [security.pop(name) for name in IDENTITY] == [65532] * 3
            assert security == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
        assert there[key] == wanted
    assert deployments == len(COMPONENTS) + 2 + (overlay != "base")
