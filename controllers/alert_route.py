"""Reconciles AlertRoutes: checks that they can be used, and counts their matches.

Watches: AlertRoutes, and Chains, which may come later. Decides: whether RE2 accepts its expressions, whether the Secret
of its senders can be read, whether their ServiceAccount may create Alerts in the target namespace and their reader list
pods there, and whether a chain takes them. Writes: `Ready` with every error at once, `NotificationsReady` (see
`configuration`), `matchedCount` and `lastMatched`.

The intake checks for itself and does not wait for this: a route without a chain takes alerts, which wait for one.
"""

from datetime import UTC, datetime

from tarsy.controllers.configuration import (
    RECHECK_SECONDS,
    SETTLED_RECHECK_SECONDS,
    ConfigurationProblem,
    notify_problems,
    problems,
    validate,
)
from tarsy.controllers.machinery.cache import Cache
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.machinery.status import write_status
from tarsy.kube.access import ResourceAttributes, may, service_account_subject
from tarsy.kube.client import KubeClient
from tarsy.plan.errors import FieldPath, PlanInvalid
from tarsy.plan.matching import InvalidMatcher, check_matcher
from tarsy.plan.readiness import readiness
from tarsy.plan.select import NoChain, select
from tarsy.resources.meta import GROUP
from tarsy.resources.v1alpha1 import Alert, AlertRoute, AlertRouteStatus
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.store.intake import Intake


async def reconcile(route: AlertRoute, intake: Intake, context: ReconcileContext) -> float | None:
    """Updates the status of a route; returns the seconds until the next look, None when none is needed.

    Args:
        route: the object.
        intake: the alerts that came over HTTP; knows what the route took.
        context: of all reconciles.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
        StoreError: Postgres is away.
    """
    client, read_secret = context.kubernetes.client, context.kubernetes.read_secret
    cache, library_namespace = context.cache, context.settings.library_namespace
    errors, waits, _ = await problems(route, readiness(route, cache, library_namespace), client, read_secret)
    errors += [*matcher_errors(route), *chain_errors(route, cache, library_namespace)]
    if route.spec.auth is not None or route.spec.reader is not None:
        errors += [*await _rights(route, client), *await _reader_rights(route, client)]
        waits.append(RECHECK_SECONDS if errors else SETTLED_RECHECK_SECONDS)
    untold, again = await notify_problems(route, read_secret)
    waits += again
    judged = validate(route, errors, datetime.now(UTC), untold=untold)
    took = await intake.route(route.metadata.uid)
    count, last = took or (route.status.matched_count, route.status.last_matched)
    status = AlertRouteStatus(
        observed_generation=judged.observed_generation,
        conditions=judged.conditions,
        matched_count=count,
        last_matched=last,
    )
    await write_status(client, cache, route, status)
    if took is not None:
        await intake.route_published(route.metadata.uid, took[0])
    return min(waits, default=None)


def matcher_errors(route: AlertRoute) -> list[ConfigurationProblem]:
    """Lists the matchers with an invalid expression: a route with one takes nothing."""
    errors: list[ConfigurationProblem] = []
    for index, matcher in enumerate(route.spec.matchers):
        try:
            check_matcher(matcher)
        except InvalidMatcher as invalid:
            at = (FieldPath.of(route) / "matchers")[index] / "value"
            errors.append((at.error(invalid.sentence), "MatcherInvalid"))
    return errors


def chain_errors(route: AlertRoute, cache: Cache, library_namespace: str) -> list[ConfigurationProblem]:
    """Reports that no chain takes the Alerts, if the route itself names a chain or an alert type.

    Args:
        route: the object.
        cache: holds the chains.
        library_namespace: whose chains all namespaces may use.
    """
    spec, at = route.spec, FieldPath.of(route)
    if spec.chain_ref is None and spec.alert_type is None:
        return []
    content = AlertContent(alert_type=spec.alert_type or "any", data="any", chain_ref=spec.chain_ref)
    namespace = spec.namespace or route.metadata.namespace
    try:
        chain = select(
            namespace=namespace, alert=content, catalog=cache, library_namespace=library_namespace, source=at
        )
    except PlanInvalid as invalid:
        return [(error, "ChainRefused") for error in invalid.errors]
    if not isinstance(chain, NoChain):
        return []
    field = at / "chainRef" / "name" if spec.chain_ref is not None else at / "alertType"
    return [(field.error(chain.message.partition(": ")[2]), "NoChain")]


async def _rights(route: AlertRoute, client: KubeClient) -> list[ConfigurationProblem]:
    """Reports that the ServiceAccount of senders with a secret may not create Alerts."""
    if route.spec.auth is None:
        return []
    own, name = route.metadata.namespace, route.spec.auth.service_account_name
    namespace = route.spec.namespace or own
    what = ResourceAttributes("create", GROUP, Alert.PLURAL, namespace=namespace)
    if await may(client, service_account_subject(own, name), what):
        return []
    text = (
        f"ServiceAccount {own}/{name} cannot create alerts in namespace {namespace}; bind a role to it there, such as "
        "tarsy-investigator"
    )
    return [((FieldPath.of(route) / "auth" / "serviceAccountName").error(text), "Forbidden")]


async def _reader_rights(route: AlertRoute, client: KubeClient) -> list[ConfigurationProblem]:
    """Reports a reader that may not even list pods: nothing would be read for these Alerts."""
    if route.spec.reader is None:
        return []
    own, name = route.metadata.namespace, route.spec.reader.service_account_name
    namespace = route.spec.namespace or own
    what = ResourceAttributes("list", "", "pods", namespace=namespace)
    if await may(client, service_account_subject(own, name), what):
        return []
    text = f"ServiceAccount {own}/{name} cannot list pods in namespace {namespace}; bind a role to it, such as view"
    return [((FieldPath.of(route) / "reader" / "serviceAccountName").error(text), "Forbidden")]
