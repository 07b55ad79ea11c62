"""Builds objects, records and the context of a reconcile for tests of the controllers."""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from tarsy.controllers.machinery.cache import Cache
from tarsy.controllers.machinery.context import ControllerSettings, KubernetesPorts, ReconcileContext, StorePorts
from tarsy.controllers.runs.rest import Rest
from tarsy.record.finding import Confidence, Finding
from tarsy.record.run import (
    DesiredState,
    Failure,
    InvestigationRecord,
    RunOutcome,
    StageKind,
    StageProgress,
    State,
)
from tarsy.record.usage import Usage
from tarsy.resources.meta import API_VERSION
from tarsy.resources.parse import parse_as
from tarsy.resources.v1alpha1 import Alert, Investigation

UID = "6a1c7f6e-0000-4000-8000-000000000001"
OTHER_UID = "6a1c7f6e-0000-4000-8000-000000000002"
NOW = datetime(2026, 11, 22, 12, 0, 0, tzinfo=UTC)


def raw(kind: str, name: str = "one", spec: Any = None, status: Any = None, **meta: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "team-a", "uid": UID, "generation": 1, "resourceVersion": "10", **meta}
    body = {"apiVersion": API_VERSION, "kind": kind, "metadata": metadata, "spec": spec or {}}
    return body | ({"status": status} if status else {})


def reconcile_context(
    cluster: Any = None,
    store: Any = None,
    cache: Any = None,
    *,
    objects: Iterable[Mapping[str, Any]] = (),
    namespaces: tuple[str, ...] = (),
    publish_again: Callable[[Any], None] = lambda _: None,
    publish_limits: Any = None,
    read_secret: Any = None,
) -> ReconcileContext:
    """The context of a reconcile.

    Args:
        cluster: plays the Kubernetes API, its Events and the runbooks.
        store: plays the record.
        cache: the cache; a new one with `objects` when not given.
        objects: as the API gives them.
        namespaces: that the operator watches.
        publish_again: takes the records whose status is to be written again.
        publish_limits: takes the limits of LLMProviders.
        read_secret: reads Secrets.
    """
    cache = cache if cache is not None else Cache()
    for obj in objects:
        cache.put(obj)
    return ReconcileContext(
        cache=cache,
        kubernetes=KubernetesPorts(cluster, cluster, read_secret),
        store=StorePorts(store, store, store, publish_limits=publish_limits),
        settings=ControllerSettings("library", namespaces),
        runbooks=cluster,
        git_cases=cluster,
        judges=cluster,
        publish_again=publish_again,
        mask=str,
    )


def rest_of(context: ReconcileContext) -> Rest:
    """What knows the objects at rest; nothing else waits to be looked at."""
    return Rest(context.cache, context.store.reads, context.at_rest, lambda _: ())


def investigation(status: Any = None, spec: Any = None, **meta: Any) -> Investigation:
    return parse_as(
        Investigation, raw("Investigation", "inv", {"alertRef": {"name": "a"}} | (spec or {}), status, **meta)
    )


def alert(name: str = "one", status: Any = None, spec: Any = None, **meta: Any) -> Alert:
    return parse_as(Alert, raw("Alert", name, {"alertType": "PodCrash", "data": "x"} | (spec or {}), status, **meta))


def stage(index: int, state: State, name: str | None = None, **changes: Any) -> StageProgress:
    values: dict[str, Any] = {
        "index": index,
        "name": name or f"stage-{index}",
        "kind": StageKind.INVESTIGATION,
        "state": state,
        "agents": 2,
        "agents_finished": 2 if state.finished else 0,
        "started_at": NOW,
        "finished_at": NOW if state.finished else None,
        "failure": None,
    }
    return StageProgress(**(values | changes))


FINDING = Finding(summary="The image does not exist.", confidence=Confidence.HIGH)


def record(state: State = State.RUNNING, **changes: Any) -> InvestigationRecord:
    outcomes = {
        State.COMPLETED: RunOutcome(State.COMPLETED, finding=FINDING),
        State.FAILED: RunOutcome(State.FAILED, failure=Failure("ModelRefused", "The model server answers 401.")),
        State.CANCELLED: RunOutcome(State.CANCELLED, failure=Failure("Cancelled", "The investigation was cancelled.")),
        State.TIMED_OUT: RunOutcome(State.TIMED_OUT, failure=Failure("InvestigationTimeout", "It took too long.")),
    }
    values: dict[str, Any] = {
        "id": UUID(UID),
        "namespace": "team-a",
        "name": "inv",
        "alert_type": "PodCrash",
        "chain": "pods",
        "chain_namespace": "team-a",
        "plan_hash": "ab" * 32,
        "stages_planned": 3,
        "state": state,
        "desired_state": DesiredState.RUNNING,
        "attempt": 0 if state is State.PENDING else 1,
        "revision": 5,
        "published_revision": 4,
        "accepted_at": NOW - timedelta(seconds=10),
        "started_at": None if state is State.PENDING else NOW - timedelta(seconds=9),
        "finished_at": NOW if state.finished else None,
        "deadline": NOW + timedelta(minutes=40),
        "usage": Usage(input_tokens=100, output_tokens=20, thinking_tokens=5),
        "model_calls": 3,
        "interrupted_model_calls": 0,
        "tool_calls": 2,
        "stages": (),
        "outcome": outcomes.get(state),
    }
    return InvestigationRecord(**(values | changes))
