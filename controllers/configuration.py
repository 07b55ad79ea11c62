"""Reconciles Chains, Agents, LLMProviders and InvestigationDefaults: checks that a run could use them.

Watches: the configuration kinds. Decides: whether a run could start with the object now: all referenced objects exist,
fit and are Ready themselves, the whole plan of a Chain resolves, the referenced Secrets can be read, and the server of
an LLMProvider accepts its key and knows its model (and, by the calls of runs, `Serving`). Writes: `Ready` with every
error at once, by field path, and for objects with notification targets `NotificationsReady` with the errors of their
Secrets, because no run waits for those. What differs between the kinds is in `tarsy.plan.check` and
`tarsy.plan.readiness`; `mcp_server` and `alert_route` use the functions here for what they share.

Secrets are not watched, so that the operator needs no right to list them; an object that names some is checked again
at intervals. So is an Agent that names a ServiceAccount.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime

from tarsy.controllers.machinery.context import ReconcileContext, SecretReader
from tarsy.controllers.machinery.status import write_status
from tarsy.controllers.notifications.request_text import template_fault
from tarsy.controllers.promotion.promoted import with_promotion
from tarsy.controllers.readiness.calibration import with_calibration
from tarsy.controllers.readiness.masking import masking_errors
from tarsy.controllers.readiness.provider_checks import provider_plan_of
from tarsy.controllers.readiness.reach import with_reach
from tarsy.controllers.readiness.serving import with_serving
from tarsy.controllers.runs.accounts import account_errors, accounts_to_check
from tarsy.kube.client import KubeClient
from tarsy.kube.values import config_map_text
from tarsy.llm.registry import SecretProblem
from tarsy.plan.approval_expressions import when_errors
from tarsy.plan.check import config_maps, notify_secrets, secrets
from tarsy.plan.errors import FieldPath, PlanError
from tarsy.plan.escalation import escalation_errors
from tarsy.plan.model import SecretKey
from tarsy.plan.readiness import UNKNOWN_READINESS, USABLE, PlanReadiness, readiness
from tarsy.resources.brief_names import in_brief
from tarsy.resources.meta import AnyResource, Condition, Conditions, ConditionStatus, set_condition
from tarsy.resources.v1alpha1.alert_route import AlertRoute
from tarsy.resources.v1alpha1.chain import Chain, ChainStatus
from tarsy.resources.v1alpha1.common import ConditionType, ConfigStatus
from tarsy.resources.v1alpha1.llm_provider import LLMProvider
from tarsy.store.errors import StoreError

_log = logging.getLogger(__name__)

RECHECK_SECONDS = 30.0
"""How soon a Secret that was created or labelled later makes its object Ready."""

SETTLED_RECHECK_SECONDS = 300.0
"""How soon a Secret that was deleted is noticed; its next use notices at once."""

AFTER_ERROR_SECONDS = 5.0

ConfigurationProblem = tuple[PlanError, str]
"""Problems that make an object not Ready, with the condition's reason."""


async def reconcile(obj: AnyResource, context: ReconcileContext) -> float | None:
    """Updates `Ready`; returns the seconds until the next look, None when none is needed.

    The limits of an LLMProvider are made known to all workers, whether it is Ready or not.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
    """
    client, read_secret = context.kubernetes.client, context.kubernetes.read_secret
    cache, library = context.cache, context.settings.library_namespace
    publish_limits, check_provider = context.store.publish_limits, context.checks.providers
    judged = readiness(obj, cache, library or None)
    errors, waits, values = await problems(obj, judged, client, read_secret)
    if accounts_to_check(obj, library):
        refused = await account_errors(obj, client, library)
        errors += refused
        waits.append(RECHECK_SECONDS if refused else SETTLED_RECHECK_SECONDS)
    notes = list(judged.notes)
    if isinstance(obj, LLMProvider) and publish_limits is not None:
        plan = provider_plan_of(obj)
        try:
            await publish_limits(plan.ref, plan.limits)
        except StoreError as error:
            _log.warning("the limits of %s could not be published to all workers; retrying: %s", obj, error)
            waits.append(AFTER_ERROR_SECONDS)
    if isinstance(obj, LLMProvider) and check_provider is not None and not errors:
        found, again = await check_provider(obj, next(iter(values), None))
        notes.append(found.message)
        waits.append(again)
        if found.reason is not None:
            errors.append((FieldPath.of(obj).error(found.message), found.reason))
    untold, again_told = await notify_problems(obj, read_secret)
    waits += again_told
    now = datetime.now(UTC)
    status = with_reach(validate(obj, errors, now, judged.with_notes(notes), untold), obj, cache, now)
    if isinstance(obj, LLMProvider):
        status = status.model_copy(update={"conditions": with_serving(status.conditions, obj, context.served, now)})
    if isinstance(obj, Chain) and isinstance(status, ChainStatus):
        status, later = await _by_its_record(status, obj, context, now)
        waits += later
    await write_status(client, cache, obj, status)
    return min(waits, default=None)


async def _by_its_record(
    status: ChainStatus, chain: Chain, context: ReconcileContext, now: datetime
) -> tuple[ChainStatus, list[float]]:
    """Adds the serving revision and the calibration of a Chain; also returns the seconds until the next looks."""
    waits: list[float] = []
    if context.store.revisions is not None:
        again: float | None = AFTER_ERROR_SECONDS
        try:
            status, again = await with_promotion(status, chain, context.store.revisions, context, now)
        except StoreError as error:
            _log.warning("the revision of %s that serves could not be decided; retrying: %s", chain, error)
            kept = ("serving_revision", "candidate_revision")
            status = status.model_copy(update={name: getattr(chain.status, name) for name in kept})
        if again is not None:
            waits.append(again)
    if context.store.verdicts is not None:
        later = AFTER_ERROR_SECONDS
        try:
            status, later = await with_calibration(status, chain, context.store.verdicts, context, now)
        except StoreError as error:
            _log.warning("the verdicts on findings of %s could not be counted; retrying: %s", chain, error)
            status = status.model_copy(update={"calibration": chain.status.calibration})
        waits.append(later)
    if chain.spec.allowed_namespaces is not None:  # namespaces and Agents come and change
        waits.append(SETTLED_RECHECK_SECONDS)
    return status, waits


async def problems(
    obj: AnyResource, judged: PlanReadiness, client: KubeClient, read_secret: SecretReader
) -> tuple[list[ConfigurationProblem], list[float], list[str]]:
    """Finds everything that makes an object not Ready, MCPServers included.

    Args:
        obj: the object.
        judged: its readiness by the plan.
        client: reads the ConfigMaps that it names.
        read_secret: reads the Secrets that it names.

    Returns:
        The problems, each with a reason; the seconds until they are checked again; the values of the Secrets.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
    """
    errors: list[ConfigurationProblem] = list(judged.errors)
    errors += [(error, "MaskingInvalid") for error in masking_errors(obj)]
    if isinstance(obj, Chain):
        errors += [(error, "ExpressionInvalid") for error in (*when_errors(obj), *escalation_errors(obj))]
    named, texts = secrets(obj), config_maps(obj)
    unread, values = await _read(named, read_secret)
    errors += unread
    for text, at in texts:
        try:
            await config_map_text(client, text)
        except SecretProblem as problem:
            errors.append((at.error(problem.message), problem.reason))
    waits = [RECHECK_SECONDS if errors else SETTLED_RECHECK_SECONDS] if named or texts else []
    return errors, waits, values


async def notify_problems(
    obj: AnyResource, read_secret: SecretReader
) -> tuple[list[ConfigurationProblem], list[float]]:
    """Finds the Secrets of notification targets that cannot be read; returns them and the seconds until the next look.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
    """
    named = notify_secrets(obj)
    found, _ = await _read(named, read_secret)
    waits = [RECHECK_SECONDS if found else SETTLED_RECHECK_SECONDS] if named else []
    return [*found, *_template_problems(obj)], waits


def _template_problems(obj: AnyResource) -> Iterator[ConfigurationProblem]:
    """Yields the bodies of requests that cannot be filled in."""
    for index, target in enumerate(obj.spec.notify if isinstance(obj, Chain | AlertRoute) else ()):
        if target.request is not None and (fault := template_fault(target.request.body)) is not None:
            at = (FieldPath.of(obj) / "notify")[index] / "request" / "body"
            yield at.error(fault), "InvalidTemplate"


async def _read(
    named: Iterable[tuple[SecretKey, FieldPath]], read_secret: SecretReader
) -> tuple[list[ConfigurationProblem], list[str]]:
    """Reads Secrets; returns the problems of those that cannot be read, and the values of the others."""
    found: list[ConfigurationProblem] = []
    values: list[str] = []
    for key, at in named:
        try:
            values.append(await read_secret(key))
        except SecretProblem as problem:
            found.append((at.error(problem.message), problem.reason))
    return found, values


def validate(
    obj: AnyResource,
    errors: Iterable[ConfigurationProblem],
    now: datetime,
    judged: PlanReadiness = USABLE,
    untold: Sequence[ConfigurationProblem] = (),
) -> ConfigStatus:
    """Makes the status that reports `errors`, or that there are none.

    Args:
        obj: the object as it is.
        errors: what makes it not Ready.
        now: the time of this change.
        judged: what nobody has judged yet of what it names, and what else is to be said of one that is Ready.
        untold: what keeps those from being told whom it tells.
    """
    found = list(errors)
    generation = obj.metadata.generation
    if found:
        said: tuple[ConditionStatus, str, str] = ("False", min(reason for _, reason in found), _listed(obj, found))
    elif judged.unknown:
        said = ("Unknown", UNKNOWN_READINESS, _listed(obj, [(error, UNKNOWN_READINESS) for error in judged.unknown]))
    else:
        said = ("True", judged.reason, " ".join(("All referenced objects exist.", *judged.notes)).strip())
    condition = Condition(
        type=ConditionType.READY, status=said[0], reason=said[1], message=said[2], observed_generation=generation
    )
    conditions = _with_targets(set_condition(obj.status.conditions, condition, now), obj, untold, now)
    if isinstance(obj, Chain):
        brief = in_brief(obj.spec.alert_types)
        return ChainStatus(observed_generation=generation, conditions=conditions, alert_types=brief)
    return ConfigStatus(observed_generation=generation, conditions=conditions)


def _listed(obj: AnyResource, found: Iterable[ConfigurationProblem]) -> str:
    """Joins errors, by field path, and by object where it is another one."""
    own = (obj.KIND, obj.metadata.namespace, obj.metadata.name)
    return "; ".join(
        f"{error.field}: {error.message}" if (error.kind, error.namespace, error.name) == own else str(error)
        for error, _ in found
    )


def _with_targets(
    conditions: Conditions, obj: AnyResource, untold: Sequence[ConfigurationProblem], now: datetime
) -> Conditions:
    """Sets the condition of notification targets; removes it where `obj` has none."""
    kind = ConditionType.NOTIFICATIONS_READY
    if not isinstance(obj, Chain | AlertRoute) or not obj.spec.notify:
        return tuple(item for item in conditions if item.type != kind)
    said = "; ".join(f"{error.field}: {error.message}" for error, _ in untold)
    condition = Condition(
        type=kind,
        status="False" if untold else "True",
        reason=min(reason for _, reason in untold) if untold else "SecretsReadable",
        message=f"Runs are not affected, but these targets get no notifications: {said}"
        if untold
        else "The Secrets of all targets can be read.",
        observed_generation=obj.metadata.generation,
    )
    return set_condition(conditions, condition, now)
