"""Questions about an investigation: asking them, and reading the answers.

Decision: questions queue (DESIGN section 6), but who asks over HTTP is told 409 while one is unanswered, as the seeds
have it: a person at a screen wants to know, a program that wants to queue creates ChatMessages. Two who ask at the very
same moment may both be taken; their questions are answered one after the other.
"""

from typing import Any
from uuid import UUID

from pydantic import Field

from tarsy.http.errors import Conflict, NotFound
from tarsy.http.failures import as_caller_said
from tarsy.http.route import PRODUCT_GROUP, Ask, Permission, Route
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
from tarsy.store.trace import Trace

_PREFIX = 40


class ChatQuery(RunUidQuery):
    """Which questions, and how many."""

    limit: Limit = 50
    token: Token | None = Field(default=None, alias="continue")


async def list_chat_messages(ask: Ask) -> ChatMessageList:
    """The questions about an investigation, in their order; those that are not on record stand at the end."""
    query = ask.query(ChatQuery)
    about = await located(ask, query.uid)
    question, after = f"chat/{about}", 0
    if query.token is not None:
        (place,) = paging.decode(question, query.token, 1)
        after = paging.number(place)
    # Before the record is read: a question that gets into the record meanwhile is then on both sides, never on neither.
    objects = await _not_recorded(ask) if query.uid is None else []
    found = await Trace(ask.services.pool).answers(about, query.limit + 1, after)
    items = [ChatMessageView.of(one, ask.namespace) for one in found[: query.limit]]
    if len(found) > query.limit:
        token = paging.encode(question, (str(found[query.limit - 1].place),))
        return ChatMessageList(items=tuple(items), next=token)
    recorded = {one.uid for one in items}
    waiting = [view for view in map(ChatMessageView.not_recorded, objects) if view.uid not in recorded]
    waiting.sort(key=lambda one: (str(one.asked_at), one.name))
    return ChatMessageList(items=(*items, *waiting[: query.limit]), next=None)


async def ask_question(ask: Ask) -> Asked:
    """Creates a ChatMessage."""
    body, investigation = ask.body(Question), f"{ask.namespace}/{ask.name}"
    found = await ask.services.kube.find("Investigation", ask.namespace, ask.name)
    if found is None:
        raise NotFound(f"there is no investigation {investigation}; one that has expired takes no questions")
    record = await ask.services.reads.record(UUID(found["metadata"]["uid"]))
    if record is None or not record.state.finished:
        raise Conflict(f"investigation {investigation} has not ended yet; ask when it has")
    if record.state is State.CANCELLED:
        raise Conflict(f"investigation {investigation} was cancelled; questions are taken about others")
    if await Trace(ask.services.pool).unanswered(record.id) or any(map(_waits, await _not_recorded(ask))):
        raise Conflict(f"a question about investigation {investigation} is not answered yet; ask when it is")
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


async def unanswered(ask: Ask) -> list[ChatMessage]:
    """The questions about the investigation in the path that wait for an answer or for their turn."""
    return [message for message in await _asked(ask) if _waits(message)]


async def _asked(ask: Ask) -> list[ChatMessage]:
    """The questions about the investigation in the path."""
    found = []
    for raw in await ask.services.kube.list(ChatMessage.KIND, ask.namespace):
        try:
            message = parse_as(ChatMessage, raw)
        except InvalidResource:
            continue
        if message.spec.investigation_ref.name == ask.name:
            found.append(message)
    return found


async def _not_recorded(ask: Ask) -> list[ChatMessage]:
    """The questions about the investigation in the path that the record does not know."""
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
        summary="Questions about an investigation, and their answers",
        handler=list_chat_messages,
        permission=Permission("list", "chatmessages", group=PRODUCT_GROUP),
        query=ChatQuery,
        response=ChatMessageList,
    ),
    Route(
        method="POST",
        path="/namespaces/{namespace}/investigations/{name}/chatmessages",
        operation="askQuestion",
        summary="Ask about an investigation that has ended; 409 while a question is unanswered",
        handler=ask_question,
        permission=Permission("create", "chatmessages", group=PRODUCT_GROUP),
        body=Question,
        response=Asked,
        status=202,
    ),
)
