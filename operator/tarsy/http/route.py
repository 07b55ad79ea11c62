"""The seam of this room: what a route, a caller, a permission and one checked request are.

Decision: routes are data. One table of them is served at both doors, described by OpenAPI and enumerated by the test of
authorization, so nothing can be served that is not described and guarded. What a route may be asked is pydantic models;
a handler sees only what has been checked.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeVar
from uuid import UUID

from aiohttp import web
from pydantic import BaseModel, StringConstraints

from tarsy.http.authentication.identity import Caller, Permission
from tarsy.http.errors import Forbidden
from tarsy.http.services import Services
from tarsy.kube.client import KubeClient

_M = TypeVar("_M", bound=BaseModel)
DEFAULT_BODY_BYTES: Final = 2 * 1024 * 1024
PUBLIC_BODY_BYTES: Final = 1024

PATH_PARAMETERS: Final[Mapping[str, Any]] = {
    "namespace": Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", max_length=63)],
    "name": Annotated[
        str,
        StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$", max_length=253),
    ],
    "id": UUID,
}
"""The parameters that a path may have, and their types; OpenAPI describes them by the same."""


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """One request, checked: identity, permission, parameters and body are in order.

    `namespace_uid` is that of the namespace in the path as it is now (empty where the path has none). `untimed` lifts
    the time limit of the request: for answers that go on until the client leaves. Such an answer ends by itself after
    `stream_seconds`, and its client comes again with the last id it has seen; None: there is no limit. `identify`
    asks anew who the caller is: raises HttpError when the identity is no good any more.
    """

    request: web.Request
    path: Mapping[str, str]
    caller: Caller
    namespace_uid: str
    services: Services
    checked_query: BaseModel | None = None
    checked_body: BaseModel | None = None
    untimed: Callable[[], None] = lambda: None
    stream_seconds: float | None = None
    identify: Callable[[], Awaitable[Caller]] | None = None

    @property
    def namespace(self) -> str:
        """The namespace in the path."""
        return self.path["namespace"]

    @property
    def name(self) -> str:
        """The name in the path."""
        return self.path["name"]

    @property
    def id(self) -> UUID:
        """The id in the path."""
        return UUID(self.path["id"])

    def query(self, model: type[_M]) -> _M:
        """The query parameters, of the model that the route names."""
        return _of(model, self.checked_query)

    def body(self, model: type[_M]) -> _M:
        """The body, of the model that the route names."""
        return _of(model, self.checked_body)

    def as_caller(self) -> KubeClient:
        """The Kubernetes API with the caller's own token, so that admission and audit see the person.

        Raises:
            Forbidden: there is no token: at the aggregated API there never is, and a proxy may forward none.
        """
        if self.caller.token is None and self.caller.by_proxy:
            raise Forbidden(
                "you are signed in by a proxy that does not forward your Kubernetes token, so you have read-only "
                "access: write with kubectl, or configure the proxy to forward your token"
            )
        if self.caller.token is None:
            raise Forbidden("this API is read-only: write to the Kubernetes API instead")
        return self.services.callers.bearing(self.caller.token)


Handler = Callable[[CheckedRequest], Awaitable[BaseModel | web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class Route:
    """One thing that can be asked.

    Args:
        method: of HTTP, in capitals.
        path: below the prefix of a door, such as `/namespaces/{namespace}/investigations/{name}/timeline`; its
            parameters are of PATH_PARAMETERS.
        operation: the operationId, a camelCase verb phrase.
        summary: one line for the OpenAPI document.
        handler: answers; what it returns is written as JSON with `status`, a response of its own as it is.
        permission: asked before anything is looked up: in the namespace of the path; else in each one of the query
            parameter `namespace`; else cluster-wide. About the object `{name}` where the path names one of that
            resource. None: the route asks for itself (`Services.access`), or is public.
        query: None: no parameter is allowed.
        body: None: a body is not read.
        response: what `handler` returns; None: a response of its own.
        status: of a successful answer.
        body_bytes: that a body may have.
        idempotent: the header Idempotency-Key is read: an equal request leads to what the first one made.
        public: no identity is asked for; its body has at most PUBLIC_BODY_BYTES.
        aggregated: also served through the aggregated API.
    """

    method: str
    path: str
    operation: str
    summary: str
    handler: Handler
    permission: Permission | None = None
    query: type[BaseModel] | None = None
    body: type[BaseModel] | None = None
    body_bytes: int = DEFAULT_BODY_BYTES
    idempotent: bool = False
    response: type[BaseModel] | None = None
    status: int = 200
    public: bool = False
    aggregated: bool = False

    def __post_init__(self) -> None:
        if self.public and self.permission is not None:
            raise ValueError(f"{self.operation}: a public route has no permission")
        if unknown := set(self.parameters) - set(PATH_PARAMETERS):
            raise ValueError(f"{self.operation}: unknown path parameter {', '.join(sorted(unknown))}")

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters in the path."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))


def _of(model: type[_M], found: BaseModel | None) -> _M:
    if not isinstance(found, model):
        raise TypeError(f"the route does not name {model.__name__}")
    return found
