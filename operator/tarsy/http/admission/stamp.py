"""Who did it: what admission answers about an Alert, an Investigation or a ChatMessage that somebody is creating.

Decision: the author is the one whom the API server authenticated, whatever the object says. Who names themselves gets
their own identity as it is now; who names another is refused, unless they may `attribute` such objects to others: the
operator may, whose Investigations are those of an Alert's author, and an administrator who restores a backup.

Groups are cut to what the kind takes, never refused: who has fewer groups may do less, not more.
"""

import base64
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import orjson
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from tarsy.kube.access import ResourceAttributes, Subject
from tarsy.resources.meta import GROUP
from tarsy.resources.v1alpha1.common import MAX_GROUP, MAX_GROUPS, Author

ATTRIBUTE: Final = "attribute"
"""The verb of who may create an object in another's name."""

May = Callable[[Subject, ResourceAttributes], Awaitable[bool]]


class _Lax(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", alias_generator=to_camel)


class _User(_Lax):
    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = Field(default_factory=dict)


class _Resource(_Lax):
    resource: str


class Request(_Lax):
    """What is asked: who creates which object (admission.k8s.io/v1, AdmissionRequest)."""

    uid: str
    operation: str
    resource: _Resource
    namespace: str = ""
    user_info: _User
    object: dict[str, Any] | None = None


class Review(_Lax):
    """An AdmissionReview."""

    request: Request


async def stamped(request: Request, may: May) -> dict[str, Any]:
    """The answer: the author to be set, nothing to be changed, or a refusal in a sentence.

    Args:
        request: what is asked.
        may: asks whether somebody may do something.

    Raises:
        ApiError: nobody could say who may name another; the object must not be created then.
    """
    spec = (request.object or {}).get("spec")
    if request.operation != "CREATE" or not isinstance(spec, Mapping):
        return {"uid": request.uid, "allowed": True}  # an object without a spec is refused by its schema
    user, claimed = request.user_info, spec.get("author")
    if claimed is None or _name(claimed) == user.username:
        return _with(request, _author(user))
    subject = Subject(user.username, user.uid, user.groups, user.extra)
    if await may(subject, ResourceAttributes(ATTRIBUTE, GROUP, request.resource.resource, namespace=request.namespace)):
        return {"uid": request.uid, "allowed": True}
    message = (
        f"spec.author: {_name(claimed) or 'the value'} is not the creating user {user.username}; omit it, admission "
        f"sets it (or get permission for the verb {ATTRIBUTE} on {request.resource.resource}.{GROUP} in namespace "
        f"{request.namespace})"
    )
    status = {"code": 403, "reason": "Forbidden", "message": message}
    return {"uid": request.uid, "allowed": False, "status": status}


def _author(user: _User) -> Author:
    groups = tuple(group for group in user.groups if 0 < len(group) <= MAX_GROUP)[:MAX_GROUPS]
    # What the kind refuses (a name that is too long) is for the API server to say, by the kind's schema.
    return Author.model_construct(username=user.username, uid=user.uid or None, groups=groups)


def _with(request: Request, author: Author) -> dict[str, Any]:
    patch = [{"op": "add", "path": "/spec/author", "value": author.to_dict()}]
    encoded = base64.b64encode(orjson.dumps(patch)).decode()
    return {"uid": request.uid, "allowed": True, "patchType": "JSONPatch", "patch": encoded}


def _name(author: object) -> str:
    name = author.get("username") if isinstance(author, Mapping) else None
    return name if isinstance(name, str) else ""
