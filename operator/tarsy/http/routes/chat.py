"""Asks questions about an investigation and returns the answers.

Decision: the API refuses a question with 409 while another one is unanswered, so that a person learns of it at once. A
program that wants to queue questions creates ChatMessages. Two concurrent requests may both succeed; their questions
are answered one after the other.
"""

from typing import Any
from uuid import UUID

from pydantic import Field

from tarsy.http.authentication.identity import Permission
from tarsy.http.errors import Conflict, NotFound
from tarsy.http.failures import as_caller_said
from tarsy.http.models import PRODUCT_GROUP
from tarsy.http.route import CheckedRequest, Route
from tarsy.http.routes import paging
from tarsy.http.routes.investigations import RunUidQuery
from tarsy.http.routes.lookup import located
from tarsy.http.routes.parameters import Limit, Token
from tarsy.http.views.chat import Asked, ChatMessageList, ChatMessageView, Question
from tarsy.kube.client import ApiError
from tarsy.record.run import State
from tarsy.resources.meta import API_VERSION, condition
from tarsy.resources.parse import InvalidResource, parse_as
from tarsy.resources.v1alpha1 import ChatMessage
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.store.reading.trace import Trace

_PREFIX = 40


class ChatQuery(RunUidQuery):
    """Investigation, and page of its questions."""

    limit: Limit = 50
    token: Token | None = Field(default=None, alias="continue")


async def list_chat_messages(ask: CheckedRequest) -> ChatMessageList:
    """Lists the questions about an investigation in order; questions that are not recorded come last."""
    query = ask.query(ChatQuery)
    about = await located(ask, query.uid)
    question, after = f"chat/{about}", 0
    if query.token is not None:
        (place,) = paging.decode_continue(question, query.token, 1)
        after = paging.number(place)
    # Before the record is read: a question that gets into the record meanwhile is then on both sides, never on neither.
    objects = await _not_recorded(ask) if query.uid is None else []
    found = await Trace(ask.services.pool).answers(about, query.limit + 1, after)
    items = [ChatMessageView.of(one, ask.namespace) for one in found[: query.limit]]
    if len(found) > query.limit:
        token = paging.encode_continue(question, (str(found[query.limit - 1].place),))
        return ChatMessageList(items=tuple(items), next=token)
    recorded = {one.uid for one in items}
    waiting = [view for view in map(ChatMessageView.not_recorded, objects) if view.uid not in recorded]
    waiting.sort(key=lambda one: (str(one.asked_at), one.name))
    return ChatMessageList(items=(*items, *waiting[: query.limit]), next=None)


async def ask_question(ask: CheckedRequest) -> Asked:
    """Creates a ChatMessage."""
    body, investigation = ask.body(Question), f"{ask.namespace}/{ask.name}"
    found = await ask.services.kube.find("Investigation", ask.namespace, ask.name)
    if found is None:
        raise NotFound(f"there is no investigation {investigation}; an expired investigation accepts no questions")
    record = await ask.services.reads.record(UUID(found["metadata"]["uid"]))
    if record is None or not record.state.finished:
        raise Conflict(f"investigation {investigation} has not finished; ask again when it has")
    if record.state is State.CANCELLED:
        raise Conflict(f"investigation {investigation} was cancelled and accepts no questions; ask about another one")
    if await Trace(ask.services.pool).unanswered(record.id) or any(map(_waits, await _not_recorded(ask))):
        raise Conflict(f"a question about investigation {investigation} is not answered yet; ask again when it is")
    named = {"name": body.name} if body.name else {"generateName": f"{ask.name[:_PREFIX].rstrip('.-')}-"}
    wanted = {
        "apiVersion": API_VERSION,
        "kind": ChatMessage.KIND,
        "metadata": {"namespace": ask.namespace, **named},
        "spec": {"investigationRef": {"name": ask.name}, "question": body.question},
    }
    try:
        made: dict[str, Any] = await ask.as_caller().create(wanted)
    except ApiError as error:
        raise as_caller_said(error) from None
    meta = made["metadata"]
    return Asked(namespace=meta["namespace"], name=meta["name"], uid=meta["uid"], investigation=ask.name)


async def unanswered(ask: CheckedRequest) -> list[ChatMessage]:
    """Lists the unanswered questions about the investigation in the path, queued ones included."""
    return [message for message in await _asked(ask) if _waits(message)]


async def _asked(ask: CheckedRequest) -> list[ChatMessage]:
    """Lists the questions about the investigation in the path."""
    found = []
    for raw in await ask.services.kube.list(ChatMessage.KIND, ask.namespace):
        try:
            message = parse_as(ChatMessage, raw)
        except InvalidResource:
            continue
        if message.spec.investigation_ref.name == ask.name:
            found.append(message)
    return found


async def _not_recorded(ask: CheckedRequest) -> list[ChatMessage]:
    """Lists the questions about the investigation in the path that are not recorded."""
    found = await _asked(ask)
    known = await ask.services.reads.known(UUID(message.metadata.uid) for message in found)
    return [message for message in found if UUID(message.metadata.uid) not in known]


def _waits(message: ChatMessage) -> bool:
    finished = condition(message.status.conditions, ConditionType.FINISHED)
    return message.spec.desired_state != "Cancelled" and (finished is None or finished.status != "True")


ROUTES = (
    Route(
        method="GET",
        path="/namespaces/{namespace}/investigations/{name}/chatmessages",
        operation="listChatMessages",
        summary="List the questions about an investigation and their answers",
        handler=list_chat_messages,
        permission=Permission("list", "chatmessages", group=PRODUCT_GROUP),
        query=ChatQuery,
        response=ChatMessageList,
    ),
    Route(
        method="POST",
        path="/namespaces/{namespace}/investigations/{name}/chatmessages",
        operation="askQuestion",
        summary="Ask a question about a finished investigation; returns 409 while another question is unanswered",
        handler=ask_question,
        permission=Permission("create", "chatmessages", group=PRODUCT_GROUP),
        body=Question,
        response=Asked,
        status=202,
    ),
)
