"""Serves the intake of notifications: a path for each format on the direct port.

Decision: they are not part of the route table, because senders may authenticate by more than a token, and because the
format of the bodies is that of the senders.
"""

from functools import partial

from aiohttp import web

from tarsy.http.authentication.frontends import BearerFrontend
from tarsy.http.intake.body_format import BODY_FORMATS, BodyFormat
from tarsy.http.intake.configuration import Configuration
from tarsy.http.intake.senders import Senders, SenderSecretReader
from tarsy.http.intake.taking import Taking
from tarsy.http.services import Services
from tarsy.observe.metrics import Metrics
from tarsy.store.intake import Intake

PREFIX = "/intake/v1"


def add_intake(
    app: web.Application,
    frontend: BearerFrontend,
    *,
    services: Services,
    metrics: Metrics,
    read_secret: SenderSecretReader,
    intake: Intake,
    namespaces: tuple[str, ...] = (),
) -> None:
    """Adds the intake to an application.

    Args:
        app: the application of the direct port.
        frontend: authenticates bearer tokens.
        services: the dependencies of handlers.
        metrics: counts notifications.
        read_secret: reads the labelled Secrets of AlertRoutes.
        intake: stores what arrives, and refuses new incidents where too many investigations are queued.
        namespaces: namespaces of this installation; empty: all.
    """
    taking = Taking(
        Senders(frontend, read_secret),
        Configuration(services.kube, services.library_namespace, namespaces),
        services.access,
        intake,
        services.kube,
        metrics,
    )

    async def serve(request: web.Request, source: BodyFormat) -> web.Response:
        return await taking.take(request, source)

    for source in BODY_FORMATS:
        app.router.add_post(f"{PREFIX}/{source}", partial(serve, source=source))
