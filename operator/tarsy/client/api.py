"""How a command reaches the record and the Kubernetes objects: through the aggregated API, or the direct one.

Paths are those of the one table of routes, without the prefix, so reading is the same at both. Writing is not: with a
kubeconfig it is done on the Kubernetes objects themselves, because the aggregated API only reads; the direct API has
routes for it. Decision: a door knows who asks and where, so that whatever is refused ends in the same sentence.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from tarsy.client.errors import ApiUseError
from tarsy.client.refusals import Right

_M = TypeVar("_M", bound=BaseModel)
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CreatedObject:
    """An object that was created."""

    name: str
    uid: str


class TarsyClient(Protocol):
    """A way to the API, as somebody, with the namespace that is meant when none is named."""

    @property
    def namespace(self) -> str:
        """Of the option, else of the context."""
        ...

    async def read(self, path: str, right: Right, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """What the API answers to a GET of a route. Raises ApiUseError."""
        ...

    def streaming(
        self, path: str, right: Right, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """The pieces of an answer that goes on.

        Raises:
            ApiUseError: it was refused.
            BrokenOff: it broke off, or the API is away: the same may succeed later.
        """
        ...

    async def submit(self, namespace: str, alert: Mapping[str, Any]) -> CreatedObject:
        """Creates an Alert out of its manifest; `name` is the Alert's. Raises ApiUseError."""
        ...

    async def ask(self, namespace: str, investigation: str, question: str) -> CreatedObject:
        """Creates a question about an investigation; `name` is the ChatMessage's. Raises ApiUseError."""
        ...

    async def want(self, namespace: str, investigation: str, desired: str) -> list[str]:
        """Sets the desired state of an investigation, or, of one that has ended, cancels the questions about it.

        Returns the names of the questions that were cancelled instead. Raises ApiUseError.
        """
        ...

    async def until(
        self,
        kind: str,
        namespace: str,
        name: str,
        settled: Callable[[Mapping[str, Any]], _T | None],
        about: str | None = None,
    ) -> _T:
        """What `settled` says of an object, as soon as it says something; it is shown each state of the object.

        Args:
            kind: Alert, Investigation or ChatMessage.
            namespace: of the object.
            name: of the object.
            settled: None: it is waited for more.
            about: the investigation that a ChatMessage is about.

        Raises:
            ApiUseError: the object is gone (status 404), or may not be read.
        """
        ...

    async def questions(self, namespace: str, investigation: str) -> list[str]:
        """The names of the questions about an investigation, in the order of their turns. Raises ApiUseError."""
        ...

    async def names(self, kind: str, namespace: str) -> list[str]:
        """The names of the objects of a kind, as far as this API tells them. Raises ApiUseError."""
        ...


def run_path(namespace: str, name: str, part: str) -> str:
    """The path of `part` of an investigation's record, such as `timeline` or `trace/llm/ID`."""
    return f"/namespaces/{namespace}/investigations/{name}/{part}"


def status_condition(obj: Mapping[str, Any], kind: str, field: str = "status") -> str:
    """A field of a condition of an object, empty when there is none."""
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((str(c.get(field, "")) for c in conditions if c.get("type") == kind), "")


async def read_as(
    door: TarsyClient, model: type[_M], path: str, right: Right, query: Mapping[str, str] | None = None
) -> _M:
    """What the API answers, as its model.

    Raises:
        ApiUseError: it refused, or its answer is not one of this version.
    """
    return as_model(model, await door.read(path, right, query))


def as_model(model: type[_M], answer: Any) -> _M:
    """An answer as its model. Raises ApiUseError: it is not one of this version."""
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        where = ".".join(str(step) for step in error.errors()[0]["loc"][:6])
        raise ApiUseError(
            f"the server's answer is not understood ({model.__name__}, at {where or 'its top'}): "
            "it is of another version than this command"
        ) from None
