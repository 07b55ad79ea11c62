"""Declares the tools of the endpoint: name, arguments, and the route that each calls.

A tool is data and one small function, as a route is. Arguments are pydantic models: their JSON schemas are what clients
show, and a wrong argument is refused with the sentence of the API.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tarsy.http.calling import call_route
from tarsy.http.errors import Unavailable
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes import alerts, chat, evidence, investigations, plans, timeline
from tarsy.http.views.chat import MAX_QUESTION
from tarsy.http.views.timeline import TimelineView

MAX_WAIT_SECONDS: Final = 25
MAX_EVENTS: Final = 200
_ROUTES: Final[Mapping[str, Route]] = {
    route.operation: route
    for module in (alerts, chat, evidence, investigations, plans, timeline)
    for route in module.ROUTES
}

_Namespace = Annotated[str, Field(description="Namespace.")]
_Name = Annotated[str, Field(description="Name of the Investigation.")]


class Arguments(BaseModel):
    """Base of the arguments of a tool; unknown ones are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SubmitAlert(Arguments):
    """An alert to investigate."""

    namespace: _Namespace
    alert_type: Annotated[str, Field(description="Type of the alert, such as KubePodCrashLooping.")]
    data: Annotated[str, Field(description="Text of the alert in any format, at most 1 MiB.")]
    chain: Annotated[str | None, Field(description="Name of the Chain. Selected by the type when omitted.")] = None
    name: Annotated[str | None, Field(description="Name of the Alert. Generated when omitted.")] = None


class ListInvestigations(Arguments):
    """Filters of the list."""

    namespaces: Annotated[
        tuple[str, ...], Field(max_length=20, description="Only these. All when omitted, for those who may list all.")
    ] = ()
    phase: Annotated[
        Literal["Queued", "Running", "Succeeded", "Failed", "Cancelled", "TimedOut"] | None,
        Field(description="Only investigations in this phase."),
    ] = None
    alert_type: Annotated[str | None, Field(description="Only this alert type.")] = None
    chain: Annotated[str | None, Field(description="Only this chain: name, or namespace/name.")] = None
    limit: Annotated[int, Field(ge=1, le=50, description="Maximum number.")] = 20


class SearchRecords(Arguments):
    """Text to search for."""

    text: Annotated[str, StringConstraints(min_length=3, max_length=200), Field(description="Words to search for.")]
    namespaces: Annotated[tuple[str, ...], Field(max_length=20, description="Only these.")] = ()
    whole_timeline: Annotated[
        bool, Field(description="Search for the exact text in alerts and timelines too. Slower.")
    ] = False
    limit: Annotated[int, Field(ge=1, le=50, description="Maximum number.")] = 20


class OneInvestigation(Arguments):
    """An investigation."""

    namespace: _Namespace
    name: _Name


class ReadTimeline(OneInvestigation):
    """A page of the timeline."""

    after: Annotated[int, Field(ge=0, description="Only changes after this revision, as the last page returned.")] = 0
    limit: Annotated[int, Field(ge=1, le=MAX_EVENTS, description="Maximum number of events.")] = 50


class ReadChanges(Arguments):
    """Arguments of the tool about changes."""

    namespace: _Namespace
    target: Annotated[
        str | None, Field(description="Object that fails, such as deploy/checkout. Everything when omitted.")
    ] = None
    since: Annotated[str, Field(description="How far back, such as 2h; at most 7d.")] = "4h"


class AskQuestion(OneInvestigation):
    """A question about a finished investigation."""

    question: Annotated[str, StringConstraints(min_length=1, max_length=MAX_QUESTION), Field(description="Question.")]


class PlanFor(Arguments):
    """The alert to plan for."""

    namespace: _Namespace
    alert_type: Annotated[str, Field(description="Type of the alert.")]
    chain: Annotated[str | None, Field(description="Name of the Chain. Selected by the type when omitted.")] = None


class WaitFor(OneInvestigation):
    """Arguments of the tool that waits."""

    seconds: Annotated[
        int, Field(ge=1, le=MAX_WAIT_SECONDS, description="Maximum time. Call it again when the run goes on.")
    ] = MAX_WAIT_SECONDS


_Result = BaseModel | dict[str, Any]


@dataclass(frozen=True, slots=True)
class EndpointTool:
    """A tool: its arguments, what it does, and whether it only reads."""

    name: str
    description: str
    arguments: type[Arguments]
    call: Callable[[CheckedRequest, Any], Awaitable[_Result]]
    reads: bool = True


async def _submit(ask: CheckedRequest, given: SubmitAlert) -> _Result:
    body: dict[str, Any] = {"alertType": given.alert_type, "data": given.data}
    body |= {"chainRef": {"name": given.chain}} if given.chain else {}
    body |= {"name": given.name} if given.name else {}
    return await call_route(ask, _ROUTES["submitAlert"], {"namespace": given.namespace}, body=body)


async def _list(ask: CheckedRequest, given: ListInvestigations) -> _Result:
    query = {
        "namespace": given.namespaces,
        "state": given.phase,
        "alertType": given.alert_type,
        "chain": given.chain,
        "limit": given.limit,
    }
    return await call_route(ask, _ROUTES["listInvestigations"], {}, query)


async def _search(ask: CheckedRequest, given: SearchRecords) -> _Result:
    where = "timeline" if given.whole_timeline else "summary"
    query = {"namespace": given.namespaces, "search": given.text, "searchIn": where, "limit": given.limit}
    return await call_route(ask, _ROUTES["listInvestigations"], {}, query)


async def _get(ask: CheckedRequest, given: OneInvestigation) -> _Result:
    return await call_route(ask, _ROUTES["getInvestigation"], _path(given))


async def _why(ask: CheckedRequest, given: OneInvestigation) -> _Result:
    head = (await _page(ask, given, {"limit": 1})).investigation
    if head.finding is None:
        return {"name": head.name, "state": head.state.value, "finding": "There is no finding yet."}
    keep = {"namespace", "name", "uid", "state", "alert_type", "chain", "started_at", "finished_at", "finding"}
    return head.model_dump(mode="json", by_alias=True, include=keep)


async def _timeline(ask: CheckedRequest, given: ReadTimeline) -> _Result:
    return await _page(ask, given, {"after": given.after, "limit": given.limit})


async def _changes(ask: CheckedRequest, given: ReadChanges) -> _Result:
    query = {"target": given.target, "since": given.since}
    return await call_route(ask, _ROUTES["getChanges"], {"namespace": given.namespace}, query)


async def _ask(ask: CheckedRequest, given: AskQuestion) -> _Result:
    return await call_route(ask, _ROUTES["askQuestion"], _path(given), body={"question": given.question})


async def _answers(ask: CheckedRequest, given: OneInvestigation) -> _Result:
    return await call_route(ask, _ROUTES["listChatMessages"], _path(given))


async def _plan(ask: CheckedRequest, given: PlanFor) -> _Result:
    body = {"alertType": given.alert_type} | ({"chain": given.chain} if given.chain else {})
    return await call_route(ask, _ROUTES["planAlert"], {"namespace": given.namespace}, body=body)


async def _wait(ask: CheckedRequest, given: WaitFor) -> _Result:
    head = (await _page(ask, given, {"limit": 1})).investigation
    if ask.services.live is None:
        raise Unavailable("waiting is unavailable now; call get_investigation again later")
    with ask.services.live.wakeups(head.uid) as changes, contextlib.suppress(TimeoutError):
        async with asyncio.timeout(given.seconds):
            while not head.state.finished:
                await changes.wait()
                head = (await _page(ask, given, {"limit": 1})).investigation
    done = head.state.finished
    told = "It has ended; why has its finding." if done else "It goes on; call wait again."
    return {"name": head.name, "state": head.state.value, "finished": done, "next": told}


async def _page(ask: CheckedRequest, given: OneInvestigation, query: Mapping[str, Any]) -> TimelineView:
    found = await call_route(ask, _ROUTES["getTimeline"], _path(given), query)
    if not isinstance(found, TimelineView):
        raise TypeError("getTimeline returns a TimelineView")
    return found


def _path(given: OneInvestigation) -> dict[str, str]:
    return {"namespace": given.namespace, "name": given.name}


ENDPOINT_TOOLS: Final[tuple[EndpointTool, ...]] = (
    EndpointTool(
        "submit_alert",
        "Submit an alert: TARSy investigates it. Returns the Alert; wait and why take the name of its Investigation, "
        "which list_investigations shows.",
        SubmitAlert,
        _submit,
        reads=False,
    ),
    EndpointTool("list_investigations", "List investigations, the newest first.", ListInvestigations, _list),
    EndpointTool(
        "get_investigation", "Get an investigation: alert, stages, agents, cost, finding.", OneInvestigation, _get
    ),
    EndpointTool(
        "why",
        "Get the finding of an investigation: each claim with the quotes it rests on, and whether they were found in "
        "the recorded results.",
        OneInvestigation,
        _why,
    ),
    EndpointTool("timeline", "Read what happened in an investigation, in order.", ReadTimeline, _timeline),
    EndpointTool("search", "Find past investigations by words.", SearchRecords, _search),
    EndpointTool(
        "changes",
        "List what changed in a namespace before something failed, the likeliest cause first.",
        ReadChanges,
        _changes,
    ),
    EndpointTool(
        "ask",
        "Ask a question about a finished investigation; answers has the answer later.",
        AskQuestion,
        _ask,
        reads=False,
    ),
    EndpointTool("answers", "List the questions about an investigation and their answers.", OneInvestigation, _answers),
    EndpointTool(
        "plan", "Get the plan that an alert of a type would follow, without starting anything.", PlanFor, _plan
    ),
    EndpointTool("wait", "Wait until an investigation ends, at most 25 seconds.", WaitFor, _wait),
)
BY_NAME: Final[Mapping[str, EndpointTool]] = {tool.name: tool for tool in ENDPOINT_TOOLS}
