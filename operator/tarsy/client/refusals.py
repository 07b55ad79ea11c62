"""What the API said no with, as one sentence that names the remedy.

Decision: a right is named by the role that gives it, because that is what a person can ask an administrator for; the
API server's own words name verbs and resources, and follow in brackets for whoever looks after the roles.
"""

import re
from dataclasses import dataclass

from tarsy.client.errors import ApiUseError, BrokenOff
from tarsy.client.plain_text import one_line
from tarsy.kube.client import ApiError

LOOK_THERE = "See `kubectl get apiservice v1alpha1.record.tarsy.dev`"
_ANONYMOUS = 'User "system:anonymous"'
_USER = re.compile(r'User "([^"]{1,256})"')
_NO_RESOURCE = "the server could not find the requested resource"
_SAID = 400


@dataclass(frozen=True, slots=True)
class Right:
    """What a person wants to do, in words that follow "you may not", and the ClusterRole that gives it."""

    words: str
    role: str


READ_TIMELINE = Right("read the timeline of investigations", "tarsy-viewer")
READ_TRACE = Right("read the trace of investigations", "tarsy-tracer")
READ_OBJECTS = Right("read investigations, alerts and questions", "tarsy-viewer")
WRITE = Right("submit alerts, ask questions, conclude or cancel investigations", "tarsy-investigator")


def refusal_error(
    error: ApiError, right: Right, namespace: str | None, whom: str, look: str = LOOK_THERE
) -> ApiUseError:
    """The error to end a command with.

    Args:
        error: what the API said.
        right: what it was asked for.
        namespace: where; None: in all of them.
        whom: which credentials were used, such as `context prod`.
        look: where to look when the API is not there, or not now.
    """
    message = one_line(error.message, _SAID)
    if error.status == 401 or (error.status == 403 and _ANONYMOUS in error.message):
        sentence = f"the credentials of {whom} are not accepted, they may have expired: log in again"
    elif error.status == 403:
        sentence = _forbidden(error, right, namespace, message)
    elif error.status == 404 and (error.reason != "NotFound" or _NO_RESOURCE in error.message):
        sentence = f"the API of TARSy is not there; is it installed? {look}"
    elif error.status == 503:
        sentence = f"the record cannot be read now: {message}. {look}"
    else:
        sentence = message
    away = error.transient and error.reason != "NoConfiguration"
    return BrokenOff(sentence, error.status) if away else ApiUseError(sentence, error.status)


def _forbidden(error: ApiError, right: Right, namespace: str | None, message: str) -> str:
    found = _USER.search(error.message)
    user = f" --user={one_line(found[1], 256)}" if found else ""
    if namespace is None:
        make, where = f"kubectl create clusterrolebinding NAME --clusterrole={right.role}{user}", "in all namespaces"
    else:
        make = f"kubectl create rolebinding NAME --clusterrole={right.role}{user} -n {namespace}"
        where = f"in namespace {namespace}"
    return f"you may not {right.words} {where}: ask for the role {right.role} there, as by `{make}` ({message})"
