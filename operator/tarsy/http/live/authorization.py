"""What one may follow, asked when it begins and again while it goes on.

Decision: a stream outlives the answer that let it begin, so the whole question is asked anew twice a minute: is the
token still good, is the right still there, is the namespace still the same one. Where nobody can say, a stream goes on
for a few minutes and no longer.
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
from tarsy.store.trace import Trace

READ_EVENTS: Final = Permission("get", "investigations", "events")
READ_LISTS: Final = Permission("list", "investigations", group=PRODUCT_GROUP)
UNKNOWN_CHECKS: Final = 10
"""So many times in a row nobody may be able to say whether a caller still may."""
_LIST, _ONE = "investigations", "investigation"


@dataclass(frozen=True, slots=True)
class Topic:
    """What a channel is about: one investigation, or the list of a namespace or of all."""

    namespace: str | None = None
    name: str | None = None

    @property
    def channel(self) -> str:
        """Its name."""
        if self.name is None:
            return list_channel(self.namespace)
        return channel_of(self.namespace or "", self.name)

    @property
    def permission(self) -> Permission:
        """What one needs to follow it."""
        return READ_LISTS if self.name is None else READ_EVENTS


def read_topic(channel: str) -> Topic:
    """The topic of a channel's name.

    Raises:
        BadRequest: it is none.
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
    """The right of one caller to follow one topic; `demand` first, then `check` again and again."""

    def __init__(self, ask: CheckedRequest, topic: Topic, permission: Permission | None = None) -> None:
        """Takes who asks, and for what.

        Args:
            ask: whose connection it is.
            topic: what is to be followed.
            permission: what is needed for it, where it is not that of the topic.
        """
        self._ask = ask
        self._topic = topic
        self._permission = permission or topic.permission
        self._unknown = 0
        self.namespace_uid = ""

    async def demand(self) -> None:
        """Raises HttpError when the caller may not, or the namespace is not there."""
        self.namespace_uid = await self._demanded()

    async def check(self) -> None:
        """The same again.

        Raises:
            HttpError: not any more.
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
        """The investigation.

        Raises:
            NotFound: there is none.
            HttpError: nobody can say.
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
