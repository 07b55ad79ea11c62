"""Processes one notification: authenticates its sender, parses and routes it, records its fate, creates its Alert.

Decision: 2xx is returned only after the fate is in Postgres and the Alert is in the Kubernetes API. A temporary failure
is 503, which Alertmanager retries (it does not retry 429). A permanent failure is 4xx, or 2xx with the fate `rejected`
if the sender cannot correct it, such as an alert without a matching route: it would be retried forever.
"""

import asyncio
import hashlib
import logging
import re
import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from aiohttp import web

from tarsy.http.application import CALLER
from tarsy.http.authentication.access import AccessReviews
from tarsy.http.authentication.identity import Permission
from tarsy.http.bodies import UNSIGNED_BODIES, UNSIGNED_EACH, BodyRoom
from tarsy.http.errors import BadRequest, Forbidden, TimedOut, TooLarge, Unavailable, Unprocessable
from tarsy.http.intake.alerts import draft_alert, group_hash
from tarsy.http.intake.bodies import INTAKE_BODY_BYTES, IntakeBody, parse_body
from tarsy.http.intake.body_format import BodyFormat
from tarsy.http.intake.configuration import Configuration
from tarsy.http.intake.formats.notification import BadBody, NotAnIncident
from tarsy.http.intake.routing import RouteMatch, match_route, target
from tarsy.http.intake.senders import AlertSender, Senders
from tarsy.http.intake.turns import Turns
from tarsy.kube.client import ApiError, KubeClient
from tarsy.listening.connection_guard import mark_signed_in
from tarsy.observe.metric_table import INTAKE, QUEUE_FULL, UNROUTED
from tarsy.observe.metrics import Metrics
from tarsy.plan.matching import OWN_LABEL
from tarsy.record.text import clean
from tarsy.resources.meta import GROUP
from tarsy.resources.v1alpha1 import AlertRoute
from tarsy.resources.v1alpha1.alert_route import Storm
from tarsy.runtime.incidents import AlertRefused, make_alert
from tarsy.store.intake import Decision, Intake, Occurrence, QueueFull, Received

_log = logging.getLogger(__name__)
CREATE = Permission("create", "alerts", group=GROUP)
_REQUEST_SECONDS = 30.0
STORE_SECONDS = 10.0
QUEUE_FULL_RETRY_SECONDS = 30
_TOO_LARGE = f"the body is larger than {INTAKE_BODY_BYTES} bytes; send less, for example fewer alerts at once"
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SAID = {
    "NoRoute": "no AlertRoute matches it; `tarsy route --dry-run` explains why",
    "OwnAlert": f"it is about TARSy itself (label {OWN_LABEL}), which does not investigate its own alerts",
    "AlertRefused": "the Kubernetes API rejects its Alert",
    "NotAnIncident": "it reports neither the start nor the end of an incident",
    "NoAlertType": "the route sets no alertType, and there is no label alertname; set one of them",
}


class Taking:
    """Processes notifications.

    Args:
        senders: authenticates senders.
        configuration: reads routes and masks texts.
        access: authorizes senders.
        intake: decides the fate, in Postgres.
        client: authenticated as the operator, which may create Alerts in the name of others.
        metrics: counts notifications.
    """

    def __init__(
        self,
        senders: Senders,
        configuration: Configuration,
        access: AccessReviews,
        intake: Intake,
        client: KubeClient,
        metrics: Metrics,
    ) -> None:
        self._senders = senders
        self._configuration = configuration
        self._access = access
        self._intake = intake
        self._client = client
        self._metrics = metrics
        self._bodies = BodyRoom()
        self._unsigned = BodyRoom(UNSIGNED_BODIES, UNSIGNED_EACH)
        self._turns = Turns()

    async def take(self, request: web.Request, source: BodyFormat) -> web.Response:
        """Processes one notification, and returns its fate.

        Args:
            request: the request.
            source: format of the body.

        Raises:
            HttpError: the notification was not accepted; the status says whether to retry.
            StoreError: Postgres is unavailable.
        """
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                return await self._take(request, source)
        except TimeoutError:
            raise TimedOut(f"the request took longer than {_REQUEST_SECONDS:g} s; try again") from None

    async def _take(self, request: web.Request, source: BodyFormat) -> web.Response:
        namespace = request.query.get("namespace", "")
        if namespace and not _NAMESPACE.fullmatch(namespace):
            raise BadRequest("query parameter namespace is not a valid name of a namespace")
        sender = await self._senders.by_token(request)
        if sender is not None and sender.caller is not None:
            request[CALLER] = sender.caller
        routes = await self._configuration.routes(namespace)
        if sender is None:
            sender = await self._senders.before_body(request, routes)
        if sender is not None:
            mark_signed_in(request)
        elif (request.content_length or 0) > INTAKE_BODY_BYTES:
            raise TooLarge(_TOO_LARGE)
        content, whole = await (self._unsigned if sender is None else self._bodies).read(
            request, namespace, INTAKE_BODY_BYTES
        )
        size = len(content) if whole else max(request.content_length or 0, len(content))
        received = Received(source, "", hashlib.sha256(content).hexdigest(), size)
        if not whole:
            if sender is not None:
                await self._reject(replace(received, sender=_name(sender)), "TooLarge")
            raise TooLarge(_TOO_LARGE)
        if sender is None:
            sender = await self._senders.by_signature(request, content, routes)
            mark_signed_in(request)
        async with self._turns.turn(namespace):
            return await self._judge(replace(received, sender=_name(sender)), source, sender, routes, content)

    async def _judge(
        self, received: Received, source: BodyFormat, sender: AlertSender, routes: list[AlertRoute], content: bytes
    ) -> web.Response:
        asked = sender.routes if sender.caller is None else routes
        try:  # in a thread: both may be large
            body = await asyncio.to_thread(parse_body, source, content)
            verdicts = await asyncio.to_thread(_matching, asked, body)
        except BadBody as bad:
            await self._reject(received, bad.reason)
            raise BadRequest(bad.message) from None
        except NotAnIncident:
            return _answer(await self._reject(received, "NotAnIncident"))
        if not verdicts:
            self._metrics.add(UNROUTED)
            return _answer(await self._reject(received, "NoRoute"))
        verdict = await self._usable(verdicts, sender)
        if verdict is None:
            await self._reject(received, "Forbidden")
            who = sender.author(verdicts[0].route).username
            raise Forbidden(
                f"{who} may not create alerts of {GROUP} in the target namespaces of the matching AlertRoutes; request "
                "that permission, or select your own namespace with ?namespace="
            )
        return await self._decide(replace(received, route=verdict.route.key), verdict, sender, body)

    async def _usable(self, verdicts: list[RouteMatch], sender: AlertSender) -> RouteMatch | None:
        """Returns the first route whose Alerts the sender may create."""
        for verdict in verdicts:
            if await self._access.allowed(sender.author(verdict.route), CREATE, target(verdict.route)):
                return verdict
        return None

    async def _decide(
        self, received: Received, verdict: RouteMatch, sender: AlertSender, body: IntakeBody
    ) -> web.Response:
        route, notification = verdict.route, verdict.notification
        alert_type = route.spec.alert_type or notification.alert_type
        if notification.labels.get(OWN_LABEL) == "true":
            return _answer(await self._reject(received, "OwnAlert"))
        if notification.firing and alert_type is None:
            alert_type = await self._configuration.alert_type(target(route))
        if notification.firing and alert_type is None:
            return _answer(await self._reject(received, "NoAlertType"))
        masked = await self._configuration.mask(body.text, target(route)) if notification.firing else ""
        storm = route.spec.storm or Storm()
        occurrence = Occurrence(
            route_uid=route.metadata.uid,
            group=group_hash(route, notification),
            firing=notification.firing,
            first=notification.first,
            last=notification.last,
            storm_alerts=storm.alerts,
            storm_seconds=storm.seconds,
            draft=lambda begun, in_storm: draft_alert(
                route, notification, alert_type or "", sender.author(route), masked, begun=begun, storm=in_storm
            ),
            namespace=target(route),
        )
        try:
            decision = await self._intake.decide(received, occurrence, remaining=_remaining())
        except QueueFull as full:
            self._metrics.add(QUEUE_FULL)
            where = f" in namespace {full.namespace}" if full.namespace else ""
            text = f"too many investigations are queued{where}; try again"
            raise Unavailable(text, retry_after=QUEUE_FULL_RETRY_SECONDS) from None
        self._metrics.add(INTAKE, fate=decision.fate)
        if decision.alert is not None:
            try:
                await make_alert(decision.alert, self._client, self._intake)
            except AlertRefused as refused:
                raise Unprocessable(refused.message) from None
            except ApiError as error:
                alert = decision.alert
                _log.warning("cannot create Alert %s/%s, trying again: %s", alert.namespace, alert.name, error.message)
                raise Unavailable("the Kubernetes API cannot create the Alert now; try again") from None
        return _answer(decision, route)

    async def _reject(self, received: Received, reason: str) -> Decision:
        decision = await self._intake.reject(received, reason, remaining=_remaining())
        self._metrics.add(INTAKE, fate="rejected")
        return decision


def _matching(routes: Iterable[AlertRoute], body: IntakeBody) -> list[RouteMatch]:
    return [verdict for verdict in match_route(routes, body) if verdict.matches]


def _name(sender: AlertSender) -> str:
    return clean(sender.name)[:1024]


def _remaining() -> Callable[[], float]:
    """Returns a function that returns the remaining seconds to wait for Postgres: long enough for a restart."""
    until = time.monotonic() + STORE_SECONDS
    return lambda: until - time.monotonic()


def _answer(decision: Decision, route: AlertRoute | None = None) -> web.Response:
    """Builds the response with the fate; 202 if an investigation begins."""
    alert = decision.alert
    said = {
        "fate": decision.fate,
        "reason": decision.reason,
        "message": _SAID.get(decision.reason),
        "route": route.key if route else None,
        "namespace": alert.namespace if alert else None,
        "alert": alert.name if alert else None,
    }
    body = {name: value for name, value in said.items() if value is not None}
    return web.json_response(body, status=202 if decision.fate == "investigated" else 200)
