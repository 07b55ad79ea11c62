"""Names, finds and creates the Alerts of an AlertSchedule.

Watches nothing of its own. Decides: whether an Alert belongs to a schedule, and whether the schedule's author may
create it. Writes: Alerts, and their deletion.

The name of an Alert is derived from the uid of its schedule and its time, so that creating it twice creates one. It
belongs to the schedule if its name is the one that its label and annotation make, and its author the schedule's: a
label alone, which everybody may write, is not enough to have an Alert counted or deleted.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tarsy.controllers.machinery.cache import Cache, Key
from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.runs.authorization import UNKNOWN_AUTHOR, authorization_refusal, config_map_reads
from tarsy.controllers.schedules.times import SCHEDULE_NAME
from tarsy.kube.access import UNDECIDED, ResourceAttributes, Subject, may
from tarsy.kube.client import ApiError, KubeClient
from tarsy.plan.errors import FieldPath, PlanInvalid
from tarsy.plan.select import NoChain, select
from tarsy.resources.meta import API_VERSION, GROUP, condition
from tarsy.resources.parse import parse_as, parse_valid
from tarsy.resources.schema import whole_seconds
from tarsy.resources.v1alpha1 import Alert, AlertSchedule, Chain, MCPServer
from tarsy.resources.v1alpha1.common import ConditionType

SCHEDULE_LABEL = "tarsy.dev/schedule-uid"
"""Label of an Alert with the uid of its AlertSchedule."""

SCHEDULED_AT = "tarsy.dev/scheduled-at"
"""Annotation of an Alert with its time."""

_NAME_LIMIT = 63
_TIME = "%Y-%m-%dT%H:%M:%SZ"

NoAlert = tuple[str, str]
"""Reason and message of an Alert that is not created."""


@dataclass(frozen=True, slots=True)
class ScheduledTime:
    """An Alert of a schedule, and its time."""

    at: datetime
    alert: Alert

    @property
    def finished(self) -> bool:
        """Whether its investigation has ended."""
        return _is_true(self.alert, ConditionType.FINISHED)

    @property
    def succeeded(self) -> bool:
        """Whether its investigation ended with success."""
        return _is_true(self.alert, ConditionType.SUCCEEDED)


def scheduled_name(schedule: AlertSchedule, at: datetime) -> str:
    """Builds the name of the Alert of a time from the name and uid of the schedule; always the same."""
    digest = hashlib.sha256(f"{schedule.metadata.uid} {at.astimezone(UTC):{_TIME}}".encode()).hexdigest()[:8]
    tail = f"-{at.astimezone(UTC):%Y%m%d-%H%M}-{digest}"
    return f"{schedule.metadata.name[: _NAME_LIMIT - len(tail)].rstrip('-.')}{tail}"


async def scheduled_alerts(schedule: AlertSchedule, client: KubeClient) -> list[ScheduledTime]:
    """Lists the Alerts of a schedule, the oldest time first.

    The API server is asked, not the cache: whether an Alert is there decides whether another is created.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
    """
    selector = f"{SCHEDULE_LABEL}={schedule.metadata.uid}"
    found: list[ScheduledTime] = []
    listed = await client.list(Alert.KIND, schedule.metadata.namespace, labelSelector=selector)
    for alert in parse_valid(Alert, listed):
        at = _time(alert)
        if at is not None and scheduled_name(schedule, at) == alert.metadata.name and _is_of_author(alert, schedule):
            found.append(ScheduledTime(at, alert))
    return sorted(found, key=lambda one: one.at)


async def why_not_created(schedule: AlertSchedule, context: ReconcileContext) -> NoAlert | None:
    """Explains why the Alert of a schedule must not be created now; None: it may.

    The author needs the right to create Alerts, and all that the acceptance of its Investigation asks for.

    Raises:
        ApiError: the Kubernetes API could not be reached.
    """
    author, template = schedule.spec.author, schedule.spec.template
    namespace = schedule.metadata.namespace
    if author is None and context.settings.require_author:
        return UNKNOWN_AUTHOR
    chain = chain_of(schedule, context)
    if not isinstance(chain, Chain):
        return chain
    if author is None:
        return None
    if refused := await _may_not_create(schedule, Subject(author.username, author.uid or "", author.groups), context):
        return refused
    used = [Key(Chain.KIND, chain.metadata.namespace, chain.metadata.name)]
    used += [_server_key(context, namespace, one.name) for one in template.mcp_servers or ()]
    return await authorization_refusal(
        author,
        used,
        context.kubernetes.client,
        required=context.settings.require_author,
        reads=config_map_reads(template, FieldPath.of(schedule) / "template"),
    )


def chain_of(schedule: AlertSchedule, context: ReconcileContext) -> Chain | NoAlert:
    """Finds the chain that takes the Alerts of a schedule, or why none does."""
    try:
        chain = select(
            namespace=schedule.metadata.namespace,
            alert=schedule.spec.template,
            catalog=context.cache,
            library_namespace=context.settings.library_namespace,
            source=FieldPath.of(schedule) / "template",
        )
    except PlanInvalid as error:
        return "ChainRefused", "; ".join(f"{one.field}: {one.message}" for one in error.errors)
    if not isinstance(chain, NoChain):
        return chain
    return chain.default or ("NoChain", chain.message)


async def create_scheduled(schedule: AlertSchedule, at: datetime, client: KubeClient, cache: Cache) -> Alert | NoAlert:
    """Creates the Alert of a time; returns it, also where it was there already, or why it is refused.

    Args:
        schedule: the object.
        at: the time.
        client: the Kubernetes API.
        cache: gets the Alert.

    Raises:
        ApiError: the Kubernetes API could not be reached.
    """
    name, namespace = scheduled_name(schedule, at), schedule.metadata.namespace
    try:
        created = await client.create(_body(schedule, name, at))
        cache.put(created)
        return parse_as(Alert, created)
    except ApiError as error:
        if error.reason != "AlreadyExists":
            if error.transient:
                raise
            return "CreateRefused", f"the API server refused Alert {namespace}/{name}: {error.message}"
    there = await client.find(Alert.KIND, namespace, name)
    if there is not None:
        alert = parse_as(Alert, there)
        labelled = alert.metadata.labels.get(SCHEDULE_LABEL) == schedule.metadata.uid
        if labelled and _time(alert) == whole_seconds(at) and _is_of_author(alert, schedule):
            return alert
    return (
        "NameTaken",
        f"Alert {namespace}/{name} is not of this schedule; delete it, it takes the name of this time",
    )


async def delete_beyond_limits(schedule: AlertSchedule, alerts: Sequence[ScheduledTime], client: KubeClient) -> None:
    """Deletes finished Alerts beyond the history limits, the oldest first; records stay.

    Args:
        schedule: the object.
        alerts: of the schedule, the oldest first.
        client: the Kubernetes API.

    Raises:
        ApiError: the Kubernetes API refused or could not be reached.
    """
    spec = schedule.spec
    ended = [one for one in alerts if one.finished]
    good, bad = [one for one in ended if one.succeeded], [one for one in ended if not one.succeeded]
    for kept, limit in ((good, spec.successful_alerts_history_limit), (bad, spec.failed_alerts_history_limit)):
        for one in kept[: max(len(kept) - limit, 0)]:
            meta = one.alert.metadata
            await client.delete(Alert.KIND, meta.namespace, meta.name, uid=meta.uid)


def _body(schedule: AlertSchedule, name: str, at: datetime) -> dict[str, Any]:
    meta, spec = schedule.metadata, schedule.spec.template.to_dict()
    if schedule.spec.author is not None:
        spec["author"] = schedule.spec.author.to_dict()
    return {
        "apiVersion": API_VERSION,
        "kind": Alert.KIND,
        "metadata": {
            "name": name,
            "namespace": meta.namespace,
            "labels": {SCHEDULE_LABEL: meta.uid},
            "annotations": {SCHEDULE_NAME: meta.name, SCHEDULED_AT: f"{at.astimezone(UTC):{_TIME}}"},
        },
        "spec": spec,
    }


async def _may_not_create(schedule: AlertSchedule, subject: Subject, context: ReconcileContext) -> NoAlert | None:
    namespace = schedule.metadata.namespace
    what = ResourceAttributes("create", GROUP, Alert.PLURAL, namespace=namespace)
    try:
        if await may(context.kubernetes.client, subject, what):
            return None
        doubt = ""
    except ApiError as error:
        if error.reason != UNDECIDED:
            raise
        doubt = f" ({error.message})"
    return (
        "Forbidden",
        f"spec.author: {subject.username} may not create alerts in namespace {namespace}{doubt}; grant them a role "
        f"with the verb create on {Alert.PLURAL}.{GROUP} there, such as tarsy-investigator",
    )


def _server_key(context: ReconcileContext, namespace: str, server: str) -> Key:
    """Finds a server that the template brings: in the schedule's namespace, else in the library's."""
    library = context.settings.library_namespace
    own = context.cache.get(MCPServer, namespace, server) is not None or not library
    return Key(MCPServer.KIND, namespace if own else library, server)


def _time(alert: Alert) -> datetime | None:
    try:
        return datetime.strptime(alert.metadata.annotations.get(SCHEDULED_AT, ""), _TIME).replace(tzinfo=UTC)
    except ValueError:
        return None


def _is_of_author(alert: Alert, schedule: AlertSchedule) -> bool:
    ours, theirs = schedule.spec.author, alert.spec.author
    return (ours.username if ours else None) == (theirs.username if theirs else None)


def _is_true(alert: Alert, kind: ConditionType) -> bool:
    found = condition(alert.status.conditions, kind)
    return found is not None and found.status == "True"
