"""Defines a route as data, and the checked request that its handler receives.

Decision: routes are data. One table of them is served by both frontends, described by OpenAPI and enumerated by the
test of authorization, so no route can be served without a description and a permission. Parameters and bodies are
pydantic models; a handler receives only validated values.
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
"""Types of all path parameters, also used by the OpenAPI document."""


@dataclass(frozen=True, slots=True)
class CheckedRequest:
    """A request that was authenticated, authorized and validated.

    `namespace_uid` is the current uid of the namespace in the path; empty without one. `untimed` lifts the time limit
    of the request, for streams. A stream ends after `stream_seconds`, and its client resumes with the last id; None: no
    limit. `identify` authenticates the caller again, and raises HttpError if the credential is no longer valid.
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
        """Namespace in the path."""
        return self.path["namespace"]

    @property
    def name(self) -> str:
        """Name in the path."""
        return self.path["name"]

    @property
    def id(self) -> UUID:
        """Id in the path."""
        return UUID(self.path["id"])

    def query(self, model: type[_M]) -> _M:
        """Returns the query parameters as the model of the route."""
        return _of(model, self.checked_query)

    def body(self, model: type[_M]) -> _M:
        """Returns the body as the model of the route."""
        return _of(model, self.checked_body)

    def as_caller(self) -> KubeClient:
        """Returns a Kubernetes client with the caller's own token, so that admission and audit log see the person.

        Raises:
            Forbidden: the request carries no token: the aggregated API never has one, and a proxy may forward none.
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
    """One operation of the API.

    Args:
        method: HTTP method, in capitals.
        path: path below the prefix of a frontend, such as `/namespaces/{namespace}/investigations/{name}/timeline`; its
            parameters are declared in PATH_PARAMETERS.
        operation: operationId, a camelCase verb phrase.
        summary: one line for the OpenAPI document.
        handler: returns a model, which is sent as JSON with `status`, or a response of its own.
        permission: required before anything is looked up: in the namespace of the path; else in each namespace of the
            query parameter `namespace`; else cluster-wide. For the object `{name}` if the path names one of the
            resource. None: the handler checks permissions itself (`Services.access`), or the route is public.
        query: model of the query parameters; None: none are allowed.
        body: model of the body; None: the body is not read.
        response: model that `handler` returns; None: a response of its own.
        status: HTTP status of success.
        body_bytes: maximum size of the body in bytes.
        idempotent: supports Idempotency-Key: a repeated request returns the object that the first one created.
        public: requires no authentication; the body is limited to PUBLIC_BODY_BYTES.
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
        """Names of the path parameters."""
        return tuple(part[1:-1] for part in self.path.split("/") if part.startswith("{"))


def _of(model: type[_M], found: BaseModel | None) -> _M:
    if not isinstance(found, model):
        raise TypeError(f"the route does not name {model.__name__}")
    return found
