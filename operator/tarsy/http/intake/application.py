"""Where notifications are sent to: three addresses beside the API, at the same port.

Decision: they are not in the table of the API's routes, because who may send is told by more than a token, and because
their clients are programs that cannot be taught another form of body.
"""

from functools import partial

from aiohttp import web

from tarsy.http.authentication.frontends import BearerFrontend
from tarsy.http.intake.bodies import BodyFormat
from tarsy.http.intake.configuration import Configuration
from tarsy.http.intake.senders import Senders, SenderSecretReader
from tarsy.http.intake.taking import Taking
from tarsy.http.services import Services
from tarsy.observe.metrics import Metrics
from tarsy.store.intake import NAMESPACE_QUEUE_LIMIT, Intake

PREFIX = "/intake/v1"
SOURCES: tuple[BodyFormat, ...] = ("alertmanager", "json", "text")


def add_intake(
    app: web.Application,
    door: BearerFrontend,
    *,
    services: Services,
    metrics: Metrics,
    read_secret: SenderSecretReader,
    queue_limit: int,
    namespace_queue_limit: int = NAMESPACE_QUEUE_LIMIT,
    namespaces: tuple[str, ...] = (),
) -> None:
    """Serves the intake.

    Args:
        app: of the direct door.
        door: knows tokens.
        services: what it works with.
        metrics: what is counted.
        read_secret: reads the labelled Secrets that routes name.
        queue_limit: how many investigations may wait before new incidents are not taken.
        namespace_queue_limit: how many of one namespace may.
        namespaces: those that this installation works in; none: all.
    """
    taking = Taking(
        Senders(door, read_secret),
        Configuration(services.kube, services.library_namespace, namespaces),
        services.access,
        Intake(services.pool, queue_limit=queue_limit, namespace_queue_limit=namespace_queue_limit),
        services.kube,
        metrics,
    )

    async def serve(request: web.Request, source: BodyFormat) -> web.Response:
        return await taking.take(request, source)

    for source in SOURCES:
        app.router.add_post(f"{PREFIX}/{source}", partial(serve, source=source))
