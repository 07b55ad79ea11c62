"""Checks whether a run could start now with an object: the whole plan, and the objects that it names.

Decision: a Chain is judged by resolving it as a run of its own namespace would be, with the code that runs are planned
by, so the two cannot disagree. What it names must be Ready itself; a server that does not answer now only degrades a
run, so that is said and no error. A Chain that other namespaces may use and that chooses no provider is completed by
their InvestigationDefaults: that is no error of the Chain either.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tarsy.plan.catalog import Catalog
from tarsy.plan.check import check_references, named_objects
from tarsy.plan.errors import FieldPath, PlanError, PlanInvalid
from tarsy.plan.lookup import Lookup
from tarsy.plan.resolve import PlanRequest, explain_plan
from tarsy.resources.meta import AnyResource, condition
from tarsy.resources.v1alpha1.agent import Agent
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.resources.v1alpha1.chain import Chain
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.resources.v1alpha1.investigation_defaults import InvestigationDefaults
from tarsy.resources.v1alpha1.llm_provider import LLMProvider
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from tarsy.resources.v1alpha1.skill import Skill

INVALID = "ReferencesInvalid"
PLAN_INVALID = "PlanInvalid"
NOT_READY = "ReferencesNotReady"
UNKNOWN_READINESS = "ReferencesUnknown"
NEEDS_DEFAULTS = "NeedsDefaults"
JUDGED_BY_OTHERS = (Chain, Agent, InvestigationDefaults)
"""Kinds whose readiness depends on that of other objects."""

_REQUIRED = (Agent, LLMProvider, MCPServer, Skill)


@dataclass(frozen=True, slots=True)
class PlanReadiness:
    """The result of a check."""

    errors: tuple[tuple[PlanError, str], ...] = ()
    """Errors that keep the object from being used, each with its reason."""
    unknown: tuple[PlanError, ...] = ()
    """References that have not been checked yet."""
    notes: tuple[str, ...] = ()
    """Sentences about an object that can be used."""
    reason: str = "Usable"
    """The reason of the condition Ready, without errors."""

    def with_notes(self, notes: Iterable[str]) -> PlanReadiness:
        """The same with other notes."""
        return replace(self, notes=tuple(note for note in notes if note))


USABLE = PlanReadiness()


def readiness(obj: AnyResource, catalog: Catalog, library_namespace: str | None) -> PlanReadiness:
    """Checks an object and the objects that it names; Secrets and servers are not read here.

    Args:
        obj: the object.
        catalog: the known objects.
        library_namespace: where shared objects are, or None.
    """
    errors = dict.fromkeys(check_references(obj, catalog), INVALID)
    if not isinstance(obj, JUDGED_BY_OTHERS):
        return PlanReadiness(tuple(errors.items()))
    if not isinstance(obj, Chain):
        return _with_references(errors, named_objects(obj, catalog), "Usable", ())
    look = Lookup(catalog)
    try:
        explain_plan(
            PlanRequest(
                namespace=obj.metadata.namespace,
                alert=AlertContent(alert_type=next(iter(obj.spec.alert_types), "Any"), data="-"),
                chain=obj,
                catalog=catalog,
                library_namespace=library_namespace,
            ),
            look,
        )
    except PlanInvalid as invalid:
        for error in invalid.errors:
            errors.setdefault(error, PLAN_INVALID)
    reason, notes = "Usable", []
    if look.unchosen is not None and _is_shared(obj):
        del errors[look.unchosen]
        reason = NEEDS_DEFAULTS
        notes.append(
            "spec.llmProvider is not set: a run needs InvestigationDefaults with llmProvider in its namespace, and "
            "settings that depend on the model are checked when it starts."
        )
    found = [*look.found.values(), *named_objects(obj, catalog)]
    return _with_references(errors, found, reason, notes)


def _is_shared(chain: Chain) -> bool:
    allowed = chain.spec.allowed_namespaces
    return allowed is not None and allowed.from_ != "None"


def _with_references(
    errors: dict[PlanError, str], found: Iterable[tuple[AnyResource, FieldPath]], reason: str, notes: Iterable[str]
) -> PlanReadiness:
    unknown: dict[PlanError, None] = {}
    said = dict.fromkeys(notes)
    judged: set[str] = set()
    for named, at in found:
        if not isinstance(named, _REQUIRED) or str(named) in judged:
            continue
        judged.add(str(named))
        ready = condition(named.status.conditions, ConditionType.READY)
        if ready is None or ready.status == "Unknown":
            unknown[at.error(f"{named} has not been checked yet")] = None
        elif ready.status == "False":
            errors.setdefault(at.error(f"{named} is not Ready ({ready.reason}); see its condition Ready"), NOT_READY)
        elif (away := _away(named)) is not None:
            said[away] = None
    return PlanReadiness(tuple(errors.items()), tuple(unknown), tuple(said), reason)


def _away(named: AnyResource) -> str | None:
    """Returns a note about an object that is Ready and not serving; runs start all the same."""
    if isinstance(named, Skill):
        return None
    kind, what = (
        (ConditionType.AVAILABLE, "does not respond: runs continue without its tools")
        if isinstance(named, MCPServer)
        else (ConditionType.SERVING, "is not serving: its last calls failed")
    )
    found = condition(named.status.conditions, kind)
    return f"{named} {what} ({found.reason})." if found is not None and found.status == "False" else None
