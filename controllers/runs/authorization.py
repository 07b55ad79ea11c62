"""Checks the rights of an author when an investigation, or a question about one, is to be accepted.

Watches: nothing of its own. Decides: whether the author has the verb `use` on the Chain and on each MCPServer that the
alert brought itself, each in its own namespace, and the verb `get` on what the operator reads because the author names
it: ConfigMaps, Alerts, the timeline of an investigation that is asked about, the trace of one that is replayed. Writes:
nothing.

The Kubernetes API is asked each time, so a right that is given later counts at the next look; one that is taken away
stops no run that was accepted. Where nobody stamps authors (no admission is installed) there is nobody to ask
about, and whoever may create an object may run it, unless authors are required.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from tarsy.controllers.machinery.cache import Key
from tarsy.kube.access import UNDECIDED, ResourceAttributes, Subject, may
from tarsy.kube.client import ApiError, KubeClient
from tarsy.plan.errors import FieldPath
from tarsy.resources.meta import GROUP
from tarsy.resources.v1alpha1 import KINDS
from tarsy.resources.v1alpha1.alert import AlertContent
from tarsy.resources.v1alpha1.common import Author

_RECORD_GROUP = "record.tarsy.dev"
"""The API group of what the record holds of an object: its timeline, its trace."""

UNKNOWN_AUTHOR = (
    "AuthorUnknown",
    "spec.author: no author is set, and authors are required; install the admission webhook "
    "(manifests/base/admission.yaml), then create the object again",
)
"""Why an object without an author is refused where authors are required: reason and message."""


@dataclass(frozen=True, slots=True)
class RequiredRead:
    """Names an object that the operator reads for an author, and the field that names it."""

    what: ResourceAttributes
    kind: str
    field: str


def config_map_reads(alert: AlertContent, at: FieldPath) -> list[RequiredRead]:
    """Lists the ConfigMaps that an alert names; `at` is the field that holds the alert."""
    refs = [
        (alert.data_from.config_map_key_ref if alert.data_from else None, at / "dataFrom"),
        (alert.runbook.config_map_key_ref if alert.runbook else None, at / "runbook"),
    ]
    return [
        RequiredRead(
            ResourceAttributes("get", "", "configmaps", namespace=at.namespace, name=ref.name),
            "ConfigMap",
            _field(field),
        )
        for ref, field in ((ref, field / "configMapKeyRef") for ref, field in refs if ref is not None)
    ]


def alert_read(name: str, at: FieldPath) -> RequiredRead:
    """Returns the read of the Alert that an Investigation names in field `at`."""
    what = ResourceAttributes("get", GROUP, KINDS["Alert"].PLURAL, namespace=at.namespace, name=name)
    return RequiredRead(what, "Alert", _field(at))


def timeline_read(name: str, at: FieldPath) -> RequiredRead:
    """Returns the read of the timeline of the Investigation that a question names in field `at`."""
    resource = KINDS["Investigation"].PLURAL
    what = ResourceAttributes("get", _RECORD_GROUP, resource, subresource="timeline", namespace=at.namespace, name=name)
    return RequiredRead(what, "the timeline of Investigation", _field(at))


def trace_read(name: str, at: FieldPath) -> RequiredRead:
    """Returns the read of the trace of the Investigation that field `at` names; without a name, of all of them."""
    resource = KINDS["Investigation"].PLURAL
    what = ResourceAttributes("get", _RECORD_GROUP, resource, subresource="trace", namespace=at.namespace, name=name)
    return RequiredRead(what, "the trace of Investigation", _field(at))


async def authorization_refusal(
    author: Author | None,
    used: Iterable[Key],
    client: KubeClient,
    *,
    required: bool,
    reads: Iterable[RequiredRead] = (),
) -> tuple[str, str] | None:
    """Explains what the author may not do: reason, and message with verb, object and remedy; None when they may.

    Args:
        author: as stamped; None where nobody did.
        used: the Chain, the MCPServers.
        reads: what the operator reads because the author names it.
        client: as somebody who may create SubjectAccessReviews.
        required: whether there must be an author.

    Raises:
        ApiError: nobody could say; that is never a yes.
    """
    if author is None:
        return UNKNOWN_AUTHOR if required else None
    subject = Subject(author.username, author.uid or "", author.groups)
    problems = [await _problem(subject, key, client) for key in used]
    problems += [await _unread(subject, read, client) for read in reads]
    refused = [problem for problem in problems if problem]
    return ("Forbidden", "; ".join(refused)) if refused else None


def _use(key: Key) -> ResourceAttributes:
    return ResourceAttributes("use", GROUP, KINDS[key.kind].PLURAL, namespace=key.namespace, name=key.name)


async def _problem(subject: Subject, key: Key, client: KubeClient) -> str | None:
    doubt = await _doubt(subject, _use(key), client)
    if doubt is None:
        return None
    return (
        f"spec.author: {subject.username} may not use {key}{doubt}; in namespace {key.namespace} grant them a role "
        f"with the verb use on {KINDS[key.kind].PLURAL}.{GROUP} {key.name}, such as tarsy-investigator"
    )


async def _unread(subject: Subject, read: RequiredRead, client: KubeClient) -> str | None:
    doubt = await _doubt(subject, read.what, client)
    if doubt is None:
        return None
    about = read.what
    resource = f"{about.resource}.{about.group}" if about.group else about.resource
    role = "tarsy-investigator" if about.group else "view"
    if about.subresource == "trace":
        role = "tarsy-tracer"
    return (
        f"spec.author: {subject.username} may not read {read.kind} {about.namespace}/{about.name or '*'}, which "
        f"{read.field} names{doubt}; in namespace {about.namespace} grant them a role with the verb get on "
        f"{resource}{'/' + about.subresource if about.subresource else ''}{about.name and ' ' + about.name}, such as "
        f"{role}"
    )


async def _doubt(subject: Subject, what: ResourceAttributes, client: KubeClient) -> str | None:
    """Returns None where it is allowed; else what kept the API from deciding, empty where it decided."""
    try:
        return None if await may(client, subject, what) else ""
    except ApiError as error:
        if error.reason != UNDECIDED:
            raise
        return f" ({error.message})"  # such as a binding to a role that is not there: no yes, and told


def _field(at: FieldPath) -> str:
    error = at.error("")
    return f"{error.kind} {error.namespace}/{error.name}: {error.field}" if error.name else error.field
