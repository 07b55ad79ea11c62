"""Decides the admission of new Alerts, Investigations, ChatMessages and Reviews, and sets their author.

Decision: the author is the user that the API server authenticated. An object that names its creating user gets the
current identity of that user. An object that names another user is refused, unless the creating user has the verb
`attribute`: the operator has it, to create Investigations in the name of an Alert's author, and so may an administrator
who restores a backup. The reader of an Alert, whose rights limit what is read for it, and the mark of a question that
came from Slack need the same verb.

Groups are truncated to the limits of the kind, never refused: fewer groups mean fewer permissions.
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
"""Verb that allows creating an object in the name of another user."""

PROMOTE: Final = "promote"
"""Verb that allows letting a revision of a Chain serve without a passed evaluation."""

CHAINS: Final = "chains"
REVIEWS: Final = "reviews"

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
    """An AdmissionRequest of admission.k8s.io/v1."""

    uid: str
    operation: str
    resource: _Resource
    namespace: str = ""
    user_info: _User
    name: str = ""
    object: dict[str, Any] | None = None
    old_object: dict[str, Any] | None = None


class AdmissionReview(_Lax):
    """An AdmissionReview."""

    request: Request


async def stamped(request: Request, may: May) -> dict[str, Any]:
    """Returns the AdmissionResponse: a patch that sets the author, no change, or a refusal with a message.

    Args:
        request: the request.
        may: checks a permission of a user.

    Raises:
        ApiError: the permission could not be checked; the object must not be created.
    """
    if request.resource.resource == CHAINS:
        return await _promoted(request, may)
    if request.resource.resource == REVIEWS and request.operation == "UPDATE":
        return await _own_review(request, may)
    spec = (request.object or {}).get("spec")
    if request.operation != "CREATE" or not isinstance(spec, Mapping):
        return {"uid": request.uid, "allowed": True}  # an object without a spec is refused by its schema
    user, claimed = request.user_info, spec.get("author")
    subject = Subject(user.username, user.uid, user.groups, user.extra)
    what = ResourceAttributes(ATTRIBUTE, GROUP, request.resource.resource, namespace=request.namespace)
    if spec.get("reader") is not None and not await may(subject, what):
        return _refused(request, f"spec.reader: only the intake sets it; omit it ({_permission(request)})")
    if spec.get("via") is not None and not await may(subject, what):
        return _refused(request, f"spec.via: only the operator sets it; omit it ({_permission(request)})")
    if claimed is None or _name(claimed) == user.username:
        return _with(request, _author(user))
    if await may(subject, what):
        return {"uid": request.uid, "allowed": True}
    return _refused(
        request,
        f"spec.author: {_name(claimed) or 'the value'} is not the creating user {user.username}; omit it, admission "
        f"sets it ({_permission(request)})",
    )


async def _promoted(request: Request, may: May) -> dict[str, Any]:
    """Decides the admission of a Chain: who overrides or loosens its promotion needs the verb `promote`.

    An override that stays as it was keeps its author; every other one gets the requesting user.
    """
    wanted, before = _promotion(request.object), _promotion(request.old_object)
    override, was = wanted.get("override"), before.get("override")
    overrides = isinstance(override, Mapping) and override != was
    gate = ("policy", "suiteRef")
    loosens = before.get("policy") == "WhenPassed" and any(wanted.get(key) != before.get(key) for key in gate)
    if not overrides and not loosens:
        return {"uid": request.uid, "allowed": True}
    user = request.user_info
    subject = Subject(user.username, user.uid, user.groups, user.extra)
    what = ResourceAttributes(PROMOTE, GROUP, CHAINS, namespace=request.namespace, name=request.name)
    if not await may(subject, what):
        field = "spec.promotion.override" if overrides else "spec.promotion"
        return _refused(
            request,
            f"{field}: {user.username} may not promote Chain {request.name}; in namespace {request.namespace} get "
            f"permission for the verb {PROMOTE} on {CHAINS}.{GROUP} {request.name}, such as by the role tarsy-promoter",
        )
    if not overrides:
        return {"uid": request.uid, "allowed": True}
    return _with(request, _author(user), "/spec/promotion/override/author")


async def _own_review(request: Request, may: May) -> dict[str, Any]:
    """Decides the admission of a changed Review: only its author says something else in it."""
    old, user = request.old_object or {}, request.user_info
    before = old.get("spec")
    author = _name(before.get("author")) if isinstance(before, Mapping) else ""
    if author == user.username or (request.object or {}).get("spec") == before:
        return {"uid": request.uid, "allowed": True}
    subject = Subject(user.username, user.uid, user.groups, user.extra)
    if await may(subject, ResourceAttributes(ATTRIBUTE, GROUP, REVIEWS, namespace=request.namespace)):
        return {"uid": request.uid, "allowed": True}
    return _refused(
        request,
        f"spec: {author or 'nobody'} wrote Review {request.name}, and only its author may change it; create a Review "
        f"of your own ({_permission(request)})",
    )


def _promotion(obj: Mapping[str, Any] | None) -> Mapping[str, Any]:
    spec = (obj or {}).get("spec")
    found = spec.get("promotion") if isinstance(spec, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _permission(request: Request) -> str:
    resource = f"{request.resource.resource}.{GROUP}"
    return f"or get permission for the verb {ATTRIBUTE} on {resource} in namespace {request.namespace}"


def _refused(request: Request, message: str) -> dict[str, Any]:
    status = {"code": 403, "reason": "Forbidden", "message": message}
    return {"uid": request.uid, "allowed": False, "status": status}


def _author(user: _User) -> Author:
    groups = tuple(group for group in user.groups if 0 < len(group) <= MAX_GROUP)[:MAX_GROUPS]
    # The API server validates the author (such as a name that is too long) by the schema of the kind.
    return Author.model_construct(username=user.username, uid=user.uid or None, groups=groups)


def _with(request: Request, author: Author, path: str = "/spec/author") -> dict[str, Any]:
    patch = [{"op": "add", "path": path, "value": author.to_dict()}]
    encoded = base64.b64encode(orjson.dumps(patch)).decode()
    return {"uid": request.uid, "allowed": True, "patchType": "JSONPatch", "patch": encoded}


def _name(author: object) -> str:
    name = author.get("username") if isinstance(author, Mapping) else None
    return name if isinstance(name, str) else ""
