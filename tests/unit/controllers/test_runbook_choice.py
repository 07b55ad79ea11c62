"""Which runbook an investigation gets: the alert's, that of its namespace, or that of its chain."""

from typing import Any, cast

import pytest

from tarsy.controllers.machinery.cache import Cache
from tarsy.controllers.runs.inputs import (
    MAX_RUNBOOK_BYTES,
    RUNBOOK_LABEL,
    NotYet,
    TextSources,
    default_runbook,
    local_runbook,
)
from tarsy.kube.client import ApiError, KubeClient
from tarsy.plan.errors import FieldPath
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1 import Chain, InvestigationDefaults
from tarsy.resources.v1alpha1.alert import AlertContent
from unit.controllers.builders import raw

TEAM, LIBRARY = "team-a", "library"
LABELLED = {RUNBOOK_LABEL: "true"}


class Api:
    """Plays the Kubernetes API: ConfigMaps by namespace and name, or a refusal."""

    def __init__(self, found: dict[tuple[str, str], dict[str, Any]], refused: str = "") -> None:
        self.found, self.refused = found, refused
        self.asked: list[tuple[str | None, str]] = []

    async def find(self, kind: str, namespace: str | None, name: str) -> dict[str, Any] | None:
        self.asked.append((namespace, name))
        if self.refused:
            raise ApiError(403, self.refused, "no")
        return self.found.get((namespace or "", name))


def config_map(text: str = "the team's", labels: Any = LABELLED, key: str = "runbook.md") -> dict[str, Any]:
    return {"metadata": {"labels": labels}, "data": {key: text}}


def chain(namespace: str = LIBRARY, runbook: Any = "the chain's") -> Chain:
    spec: dict[str, Any] = {"stages": [{"name": "s", "agents": [{"name": "a"}]}]}
    own = {"runbook": {"inline": runbook}} if runbook else {}
    return parse_as(Chain, raw("Chain", "storage", spec | own, namespace=namespace))


def cache(*namespaces: str) -> Cache:
    """InvestigationDefaults with a runbook in some namespaces."""
    made = Cache()
    for namespace in namespaces:
        spec = {"runbook": {"inline": f"the default of {namespace}"}}
        made.put(raw(InvestigationDefaults.KIND, "default", spec, namespace=namespace, uid=f"uid-{namespace}"))
    return made


def api(found: Any = None, refused: str = "") -> Api:
    return Api({(TEAM, "tarsy-runbook-storage"): found} if found else {}, refused)


async def choose(chain: Chain, defaults: Cache, client: Api) -> str:
    return await default_runbook(TEAM, chain, defaults, TextSources(cast(KubeClient, client)), LIBRARY)


@pytest.mark.parametrize(
    ("of", "defaults", "found", "chosen"),
    [
        (chain(), cache(), None, "the chain's"),
        (chain(), cache(LIBRARY), None, "the chain's"),
        (chain(), cache(TEAM, LIBRARY), None, "the default of team-a"),
        (chain(), cache(TEAM, LIBRARY), config_map(), "the team's"),
        (chain(), cache(), config_map(labels={"other": "true"}), "the chain's"),
        (chain(), cache(), config_map(labels=None), "the chain's"),
        (chain(TEAM), cache(TEAM), config_map(), "the chain's"),
        (chain(runbook=None), cache(LIBRARY), config_map(), "the default of library"),
        (chain(runbook=None), cache(), None, ""),
    ],
)
async def test_the_nearest_namespace_decides_and_in_it_the_chain(
    of: Chain, defaults: Cache, found: Any, chosen: str
) -> None:
    assert await choose(of, defaults, api(found)) == chosen


async def test_the_runbook_of_an_alert_goes_before_all_others() -> None:
    alert = AlertContent.model_validate({"alertType": "x", "data": "y", "runbook": {"inline": "the alert's"}})
    client = api(config_map())
    at = FieldPath("Alert", TEAM, "one")
    text = await local_runbook(alert, at, chain(), cache(TEAM), TextSources(cast(KubeClient, client)), LIBRARY)
    assert (text, client.asked) == ("the alert's", [])


async def test_a_chain_without_a_runbook_reads_no_config_map() -> None:
    client = api(config_map())
    await choose(chain(runbook=None), cache(), client)
    await choose(chain(TEAM), cache(), client)
    assert client.asked == []


async def test_a_config_map_that_may_not_be_read_is_no_replacement() -> None:
    assert await choose(chain(), cache(), api(refused="Forbidden")) == "the chain's"
    with pytest.raises(ApiError):
        await choose(chain(), cache(), api(refused="InternalError"))


@pytest.mark.parametrize(
    ("found", "reason"),
    [
        (config_map(key="other"), "ConfigMapKeyMissing"),
        (config_map("  "), "ConfigMapKeyEmpty"),
        (config_map("x" * (MAX_RUNBOOK_BYTES + 1)), "ConfigMapTooLarge"),
    ],
)
async def test_a_labelled_config_map_that_cannot_be_used_is_named(found: Any, reason: str) -> None:
    with pytest.raises(NotYet) as raised:
        await choose(chain(), cache(), api(found))
    assert raised.value.reason == reason
    assert "ConfigMap team-a/tarsy-runbook-storage" in raised.value.message


async def test_a_labelled_config_map_of_the_greatest_size_is_used() -> None:
    assert len(await choose(chain(), cache(), api(config_map("x" * MAX_RUNBOOK_BYTES)))) == MAX_RUNBOOK_BYTES
