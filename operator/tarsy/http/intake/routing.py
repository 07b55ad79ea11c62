"""Matches a body against AlertRoutes, in order of precedence.

Decision: every route is matched, also after the first match, so that `tarsy route --dry-run` and the intake share one
function. The first route that matches, and that the sender may use, takes the notification.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tarsy.http.intake.bodies import IntakeBody
from tarsy.http.intake.formats.notification import Notification
from tarsy.plan.matching import InvalidMatcher, format_matcher, matches
from tarsy.resources.v1alpha1.alert_route import AlertRoute, Matcher


@dataclass(frozen=True, slots=True)
class RouteMatch:
    """Result of matching a route; `why_not` is empty if it matches."""

    route: AlertRoute
    notification: Notification
    why_not: str

    @property
    def matches(self) -> bool:
        """Whether all matchers match."""
        return not self.why_not


def match_route(routes: Iterable[AlertRoute], body: IntakeBody) -> list[RouteMatch]:
    """Matches a body against all routes, sorted by precedence."""
    return [_judge(route, body) for route in sorted(routes, key=_order)]


def target(route: AlertRoute) -> str:
    """Returns the namespace in which a route creates Alerts."""
    return route.spec.namespace or route.metadata.namespace


def _order(route: AlertRoute) -> tuple[int, int, str, str]:
    return -route.spec.precedence, -len(route.spec.matchers), route.metadata.namespace, route.metadata.name


def _judge(route: AlertRoute, body: IntakeBody) -> RouteMatch:
    notification = body.read(route)
    faults = (_fault(matcher, notification) for matcher in route.spec.matchers)
    return RouteMatch(route, notification, "; ".join(fault for fault in faults if fault))


def _fault(matcher: Matcher, notification: Notification) -> str:
    try:
        if matches(matcher, notification.labels):
            return ""
    except InvalidMatcher as invalid:
        return f"{format_matcher(matcher)} is invalid: {invalid.sentence}"
    value = notification.labels.get(matcher.name)
    if value is not None:
        return f'{format_matcher(matcher)} does not match: {matcher.name} is "{value[:256]}"'
    if matcher.name in notification.differing:
        return f"{format_matcher(matcher)} does not match: the alerts of the group differ in {matcher.name}"
    return f"{format_matcher(matcher)} does not match: there is no label {matcher.name}"
