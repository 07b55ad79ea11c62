"""Which chain an alert takes, and from which namespaces an object may be used."""

from __future__ import annotations

from typing import Any

import pytest

from for_each import for_each
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.errors import FieldPath, PlanInvalid
from tarsy.plan.scope import admits
from tarsy.plan.select import NoChain, select
from tarsy.resources.v1alpha1 import Chain
from tarsy.resources.v1alpha1.alert import AlertSpec
from unit.plan.builders import LIBRARY, OPEN, TEAM, alert, chain, server

LABELS = {"env": "prod", "team": "a"}


def chosen(
    chains: list[Chain], what: AlertSpec | None = None, library: str | None = LIBRARY, **rest: Any
) -> Chain | NoChain:
    catalog = ResourceCatalog(chains, {TEAM: LABELS})
    return select(namespace=TEAM, alert=what or alert(), catalog=catalog, library_namespace=library, **rest)


def key(found: Chain | NoChain) -> str:
    assert isinstance(found, Chain), found
    return found.key


def test_the_chain_of_the_alerts_type_is_taken_from_the_runs_namespace_first() -> None:
    theirs = chain("shared", LIBRARY, allowedNamespaces=OPEN)
    assert key(chosen([chain(), chain("x", alertTypes=["Other"]), theirs])) == "team-a/pods"
    assert key(chosen([chain("x", alertTypes=["Other"]), theirs])) == "library/shared"


def test_a_named_chain_is_taken_whatever_the_type() -> None:
    named = alert(chainRef={"name": "x"})
    own, theirs = chain("x", alertTypes=[]), chain("x", LIBRARY, allowedNamespaces=OPEN)
    assert key(chosen([chain(), own, theirs], named)) == "team-a/x"
    assert key(chosen([chain(), theirs], named)) == "library/x"


def test_the_investigations_chain_goes_before_the_alerts() -> None:
    at = FieldPath("Investigation", TEAM, "run") / "chainRef" / "name"
    assert key(chosen([chain("x"), chain("y")], alert(chainRef={"name": "x"}), chain_ref=("y", at))) == "team-a/y"


def test_an_alert_without_a_chain_waits() -> None:
    found = chosen([chain("x", alertTypes=["Other"])])
    assert isinstance(found, NoChain)
    assert "no Chain in namespace team-a or library has PodCrash in its spec.alertTypes yet" in found.message


def test_an_alert_whose_named_chain_is_not_there_waits_for_it() -> None:
    found = chosen([chain()], alert(chainRef={"name": "later"}))
    assert isinstance(found, NoChain)
    assert found.message == "spec.chainRef.name: there is no Chain later in namespace team-a or library yet; create it"


def test_an_alert_waits_while_the_library_chain_of_its_type_is_closed_and_learns_why() -> None:
    found = chosen([chain(namespace=LIBRARY)])
    assert isinstance(found, NoChain)
    assert "Chain library/pods may not be used from namespace team-a" in found.message


def test_a_named_chain_that_is_closed_is_an_error() -> None:
    with pytest.raises(PlanInvalid, match=r"spec\.chainRef\.name: .*spec\.allowedNamespaces"):
        chosen([chain(namespace=LIBRARY)], alert(chainRef={"name": "pods"}))


def test_two_chains_that_claim_one_type_are_an_error_that_names_both() -> None:
    with pytest.raises(PlanInvalid, match="the chains a, b of namespace team-a all claim alert type PodCrash"):
        chosen([chain("b"), chain("a")])


def test_two_chains_that_claim_one_type_in_different_namespaces_are_none() -> None:
    assert key(chosen([chain(), chain(namespace=LIBRARY, allowedNamespaces=OPEN)])) == "team-a/pods"


def test_without_a_library_only_the_runs_namespace_counts() -> None:
    assert isinstance(chosen([chain(namespace=LIBRARY, allowedNamespaces=OPEN)], library=None), NoChain)


def _selector(**selector: Any) -> dict[str, Any]:
    return {"from": "Selector", "selector": selector}


def _expression(operator: str, *values: str, name: str = "env") -> dict[str, Any]:
    return _selector(matchExpressions=[{"key": name, "operator": operator, "values": list(values)}])


@for_each(
    ("allowed", "admitted"),
    [
        (None, False),
        ({"from": "None"}, False),
        ({"from": "All"}, True),
        (_selector(), True),
        (_selector(matchLabels={"env": "prod"}), True),
        (_selector(matchLabels={"env": "prod", "team": "b"}), False),
        (_selector(matchLabels={"kubernetes.io/metadata.name": TEAM}), True),
        (_expression("In", "prod", "test"), True),
        (_expression("In", "test"), False),
        (_expression("In", "x", name="absent"), False),
        (_expression("NotIn", "prod"), False),
        (_expression("NotIn", "test"), True),
        (_expression("NotIn", "x", name="absent"), True),
        (_expression("Exists"), True),
        (_expression("Exists", name="absent"), False),
        (_expression("DoesNotExist"), False),
        (_expression("DoesNotExist", name="absent"), True),
        (
            _selector(
                matchLabels={"env": "prod"}, matchExpressions=[{"key": "team", "operator": "NotIn", "values": ["a"]}]
            ),
            False,
        ),
    ],
)
def test_allowed_namespaces(allowed: dict[str, Any] | None, admitted: bool) -> None:
    labels = ResourceCatalog(namespaces={TEAM: LABELS}).namespace_labels(TEAM)
    shared = server(namespace=LIBRARY, **({} if allowed is None else {"allowedNamespaces": allowed}))
    assert admits(shared, TEAM, labels) is admitted
    assert admits(shared, LIBRARY, {}) is True


def test_a_namespace_nothing_is_known_of_is_selected_by_its_name_alone() -> None:
    labels = ResourceCatalog().namespace_labels("new")
    assert admits(server(namespace=LIBRARY, allowedNamespaces=_expression("Exists")), "new", labels) is False
