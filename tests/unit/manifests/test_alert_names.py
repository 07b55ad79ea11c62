"""Every alert of the published rule sets leads to a chain of the library that would run; docs/library.md says which."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from for_each import for_each
from goldens import check
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.resolve import PlanRequest, resolve
from tarsy.plan.select import NoChain, select
from tarsy.resources.meta import API_VERSION, AnyResource
from tarsy.resources.v1alpha1 import KINDS, Agent, Chain
from tarsy.resources.v1alpha1.alert import AlertContent
from unit.manifests.shipped import LOADER, MANIFESTS, ROOT, documents, objects

PAGE = ROOT / "docs" / "library.md"
BEGIN, END = "<!-- table of alerts: begin -->", "<!-- table of alerts: end -->"
SETS: dict[str, dict[str, Any]] = yaml.load((ROOT / "tests/unit/manifests/alert_names.yaml").read_text("utf-8"), LOADER)
NAMES = sorted({name for one in SETS.values() for key in ("names", "info", "former") for name in one.get(key, ())})
INFO = sorted({name for one in SETS.values() for name in one.get("info", ())})


def _world() -> list[AnyResource]:
    model = documents(MANIFESTS / "samples" / "fill-in" / "llmprovider-local.yaml")
    found = [obj for obj in (*objects("library"), *model) if obj["apiVersion"] == API_VERSION]
    return [KINDS[obj["kind"]].model_validate(obj) for obj in found]


WORLD = _world()
CATALOG = ResourceCatalog(WORLD)
CHAINS = sorted((obj for obj in WORLD if isinstance(obj, Chain)), key=lambda chain: chain.metadata.name)
AGENTS = {obj.metadata.name: obj for obj in WORLD if isinstance(obj, Agent)}


def _select(alert_type: str, chain: str | None = None) -> Chain:
    alert = AlertContent.model_validate(
        {"alertType": alert_type, "data": "x", **({"chainRef": {"name": chain}} if chain else {})}
    )
    found = select(namespace="shop", alert=alert, catalog=CATALOG, library_namespace="tarsy-library")
    assert not isinstance(found, NoChain), found.message
    plan = resolve(
        PlanRequest(namespace="shop", alert=alert, chain=found, catalog=CATALOG, library_namespace="tarsy-library")
    )
    assert plan.stages
    return found


@for_each("name", NAMES)
def test_an_alert_of_a_published_rule_set_selects_a_chain_that_would_run(name: str) -> None:
    _select(name)


@pytest.mark.parametrize("name", INFO)
def test_an_alert_of_severity_info_takes_the_quick_chain(name: str) -> None:
    assert _select(name).metadata.name == "quick"


@pytest.mark.parametrize("chain", ["default", "quick", "alert-storm"])
def test_an_alert_of_an_unknown_type_runs_the_chain_that_it_names(chain: str) -> None:
    assert _select("NobodyKnowsThis", chain).metadata.name == chain


def test_the_quick_chain_is_cheap() -> None:
    (quick,) = (chain for chain in CHAINS if chain.metadata.name == "quick")
    first, look = quick.spec.stages
    assert first.changes is not None and first.changes.stop_when == "Certain"
    assert (len(look.agents), look.max_iterations) == (1, 5)
    assert quick.spec.executive_summary is not None and quick.spec.executive_summary.enabled is False


def test_each_family_has_a_specialist_of_its_own_and_a_runbook() -> None:
    families = [chain for chain in CHAINS if chain.spec.alert_types and chain.metadata.name != "quick"]
    specialists = [_specialist(chain) for chain in families]
    assert len(families) == len(set(specialists)) == 8
    assert all(chain.spec.runbook is not None and chain.spec.runbook.inline for chain in families)


def test_no_alert_type_is_claimed_twice() -> None:
    claimed = [name for chain in CHAINS for name in chain.spec.alert_types]
    assert len(claimed) == len(set(claimed))


def test_a_set_states_its_source_and_version() -> None:
    assert all(one["source"] and one["version"] for one in SETS.values())


def test_the_page_lists_every_alert_with_its_chain_and_specialist(request: pytest.FixtureRequest) -> None:
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    check(PAGE, "\n".join((f"{before}{BEGIN}", "", *_table(), "", f"{END}{after}")), request)


def _specialist(chain: Chain) -> str:
    """The first agent of a chain."""
    return next(stage.agents[0].name for stage in chain.spec.stages if stage.agents)


def _sets(name: str) -> str:
    found = [title for title, one in SETS.items() if any(name in one.get(key, ()) for key in ("names", "info"))]
    former = [f"{title}, formerly" for title, one in SETS.items() if name in one.get("former", ())]
    return "; ".join(found + former) or "applications"


def _table() -> Iterator[str]:
    yield "| alert | rule set | chain | specialist |"
    yield "|---|---|---|---|"
    rows = [(name, chain) for chain in CHAINS for name in chain.spec.alert_types]
    for name, chain in sorted(rows, key=lambda row: row[0].lower()):
        yield f"| {name} | {_sets(name)} | `{chain.metadata.name}` | `{_specialist(chain)}` |"
