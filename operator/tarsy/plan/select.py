"""Selects the chain for an alert.

Decision: an alert type belongs to one chain of a namespace. Two that claim it are an error
that names both; the alert never guesses. No chain at all is no error: the alert waits for one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tarsy.plan.catalog import Catalog
from tarsy.plan.errors import FieldPath, PlanInvalid
from tarsy.plan.scope import admits, scope_refusal
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.resources.v1alpha1.chain import Chain
from tarsy.resources.v1alpha1.investigation_defaults import DEFAULTS_NAME, InvestigationDefaults


@dataclass(frozen=True, slots=True)
class NoChain:
    """No chain exists for the alert yet; `message` states what to create.

    `default` is the chain that its namespace has for such alerts; None: it has none, or the alert names a chain.
    """

    message: str
    default: Chain | None = None


def search_path(namespace: str, library_namespace: str | None) -> tuple[str, ...]:
    """Returns the namespaces in which a run's own references are looked up, in order."""
    if not library_namespace or library_namespace == namespace:
        return (namespace,)
    return (namespace, library_namespace)


def select(
    *,
    namespace: str,
    alert: AlertContent,
    catalog: Catalog,
    library_namespace: str | None,
    source: FieldPath | None = None,
    chain_ref: tuple[str, FieldPath] | None = None,
) -> Chain | NoChain:
    """Selects the chain for an alert.

    Args:
        namespace: the run's.
        alert: the alert, with its type and, it may be, a chain's name.
        catalog: the objects there are.
        library_namespace: where shared chains are, or None.
        source: where the alert stands, for errors (the spec of an Alert, or an Investigation's `spec.alert`).
        chain_ref: a chain's name that goes before the alert's own, and the field that names it.

    Raises:
        PlanInvalid: the named chain does not admit the namespace, or several chains claim the alert's type.
    """
    at = source or FieldPath("Alert", namespace, "")
    path = search_path(namespace, library_namespace)
    if chain_ref is None and alert.chain_ref is not None:
        chain_ref = (alert.chain_ref.name, at / "chainRef" / "name")
    if chain_ref is not None:
        return _by_name(*chain_ref, path, catalog)
    found = _by_type(alert.alert_type, at / "alertType", path, catalog)
    return _with_default(found, path, catalog) if isinstance(found, NoChain) else found


def _with_default(nothing: NoChain, path: tuple[str, ...], catalog: Catalog) -> NoChain:
    """Adds the default chain that the namespace's own InvestigationDefaults name, or why it cannot be used."""
    defaults = catalog.get(InvestigationDefaults, path[0], DEFAULTS_NAME)
    if defaults is None or defaults.spec.default_chain is None:
        return nothing
    try:
        chain = _by_name(defaults.spec.default_chain, FieldPath.of(defaults) / "defaultChain", path, catalog)
    except PlanInvalid as error:
        return replace(nothing, message=f"{nothing.message}; {error}")
    if isinstance(chain, NoChain):
        return replace(nothing, message=f"{nothing.message}; InvestigationDefaults default: {chain.message}")
    return replace(nothing, default=chain)


def claimants(catalog: Catalog, namespace: str, alert_type: str) -> list[Chain]:
    """Returns the chains that claim an alert type, sorted by name.

    Args:
        catalog: the known objects.
        namespace: of the chains.
        alert_type: the type.
    """
    chains = [chain for chain in catalog.list(Chain, namespace) if alert_type in chain.spec.alert_types]
    return sorted(chains, key=lambda chain: chain.metadata.name)


def _by_name(name: str, at: FieldPath, path: tuple[str, ...], catalog: Catalog) -> Chain | NoChain:
    for namespace in path:
        chain = catalog.get(Chain, namespace, name)
        if chain is None:
            continue
        if not admits(chain, path[0], catalog.namespace_labels(path[0])):
            raise PlanInvalid([at.error(scope_refusal(chain, path[0]))])
        return chain
    return NoChain(f"{at.path}: there is no Chain {name} in namespace {' or '.join(path)} yet; create it")


def _by_type(alert_type: str, at: FieldPath, path: tuple[str, ...], catalog: Catalog) -> Chain | NoChain:
    labels = catalog.namespace_labels(path[0])
    closed: list[Chain] = []
    for namespace in path:
        chains = claimants(catalog, namespace, alert_type)
        if not any(admits(chain, path[0], labels) for chain in chains):
            closed += chains
            continue
        if len(chains) > 1:
            names = ", ".join(chain.metadata.name for chain in chains)
            raise PlanInvalid(
                [
                    at.error(
                        f"the chains {names} of namespace {namespace} all claim alert type {alert_type}; "
                        "keep it in the spec.alertTypes of one of them, or name one in chainRef"
                    )
                ]
            )
        return chains[0]
    if closed:
        return NoChain(f"{at.path}: {scope_refusal(closed[0], path[0])}")
    return NoChain(
        f"{at.path}: no Chain in namespace {' or '.join(path)} has {alert_type} in its spec.alertTypes yet; "
        "create one, or name a Chain in chainRef"
    )
