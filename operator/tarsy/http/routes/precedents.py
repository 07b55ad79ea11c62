"""Returns the earlier investigations that the agents of a run were given.

Decision: those of another namespace are shown to callers who may read them there. Whose rights counted when the run was
accepted was its author; the reader of this page is somebody else.
"""

from tarsy.http.authentication.identity import Permission
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes.investigations import RunUidQuery
from tarsy.http.routes.lookup import located
from tarsy.http.views.precedents import PrecedentList, PrecedentView
from tarsy.store.reading.trace import Trace

_READ_PRECEDENTS = Permission("get", "investigations", "timeline")


async def get_precedents(ask: CheckedRequest) -> PrecedentList:
    """Returns the precedents of one investigation."""
    run = await located(ask, ask.query(RunUidQuery).uid)
    given = await Trace(ask.services.pool).given(run)
    found = () if given is None else given.precedents
    known = await ask.services.reads.known([one.id for one in found]) if found else set()
    access = ask.services.access
    shown = [
        PrecedentView.of(one, one.id in known)
        for one in found
        if one.namespace == ask.namespace or await access.allowed(ask.caller, _READ_PRECEDENTS, one.namespace, one.name)
    ]
    return PrecedentList(items=tuple(shown), hidden=len(found) - len(shown))


ROUTES = (
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigations/{name}/timeline/precedents",
        operation="getPrecedents",
        summary="Get the earlier investigations that an investigation's agents were given as hints",
        handler=get_precedents,
        permission=_READ_PRECEDENTS,
        query=RunUidQuery,
        response=PrecedentList,
        aggregated=True,
    ),
)
