"""Resolves the template of a Chain's plans, and computes the digest that identifies a revision.

The template is the plan of a run in the Chain's own namespace, for an alert that brings nothing. It covers stages,
Agents, MCPServers and LLMProviders, as runs are planned by.

Decision: the digest leaves out what does not decide how good an investigation is: generations and uids (a revert is the
same revision again), prices, concurrency, which tools are approved, and the masking of the namespace: for each of them
the current one holds. Fields
with their default are left out as well, so that a release which adds a field makes no new revisions.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TypeVar

import orjson

from tarsy.plan.catalog import Catalog
from tarsy.plan.model import ObjectRef, Plan, ProviderPlan, ServerPlan
from tarsy.plan.model._reference import FrozenModel
from tarsy.plan.resolve import PlanRequest, resolve
from tarsy.plan.revision.snapshot import Snapshot
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.resources.v1alpha1.chain import Chain

_M = TypeVar("_M", bound=FrozenModel)

ANY_ALERT = AlertContent(alert_type="Any", data="-")
"""An alert that brings no tools and no runbook."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A revision of a Chain."""

    digest: str
    """SHA-256 of the template, as hex."""
    snapshot: Snapshot
    """The objects that the template was resolved from."""


def template(chain: Chain, catalog: Catalog, library_namespace: str | None) -> Plan:
    """Resolves the template of a Chain's plans.

    Args:
        chain: the Chain.
        catalog: the known objects.
        library_namespace: where shared objects are, or None.

    Raises:
        PlanInvalid: with every error.
    """
    return resolve(
        PlanRequest(
            namespace=chain.metadata.namespace,
            alert=ANY_ALERT,
            chain=chain,
            catalog=catalog,
            library_namespace=library_namespace,
            any_alert=True,
        )
    )


def revision_of(chain: Chain, catalog: Catalog, library_namespace: str | None) -> Revision:
    """Returns the revision of a Chain as its objects are now.

    Args:
        chain: the Chain.
        catalog: the known objects.
        library_namespace: where shared objects are, or None.

    Raises:
        PlanInvalid: with every error of the template.
    """
    plan = template(chain, catalog, library_namespace)
    return Revision(template_digest(plan), Snapshot.of(chain, plan, catalog, library_namespace))


def template_digest(plan: Plan) -> str:
    """Computes the digest of a template."""
    per_run = {
        "namespace_limit": None,
        "chain_limit": None,
        "alert_masking": None,
        "model_output_masking": None,
        "objects": (),
        "brought": (),
        "not_used": (),
    }
    bare = _bare(plan.model_copy(update=per_run))
    text = orjson.dumps(bare.model_dump(mode="json", exclude_defaults=True), option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(text).hexdigest()


def _bare(part: _M) -> _M:
    """Removes from a part of a plan what does not identify a revision."""
    if isinstance(part, ObjectRef):
        return part.model_copy(update={"uid": "", "generation": 0})
    if isinstance(part, ProviderPlan):
        part = part.model_copy(update={"rates": None, "limits": None})
    if isinstance(part, ServerPlan):
        part = part.model_copy(update={"pin": None})
    return part.model_copy(update={name: _bare_value(getattr(part, name)) for name in type(part).model_fields})


def _bare_value(value: object) -> object:
    if isinstance(value, FrozenModel):
        return _bare(value)
    return tuple(_bare_value(item) for item in value) if isinstance(value, tuple) else value
