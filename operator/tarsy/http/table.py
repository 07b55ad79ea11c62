"""Lists all routes of the API, in the order of the OpenAPI document."""

from tarsy.http.authentication.web_ui_session import ROUTES as PAGE_SESSION
from tarsy.http.live.messages import ClientAction, ServerMessage
from tarsy.http.live.websocket import ROUTES as WEBSOCKET
from tarsy.http.openapi import openapi_route
from tarsy.http.route import Route
from tarsy.http.routes import (
    alert_types,
    alerts,
    approvals,
    calibration,
    chat,
    comparison,
    configuration,
    configured_objects,
    desired,
    evals,
    events,
    evidence,
    health_over_time,
    investigations,
    plans,
    precedents,
    queue,
    quotas,
    replays,
    retries,
    reviews,
    runbooks,
    schedules,
    scores,
    server_tools,
    skills,
    timeline,
    trace,
    unstarted,
    usage,
    warnings,
)


def all_routes() -> tuple[Route, ...]:
    """Returns the route table. No frontend serves a route that is not in it."""
    routes = (
        *alerts.ROUTES,
        *investigations.ROUTES,
        *unstarted.ROUTES,
        *desired.ROUTES,
        *replays.ROUTES,
        *retries.ROUTES,
        *timeline.ROUTES,
        *precedents.ROUTES,
        *events.ROUTES,
        *WEBSOCKET,
        *trace.ROUTES,
        *comparison.ROUTES,
        *evidence.ROUTES,
        *chat.ROUTES,
        *approvals.ROUTES,
        *reviews.ROUTES,
        *calibration.ROUTES,
        *scores.ROUTES,
        *alert_types.ROUTES,
        *plans.ROUTES,
        *configuration.ROUTES,
        *configured_objects.ROUTES,
        *health_over_time.ROUTES,
        *server_tools.ROUTES,
        *quotas.ROUTES,
        *schedules.ROUTES,
        *skills.ROUTES,
        *runbooks.ROUTES,
        *evals.ROUTES,
        *usage.ROUTES,
        *queue.ROUTES,
        *warnings.ROUTES,
        *PAGE_SESSION,
    )
    return (*routes, openapi_route(routes, (ServerMessage, ClientAction)))
