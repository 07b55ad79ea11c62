"""Runs the health checks shipped for Argo CD and Flux over TARSy's statuses.

Argo CD's scripts run in a Lua of the tests' own (lupa); Flux's expressions in the embedded API's CEL. As in Flux, an
expression that fails for want of a field counts as not there yet.
"""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from embedded_kubeapi.cel import CelError, compile_program
from tarsy.controllers.configuration import validate
from tarsy.plan.errors import PlanError
from tarsy.resources.v1alpha1 import KINDS, Chain, ConfigStatus
from unit.manifests.shipped import MANIFESTS, documents, objects

PREFIX = "resource.customizations.health.tarsy.dev_"
CONFIGURATION = {
    name for name, kind in KINDS.items() if issubclass(kind.model_fields["status"].annotation, ConfigStatus)
}
NOW = datetime(2026, 1, 1, tzinfo=UTC)
(ARGO,) = documents(MANIFESTS / "gitops" / "argocd.yaml")
APPLICATIONS = documents(MANIFESTS / "gitops" / "applications.yaml")
FLUX = documents(MANIFESTS / "gitops" / "flux.yaml")
MISSING = (
    PlanError("Chain", "tarsy-library", "kubernetes", "spec.llmProvider", "there is no LLMProvider default"),
    "X",
)


def chain(*errors: tuple[PlanError, str], seen: int | None = 3) -> dict[str, Any]:
    """The shipped chain at generation 3, with the status of the generation that TARSy has seen, if any."""
    (shipped,) = (
        obj for obj in objects("library") if (obj["kind"], obj["metadata"]["name"]) == ("Chain", "kubernetes")
    )
    found = {**shipped, "metadata": {**shipped["metadata"], "generation": 3}}
    if seen is not None:
        obj = Chain.model_validate({**found, "metadata": {**found["metadata"], "generation": seen}})
        found["status"] = validate(obj, errors, NOW).to_dict()
    return found


def unknown() -> dict[str, Any]:
    """A chain of which TARSy does not know yet whether it is Ready."""
    found = chain()
    found["status"]["conditions"][0]["status"] = "Unknown"
    return found


CASES = [
    pytest.param(chain(), "Healthy", id="ready"),
    pytest.param(chain(MISSING), "Degraded", id="not-ready"),
    pytest.param(chain(seen=2), "Progressing", id="ready-before-a-change"),
    pytest.param(chain(MISSING, seen=2), "Progressing", id="not-ready-before-a-change"),
    pytest.param(chain(seen=None), "Progressing", id="never-seen"),
    pytest.param(unknown(), "Progressing", id="unknown"),
]


def as_lua(value: Any, lua: Any) -> Any:
    """A JSON value as Argo CD hands it to a script."""
    if isinstance(value, dict):
        return lua.table_from({key: as_lua(item, lua) for key, item in value.items()})
    return lua.table_from([as_lua(item, lua) for item in value]) if isinstance(value, list) else value


@pytest.mark.parametrize(("obj", "health"), CASES)
def test_argo_cd_calls_a_chain_as_healthy_as_it_is(obj: dict[str, Any], health: str) -> None:
    lua = pytest.importorskip("lupa", reason="no Lua for Argo CD's health checks").LuaRuntime()
    lua.globals().obj = as_lua(obj, lua)
    found = lua.execute(ARGO["data"][PREFIX + "Chain"])
    assert found.status == health
    assert found.message
    if health == "Degraded":
        assert found.message == "spec.llmProvider: there is no LLMProvider default"


def test_argo_cd_asks_each_kind_of_configuration_the_same_and_no_other() -> None:
    assert {key.removeprefix(PREFIX) for key in ARGO["data"]} == CONFIGURATION
    assert len({text for key, text in ARGO["data"].items() if key != PREFIX + "Chain"}) == 1


@pytest.mark.parametrize(("obj", "health"), CASES)
def test_flux_waits_until_a_chain_is_ready_as_it_is_now(obj: dict[str, Any], health: str) -> None:
    program = compile_program(flux_checks()["Chain"]["current"], ("metadata", "spec", "status"))
    try:
        current = program.evaluate({key: value for key, value in obj.items() if key in ("metadata", "spec", "status")})
    except (CelError, KeyError):
        current = False
    assert current == (health == "Healthy")


def test_flux_asks_each_kind_of_configuration_the_same_and_gives_none_up() -> None:
    checks = flux_checks()
    assert set(checks) == CONFIGURATION
    assert {tuple(sorted(check)) for check in checks.values()} == {("apiVersion", "current", "kind")}
    assert {check["apiVersion"] for check in checks.values()} == {"tarsy.dev/v1alpha1"}
    assert len({check["current"] for kind, check in checks.items() if kind != "Chain"}) == 1


def test_flux_applies_the_kinds_before_objects_of_them() -> None:
    product, library = FLUX
    assert library["spec"]["dependsOn"] == [{"name": product["metadata"]["name"]}]
    assert all(part["spec"]["wait"] and part["spec"]["prune"] for part in FLUX)
    for part in FLUX:
        assert (MANIFESTS.parent / part["spec"]["path"] / "kustomization.yaml").is_file()


def test_no_other_condition_than_those_of_configuration_decides() -> None:
    text = ARGO["data"][PREFIX + "Chain"] + flux_checks()["Chain"]["current"]
    assert set(re.findall(r"type == [\"'](\w+)", text)) == {"Ready", "Promoted"}


def flux_checks() -> dict[str, dict[str, str]]:
    """Flux's checks by kind."""
    _, library = FLUX
    return {check["kind"]: check for check in library["spec"]["healthCheckExprs"]}


def test_the_applications_of_argo_cd_sync_the_product_before_its_configuration() -> None:
    first, second = sorted(
        APPLICATIONS, key=lambda one: int(one["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"])
    )
    assert [one["metadata"]["name"] for one in (first, second)] == ["tarsy", "tarsy-library"]
    for one in (first, second):
        spec = one["spec"]
        folder = MANIFESTS.parent / spec["source"]["path"]
        assert (folder / "kustomization.yaml").is_file()
        assert spec["source"]["kustomize"]["images"][0].startswith("tarsy-operator=")
        assert "ServerSideApply=true" in spec["syncPolicy"]["syncOptions"]
    assert [one["spec"]["destination"]["namespace"] for one in (first, second)] == ["tarsy-system", "tarsy-library"]


def test_argo_cd_leaves_alone_what_the_operator_writes_and_nothing_else() -> None:
    ignored = {(one["group"], one["kind"], one["name"]) for one in APPLICATIONS[0]["spec"]["ignoreDifferences"]}
    base = objects("base")
    written = {
        (obj["apiVersion"].partition("/")[0], obj["kind"], obj["metadata"]["name"])
        for obj in base
        if obj["kind"] in ("MutatingWebhookConfiguration", "APIService")
    }
    assert ignored == written
    paths = [
        path
        for one in APPLICATIONS[0]["spec"]["ignoreDifferences"]
        for path in one.get("jqPathExpressions", []) + one.get("jsonPointers", [])
    ]
    assert len(paths) == 2 and all("caBundle" in path for path in paths)
    assert "ignoreDifferences" not in APPLICATIONS[1]["spec"]
