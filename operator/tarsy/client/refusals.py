"""Converts refusals of the API to one sentence with the remedy.

Decision: a permission is named by the role that grants it, because users can ask an administrator for that; the message
of the API server, with verbs and resources, follows in brackets for the administrator.
"""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

from tarsy.client.errors import ApiUseError, BrokenOff
from tarsy.client.plain_text import one_line
from tarsy.http.decision_entry import policy_refusal
from tarsy.kube.client import ApiError

LOOK_THERE = "See `kubectl get apiservice v1alpha1.record.tarsy.dev`"
_ANONYMOUS = 'User "system:anonymous"'
_USER = re.compile(r'User "([^"]{1,256})"')
_NO_RESOURCE = "the server could not find the requested resource"
_SAID = 400


@dataclass(frozen=True, slots=True)
class Right:
    """An action, in words that follow "you may not", and the ClusterRole that permits it."""

    words: str
    role: str


READ_TIMELINE = Right("read the timeline of investigations", "tarsy-viewer")
READ_TRACE = Right("read the trace of investigations", "tarsy-tracer")
READ_OBJECTS = Right("read investigations, alerts and questions", "tarsy-viewer")
READ_TOOLS = Right("read the tools of MCPServers", "tarsy-viewer")
READ_DEFAULTS = Right("read InvestigationDefaults", "tarsy-viewer")
READ_QUOTAS = Right("read InvestigationQuotas", "tarsy-viewer")
READ_SCHEDULES = Right("read AlertSchedules", "tarsy-viewer")
READ_SKILLS = Right("read Skills and their texts", "tarsy-viewer")
ACCEPT_TOOLS = Right("accept tools of MCPServers", "tarsy-tool-acceptor")
WRITE = Right("submit alerts, ask questions, replay, retry, conclude or cancel investigations", "tarsy-investigator")
READ_APPROVALS = Right("read calls of tools that wait for approval", "tarsy-approver")
READ_PLAN = Right("plan alerts with the configuration", "tarsy-investigator")
READ_QUEUE = Right("read the queue", "tarsy-viewer")
READ_WORKERS = Right("list workers", "tarsy-viewer")
READ_OBJECT_HEALTH = Right("read the health of configuration objects", "tarsy-viewer")
READ_REVIEWS = Right("read reviews of findings", "tarsy-viewer")
READ_CALIBRATION = Right("read how often findings were right", "tarsy-viewer")
READ_SCORES = Right("read scores of investigations", "tarsy-viewer")
ASK_SCORE = Right("ask for scores of investigations", "tarsy-investigator")
ASK_SUITE_SCORES = Right("ask for scores of all investigations of a suite", "tarsy-author")
WRITE_REVIEWS = Right("review findings", "tarsy-reviewer")
DECIDE = Right("decide about calls of tools", "tarsy-approver")


def refusal_error(
    error: ApiError, right: Right, namespace: str | None, whom: str, look: str = LOOK_THERE
) -> ApiUseError:
    """Returns the error that ends a command.

    Args:
        error: the error of the API.
        right: the permission that was needed.
        namespace: the namespace of the request; None: all.
        whom: the credentials that were used, such as `context prod`.
        look: the remedy when the API is missing or unavailable.
    """
    message = one_line(error.message, _SAID)
    if error.status == 401 or (error.status == 403 and _ANONYMOUS in error.message):
        sentence = f"the credentials of {whom} are not accepted, they may have expired: log in again"
    elif error.status == 403 and (said := policy_refusal(error.message)) is not None:
        sentence = one_line(said, _SAID)
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


@contextlib.contextmanager
def refusals(right: Right, namespace: str | None, whom: str, look: str = LOOK_THERE) -> Iterator[None]:
    """Raises an error of the API in its block as the error that ends a command; see `refusal_error`.

    Args:
        right: the permission that was needed.
        namespace: the namespace of the request; None: all.
        whom: the credentials that were used, such as `context prod`.
        look: the remedy when the API is missing or unavailable.
    """
    try:
        yield
    except ApiError as error:
        raise refusal_error(error, right, namespace, whom, look) from None


def namespace_of(path: str) -> str | None:
    """Returns the namespace in the path of a route; None for all namespaces."""
    return path.removeprefix("/namespaces/").partition("/")[0] if path.startswith("/namespaces/") else None


def _forbidden(error: ApiError, right: Right, namespace: str | None, message: str) -> str:
    found = _USER.search(error.message)
    user = f" --user={one_line(found[1], 256)}" if found else ""
    if namespace is None:
        make, where = f"kubectl create clusterrolebinding NAME --clusterrole={right.role}{user}", "in all namespaces"
    else:
        make = f"kubectl create rolebinding NAME --clusterrole={right.role}{user} -n {namespace}"
        where = f"in namespace {namespace}"
    return f"you may not {right.words} {where}: ask for the role {right.role} there, as by `{make}` ({message})"
