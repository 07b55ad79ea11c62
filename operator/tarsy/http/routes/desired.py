"""Cancels or concludes an investigation or the answer to a question.

Decision: the object is patched with the caller's own token, so admission and audit log see the person. A finished run
yields 409 instead of a patch without effect. Cancelling a finished investigation cancels its unanswered questions,
because one button stops whatever is running; the investigation still accepts new questions.
"""

from collections.abc import Iterator
from typing import Literal
from uuid import UUID

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import Conflict, NotFound
from tarsy.http.failures import as_caller_said
from tarsy.http.models import PRODUCT_GROUP
from tarsy.http.route import CheckedRequest, Handler, Route
from tarsy.http.routes.chat import unanswered
from tarsy.http.views.chat import DesiredStateView
from tarsy.kube.client import ApiError
from tarsy.record.reading.conditions import phase

_Kind = Literal["Investigation", "ChatMessage"]
_Wanted = Literal["Cancelled", "Concluded"]
_PLURALS: dict[_Kind, str] = {"Investigation": "investigations", "ChatMessage": "chatmessages"}
_SUMMARIES: dict[tuple[_Kind, _Wanted], str] = {
    ("Investigation", "Cancelled"): "Cancel an investigation; if it has finished, cancel its unanswered questions",
    ("Investigation", "Concluded"): "Conclude an investigation now, from the evidence collected so far",
    ("ChatMessage", "Cancelled"): "Cancel the answer to a question",
    ("ChatMessage", "Concluded"): "Conclude the answer to a question now, from the evidence collected so far",
}


def _setting(kind: _Kind, wanted: _Wanted) -> Handler:
    async def set_desired_state(ask: CheckedRequest) -> DesiredStateView:
        return await _set(ask, kind, wanted)

    return set_desired_state


async def _set(ask: CheckedRequest, kind: _Kind, wanted: _Wanted) -> DesiredStateView:
    which = f"{kind} {ask.namespace}/{ask.name}"
    found = await ask.services.kube.find(kind, ask.namespace, ask.name)
    if found is None:
        raise NotFound(f"there is no {which}")
    uid = found["metadata"]["uid"]
    record = await ask.services.reads.record(UUID(uid))
    if record is not None and record.state.finished:
        if kind == "Investigation" and wanted == "Cancelled" and (waiting := await unanswered(ask)):
            for question in waiting:
                await _patch(ask, "ChatMessage", question.metadata.name, question.metadata.uid, wanted)
            names = tuple(question.metadata.name for question in waiting)
            return DesiredStateView(
                namespace=ask.namespace, name=ask.name, uid=uid, desired_state=wanted, questions=names
            )
        raise Conflict(f"{which} has ended: {phase(record)}")
    if wanted == "Concluded" and found.get("spec", {}).get("desiredState") == "Cancelled":
        raise Conflict(f"{which} is being cancelled")
    await _patch(ask, kind, ask.name, uid, wanted)
    return DesiredStateView(namespace=ask.namespace, name=ask.name, uid=uid, desired_state=wanted)


async def _patch(ask: CheckedRequest, kind: _Kind, name: str, uid: str, wanted: _Wanted) -> None:
    body = {"metadata": {"uid": uid}, "spec": {"desiredState": wanted}}
    try:
        await ask.as_caller().patch(kind, ask.namespace, name, body)
    except ApiError as error:
        raise as_caller_said(error) from None


def _routes() -> Iterator[Route]:
    for (kind, wanted), summary in _SUMMARIES.items():
        verb = {"Cancelled": "cancel", "Concluded": "conclude"}[wanted]
        yield Route(
            method="POST",
            path=f"/namespaces/{{namespace}}/{_PLURALS[kind]}/{{name}}/{verb}",
            operation=f"{verb}{kind}",
            summary=summary,
            handler=_setting(kind, wanted),
            permission=Permission("patch", _PLURALS[kind], group=PRODUCT_GROUP),
            response=DesiredStateView,
            status=202,
        )


ROUTES = tuple(_routes())
