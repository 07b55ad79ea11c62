"""Defines the client of TARSy, which the aggregated API and the HTTP API implement.

Paths are those of the table of routes, without the prefix, so both read alike. They write differently: the
aggregated API is read-only, so with a kubeconfig the Kubernetes objects are written; the HTTP API has routes for it.
Decision: a client knows its identity and namespace, so that every refusal becomes the same sentence.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from pydantic import BaseModel, ValidationError

from tarsy.client.errors import ApiUseError
from tarsy.client.refusals import Right
from tarsy.http.decision_entry import Verdict
from tarsy.http.views.approvals import ApprovalItem, ApprovalView
from tarsy.http.views.plans import PlanQuestion, PlanView
from tarsy.http.views.quotas import QuotaView
from tarsy.http.views.reviews import ReviewResult, ReviewsBody
from tarsy.http.views.schedules import ScheduleView
from tarsy.http.views.skills import SkillView

_M = TypeVar("_M", bound=BaseModel)
_T = TypeVar("_T")

SILENCE_SECONDS = 90.0
"""A stream without one byte for so long is given up."""

AWAY_SECONDS = 120.0
"""An API that is away for so long is not waited for any more."""


@dataclass(frozen=True, slots=True)
class CreatedObject:
    """Name and uid of a created object."""

    name: str
    uid: str

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> "CreatedObject":
        """Reads them from the answer of an API, or from the metadata of an object."""
        return cls(str(answer["name"]), str(answer["uid"]))


class TarsyClient(Protocol):
    """A client of the API with an identity and a default namespace."""

    @property
    def namespace(self) -> str:
        """The default namespace: of the option, else of the context."""
        ...

    async def read(self, path: str, right: Right, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Reads a route with GET.

        Args:
            path: the path of the route, see `run_path`.
            right: the permission that a refusal names.
            query: query parameters.

        Raises:
            ApiUseError: the API refused or could not be reached.
        """
        ...

    def streaming(
        self, path: str, right: Right, query: Mapping[str, str] | None = None
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Streams the response of a route in chunks.

        Args:
            path: the path of the route, see `run_path`.
            right: the permission that a refusal names.
            query: query parameters; None: none.

        Raises:
            ApiUseError: the API refused.
            BrokenOff: the stream broke off, or the API is unavailable; the same request may succeed later.
        """
        ...

    async def submit(self, namespace: str, alert: Mapping[str, Any]) -> CreatedObject:
        """Creates an Alert from its manifest; returns its name. Raises ApiUseError."""
        ...

    async def ask(self, namespace: str, investigation: str, question: str) -> CreatedObject:
        """Creates a question about an investigation; returns the name and uid of the ChatMessage.

        Args:
            namespace: of the investigation.
            investigation: its name.
            question: the text of the question.

        Raises:
            ApiUseError: the API refused or could not be reached.
        """
        ...

    async def replay(self, namespace: str, investigation: str, replay: Mapping[str, Any]) -> CreatedObject:
        """Creates a replay of an investigation; returns its name.

        Args:
            namespace: of both.
            investigation: the name of the recorded one.
            replay: the rest of `spec.replay`.

        Raises:
            ApiUseError: the API refused or could not be reached.
        """
        ...

    async def retry(self, namespace: str, investigation: str, chain: str | None, provider: str | None) -> CreatedObject:
        """Creates an Investigation of the alert of a finished one; returns its name and uid.

        Args:
            namespace: of both.
            investigation: the name of the finished one.
            chain: name of another Chain; None: the same.
            provider: name of the LLMProvider of all agents; None: as before.

        Raises:
            ApiUseError: the API refused or could not be reached, or there is nothing to run again.
        """
        ...

    async def want(self, namespace: str, investigation: str, desired: str) -> list[str]:
        """Sets the desired state of an investigation; if it has ended, cancels the questions about it instead.

        Args:
            namespace: of the investigation.
            investigation: its name.
            desired: Cancelled or Concluded; questions can only be cancelled.

        Returns:
            The names of the cancelled questions.

        Raises:
            ApiUseError: the API refused or could not be reached, or the investigation cannot change to this state.
        """
        ...

    async def approvals(self, namespace: str | None, *, decided: bool) -> list[ApprovalItem]:
        """Returns the calls that wait for people, those that expire first at the top.

        Args:
            namespace: of their runs; None: all.
            decided: whether calls that do not wait any more are listed too.

        Raises:
            ApiUseError: the API refused or could not be reached.
        """
        ...

    async def approval(self, namespace: str, name: str) -> ApprovalView:
        """Returns a call that waits for people, by namespace and name of its ToolApproval. Raises ApiUseError."""
        ...

    async def decide(self, shown: ApprovalView, decision: Verdict, reason: str | None) -> ApprovalView:
        """Appends a decision of the user, and returns the call with it.

        Args:
            shown: the call as the user was shown it; the decision carries its digest.
            decision: of the user.
            reason: of the user; None: none.

        Raises:
            ApiUseError: the API refused or could not be reached, or the call does not wait any more.
        """
        ...

    async def review(self, namespace: str, body: ReviewsBody) -> list[ReviewResult]:
        """Says something about findings, in Reviews of the user; returns what became of each.

        Args:
            namespace: of the investigations.
            body: what the user says.

        Raises:
            ApiUseError: the API refused or could not be reached.
        """
        ...

    async def score_again(self, namespace: str, investigation: str) -> None:
        """Asks for another score of an investigation that has ended.

        Args:
            namespace: of the investigation.
            investigation: its name.

        Raises:
            ApiUseError: the API refused or could not be reached, or the investigation cannot be scored.
        """
        ...

    async def score_suite_again(self, namespace: str, suite: str, days: int) -> None:
        """Asks for another score of the investigations of a suite that ended in the last days.

        Args:
            namespace: of the suite.
            suite: its name.
            days: their number.

        Raises:
            ApiUseError: the API refused or could not be reached, or the suite does not score.
        """
        ...

    async def skills(self, namespace: str) -> list[SkillView]:
        """Returns the valid Skills of a namespace, by name. Raises ApiUseError."""
        ...

    async def schedules(self, namespace: str | None) -> list[ScheduleView]:
        """Returns the valid AlertSchedules of a namespace, or of all if None, by name. Raises ApiUseError."""
        ...

    async def quotas(self, namespace: str | None) -> list[QuotaView]:
        """Returns the valid InvestigationQuotas of a namespace, or of all if None, by name. Raises ApiUseError."""
        ...

    async def plan(self, namespace: str, question: PlanQuestion) -> PlanView:
        """Returns the plan that an alert in a namespace would follow, or why there is none. Raises ApiUseError."""
        ...

    async def accept(self, namespace: str, server: str, digests: Mapping[str, str], rest: Mapping[str, Any]) -> str:
        """Accepts definitions of tools in the user's own entry of an MCPServer; returns the username.

        Args:
            namespace: of the MCPServer.
            server: its name.
            digests: the accepted definitions by tool.
            rest: further fields of the entry.

        Raises:
            ApiUseError: the API refused or could not be reached, or the object has changed since.
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
        """Watches an object until `settled` returns a value for one of its states; returns that value.

        Args:
            kind: Alert, Investigation or ChatMessage.
            namespace: of the object.
            name: of the object.
            settled: returns None to continue.
            about: the investigation that a ChatMessage is about.

        Raises:
            ApiUseError: the object is gone (status 404), or may not be read.
        """
        ...

    async def questions(self, namespace: str, investigation: str) -> list[str]:
        """Returns the names of the questions about an investigation, in order. Raises ApiUseError."""
        ...

    async def names(self, kind: str, namespace: str) -> list[str]:
        """Returns the names of the objects of a kind, as far as this API lists them. Raises ApiUseError."""
        ...


def run_path(namespace: str, name: str, part: str) -> str:
    """Returns the path of a part of the record, such as `timeline` or `trace/llm/ID`.

    Args:
        namespace: the namespace of the investigation.
        name: the name of the investigation.
        part: the path below it.
    """
    return f"/namespaces/{namespace}/investigations/{name}/{part}"


def approval_path(namespace: str, name: str, part: str = "") -> str:
    """Returns the path of a ToolApproval, or of a part of it such as `evidence`.

    Args:
        namespace: of the ToolApproval.
        name: of it.
        part: the path below it; empty: itself.
    """
    return f"/namespaces/{namespace}/toolapprovals/{name}" + (f"/{part}" if part else "")


def status_condition(obj: Mapping[str, Any], kind: str, field: str = "status") -> str:
    """Returns a field of a condition of an object; empty without one.

    Args:
        obj: the object.
        kind: the type of the condition.
        field: the field of the condition.
    """
    conditions = (obj.get("status") or {}).get("conditions") or ()
    return next((str(c.get(field, "")) for c in conditions if c.get("type") == kind), "")


async def read_as(
    client: TarsyClient, model: type[_M], path: str, right: Right, query: Mapping[str, str] | None = None
) -> _M:
    """Reads a route as its model; see `TarsyClient.read`.

    Args:
        client: the API.
        model: the model of the response.
        path: the path of the route, see `run_path`.
        right: the permission that a refusal names.
        query: query parameters.

    Raises:
        ApiUseError: the API refused, or its response is of another version.
    """
    return as_model(model, await client.read(path, right, query))


def as_model(model: type[_M], answer: Any) -> _M:
    """Parses a response. Raises ApiUseError if it is of another version."""
    try:
        return model.model_validate(answer)
    except ValidationError as error:
        where = ".".join(str(step) for step in error.errors()[0]["loc"][:6])
        raise ApiUseError(
            f"the response of the server is not understood ({model.__name__}, at {where or 'its top'}): "
            "the server and this command are of different versions"
        ) from None
