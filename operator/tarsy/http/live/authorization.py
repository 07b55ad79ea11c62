"""Authorizes streams when they start and while they run.

Decision: a stream outlives the authorization that it started with, so token, permission and namespace are checked again
twice a minute. If they cannot be checked, a stream continues for a few minutes only.
"""

from dataclasses import dataclass
from typing import Final

from pydantic import TypeAdapter, ValidationError

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import BadRequest, Forbidden, NotFound, Unavailable
from tarsy.http.failures import as_http_error
from tarsy.http.live.lists import list_channel
from tarsy.http.live.message_factory import channel_of
from tarsy.http.models import PRODUCT_GROUP
from tarsy.http.route import PATH_PARAMETERS, CheckedRequest
from tarsy.record.run import InvestigationRecord
from tarsy.store.errors import StoreError
from tarsy.store.reading.trace import Trace

READ_EVENTS: Final = Permission("get", "investigations", "events")
READ_LISTS: Final = Permission("list", "investigations", group=PRODUCT_GROUP)
UNKNOWN_CHECKS: Final = 10
"""Consecutive authorization checks without a result after which a stream is closed."""
_LIST, _ONE = "investigations", "investigation"


@dataclass(frozen=True, slots=True)
class Topic:
    """Subject of a channel: one investigation, or the list of one or all namespaces."""

    namespace: str | None = None
    name: str | None = None

    @property
    def channel(self) -> str:
        """Name of the channel."""
        if self.name is None:
            return list_channel(self.namespace)
        return channel_of(self.namespace or "", self.name)

    @property
    def permission(self) -> Permission:
        """Permission that following requires."""
        return READ_LISTS if self.name is None else READ_EVENTS


def read_topic(channel: str) -> Topic:
    """Parses the name of a channel.

    Raises:
        BadRequest: the name is invalid.
    """
    kind, colon, rest = channel.partition(":")
    namespace, slash, name = rest.partition("/")
    if kind == _LIST and not slash and bool(colon) == bool(namespace):
        return Topic(_checked("namespace", namespace) if colon else None)
    if kind == _ONE and slash:
        return Topic(_checked("namespace", namespace), _checked("name", name))
    raise BadRequest(
        "unknown channel; the channels are investigations, investigations:NAMESPACE and investigation:NAMESPACE/NAME"
    )


class StreamAuthorization:
    """Authorizes one caller for one topic: `demand` when the stream starts, then `check` at intervals."""

    def __init__(self, ask: CheckedRequest, topic: Topic, permission: Permission | None = None) -> None:
        """Creates the authorization of a stream.

        Args:
            ask: the request that opened the stream.
            topic: the topic to follow.
            permission: required permission; None: that of the topic.
        """
        self._ask = ask
        self._topic = topic
        self._permission = permission or topic.permission
        self._unknown = 0
        self.namespace_uid = ""

    async def demand(self) -> None:
        """Raises HttpError if the caller is not authorized, or the namespace does not exist."""
        self.namespace_uid = await self._demanded()

    async def check(self) -> None:
        """Checks credential, permission and namespace again.

        Raises:
            HttpError: the stream must end.
        """
        try:
            if self._ask.identify is not None:
                caller = await self._ask.identify()
                if caller.username != self._ask.caller.username:
                    raise Forbidden("the token now belongs to another user")
            if await self._demanded() != self.namespace_uid:
                raise NotFound(f"the namespace {self._topic.namespace} was deleted")
            self._unknown = 0
        except Unavailable:
            self._unknown += 1
            if self._unknown >= UNKNOWN_CHECKS:
                raise

    async def record(self) -> InvestigationRecord:
        """Reads the investigation of the topic.

        Raises:
            NotFound: it has no record.
            HttpError: the database is unavailable.
        """
        topic, services = self._topic, self._ask.services
        namespace, name = topic.namespace or "", topic.name or ""
        try:
            run = await Trace(services.pool).locate(namespace, name, self.namespace_uid, None)
            found = run and (services.hub.known(run) or await services.reads.record(run))
        except StoreError as error:
            raise as_http_error(error) from error
        if not found:
            raise NotFound(f"there is no record of investigation {namespace}/{name}; it has one once it is accepted")
        return found

    async def _demanded(self) -> str:
        services, topic = self._ask.services, self._topic
        namespace = topic.namespace or ""
        await services.access.demand(self._ask.caller, self._permission, namespace, topic.name or "")
        return await services.namespaces.uid(namespace) if namespace else ""


def _checked(name: str, value: str) -> str:
    try:
        return str(TypeAdapter(PATH_PARAMETERS[name]).validate_python(value))
    except ValidationError:
        raise BadRequest(f"the {name} in the channel is invalid") from None
