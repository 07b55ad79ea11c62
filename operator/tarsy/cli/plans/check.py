"""Plans every chain of some files for each of its alert types (`tarsy plan` without an alert).

Decision: a chain is planned in its own namespace. A library chain is also planned in each namespace of the files that
has InvestigationDefaults and that it admits, because these can cause errors of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from tarsy.cli.plans.files import Identity, Manifests
from tarsy.plan.catalog import ResourceCatalog
from tarsy.plan.check import references
from tarsy.plan.errors import FieldPath, PlanError, PlanInvalid
from tarsy.plan.resolve import Explained, PlanRequest, defaults_for, explain_plan
from tarsy.plan.scope import admits
from tarsy.plan.select import NoChain, search_path, select
from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1 import KINDS
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.resources.v1alpha1.alert_route import AlertRoute
from tarsy.resources.v1alpha1.chain import Chain
from tarsy.resources.v1alpha1.investigation_defaults import DEFAULTS_NAME, InvestigationDefaults

ANY_TYPE = "Any"
"""Alert type of the plan of a chain that only chainRef leads to."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan of a chain, with its namespace and alert type (None: for a chainRef)."""

    chain: Chain
    namespace: str
    alert_type: str | None
    explained: Explained


def plan_all(
    manifests: Manifests, catalog: ResourceCatalog, library_namespace: str
) -> tuple[list[Planned], list[PlanError]]:
    """Plans every chain for every alert type; returns the plans and the errors.

    Args:
        manifests: the objects of the files.
        catalog: the same for the planner.
        library_namespace: the namespace of the library.
    """
    planned: list[Planned] = []
    errors: list[PlanError] = []
    objects = sorted(manifests.objects.values(), key=lambda obj: (obj.metadata.namespace, obj.metadata.name))
    for obj in objects:
        match obj:
            case Chain():
                for namespace in _namespaces(obj, objects, catalog, library_namespace):
                    if is_whole(obj, namespace, manifests, catalog, library_namespace):
                        made, wrong = _plans(obj, namespace, catalog, library_namespace)
                        planned += made
                        errors += wrong
            case AlertRoute():
                errors += _route_errors(obj, catalog, library_namespace)
            case _:
                pass
    return planned, errors


def is_whole(
    chain: Chain, namespace: str, manifests: Manifests, catalog: ResourceCatalog, library_namespace: str
) -> bool:
    """Returns whether all objects that a run of the chain uses are valid, so that its plan has only its own errors.

    Args:
        chain: the chain.
        namespace: the namespace of the run.
        manifests: the objects of the files.
        catalog: the same for the planner.
        library_namespace: the namespace of the library.
    """
    defaults = defaults_for(namespace, catalog, library_namespace)
    todo: list[AnyResource] = [chain, defaults] if defaults is not None else [chain]
    seen: set[Identity] = set()
    while todo:
        obj = todo.pop()
        seen.add((obj.KIND, obj.metadata.namespace, obj.metadata.name))
        for named in references(obj) - seen:
            seen.add(named)
            kind, place, name = named
            if (found := catalog.get(KINDS[kind], place, name)) is not None:
                todo.append(found)
    places = {(InvestigationDefaults.KIND, place, DEFAULTS_NAME) for place in search_path(namespace, library_namespace)}
    return not manifests.broken.keys() & (seen | places)


def check_table(planned: Iterable[Planned]) -> Table:
    """Renders the planned chains, one line per alert type."""
    made = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    for title in ("CHAIN", "RUNS IN", "ALERT TYPE"):
        made.add_column(title, overflow="fold")
    for title in ("STAGES", "AGENTS"):
        made.add_column(title, justify="right")
    for one in planned:
        stages = one.explained.plan.stages
        agents = sum(len(stage.agents) for stage in stages)
        words = (one.chain.key, one.namespace, one.alert_type or "(only where chainRef names it)")
        made.add_row(*(Text(word) for word in (*words, str(len(stages)), str(agents))))
    return made


def check_document(planned: Iterable[Planned]) -> dict[str, Any]:
    """Returns the planned chains for programs."""
    return {
        "plans": [
            {
                "chain": one.chain.key,
                "namespace": one.namespace,
                "alertType": one.alert_type,
                "planHash": one.explained.plan.digest,
            }
            for one in planned
        ]
    }


def _namespaces(
    chain: Chain, objects: Iterable[AnyResource], catalog: ResourceCatalog, library_namespace: str
) -> list[str]:
    own = chain.metadata.namespace
    if own != library_namespace:
        return [own]
    others = {
        obj.metadata.namespace
        for obj in objects
        if isinstance(obj, InvestigationDefaults) and obj.metadata.name == DEFAULTS_NAME
    }
    admitted = (place for place in others if admits(chain, place, catalog.namespace_labels(place)))
    return sorted({own, *admitted})


def _plans(
    chain: Chain, namespace: str, catalog: ResourceCatalog, library_namespace: str
) -> tuple[list[Planned], list[PlanError]]:
    planned: list[Planned] = []
    errors: list[PlanError] = []
    for alert_type in chain.spec.alert_types or (None,):
        try:
            explained = explain_plan(
                PlanRequest(
                    namespace=namespace,
                    alert=AlertContent(alert_type=alert_type or ANY_TYPE, data="-"),
                    chain=chain,
                    catalog=catalog,
                    library_namespace=library_namespace,
                    source=FieldPath.of(chain),
                )
            )
            planned.append(Planned(chain, namespace, alert_type, explained))
        except PlanInvalid as invalid:
            errors += invalid.errors
    return planned, errors


def _route_errors(route: AlertRoute, catalog: ResourceCatalog, library_namespace: str) -> Iterator[PlanError]:
    """Reports a route whose chain does not exist in the namespaces of its alerts, or does not admit them."""
    if route.spec.chain_ref is None:
        return
    at = FieldPath.of(route) / "chainRef" / "name"
    try:
        found = select(
            namespace=route.spec.namespace or route.metadata.namespace,
            alert=AlertContent(alert_type=route.spec.alert_type or ANY_TYPE, data="-"),
            catalog=catalog,
            library_namespace=library_namespace,
            chain_ref=(route.spec.chain_ref.name, at),
        )
    except PlanInvalid as invalid:
        yield from invalid.errors
        return
    if isinstance(found, NoChain):
        yield at.error(found.message.partition(": ")[2])
