"""Chooses the precedents of a run when it is accepted: earlier investigations that its agents are told about.

Watches: nothing of its own. Decides: which of the candidates of the record the reader of the run may read, in the order
of their rank, at most three. Writes: nothing; they are frozen with the input of the run.

Decision: history never keeps a run from starting. Where the record cannot be searched, the run goes on without
precedents; where nobody is known whose rights would count, or the Kubernetes API cannot decide, there are none. The
right is that to the timeline of the Investigation, asked of the whole namespace first and then of single names.
"""

import logging
from collections.abc import Mapping, Sequence
from uuid import UUID

from tarsy.controllers.machinery.context import ReconcileContext
from tarsy.controllers.runs.authorization import timeline_read
from tarsy.evidence.alert_words import AlertWords
from tarsy.kube.access import UNDECIDED, Subject, may
from tarsy.kube.client import ApiError, KubeClient
from tarsy.plan.errors import FieldPath
from tarsy.plan.model import Plan
from tarsy.plan.scope import lets_in
from tarsy.record.judging.precedent import (
    LONGEST_PRECEDENT,
    LONGEST_REVIEWER,
    MOST_PRECEDENTS,
    Precedent,
)
from tarsy.record.text import clean
from tarsy.resources.v1alpha1 import Investigation, InvestigationDefaults
from tarsy.resources.v1alpha1.alert import AlertContent, AlertSpec
from tarsy.resources.v1alpha1.common import Author
from tarsy.resources.v1alpha1.investigation_defaults import DEFAULTS_NAME
from tarsy.store.errors import StoreError
from tarsy.store.reading.precedents import PrecedentQuery, precedent_keys

_log = logging.getLogger(__name__)

MOST_GRANTED = 20
"""Maximum further namespaces whose investigations are searched."""

_MOST_NAMES = 10
_WINDOW_SECONDS = 14_400.0


def run_keys(alert: AlertContent, words: AlertWords) -> Sequence[str]:
    """Returns the keys by which later runs find a run.

    Args:
        alert: of the run.
        words: of its text, masked.
    """
    return precedent_keys(alert.alert_type, _incident_key(alert), words.workload)


async def precedents_of(
    run: UUID,
    plan: Plan,
    alert: AlertContent,
    words: AlertWords,
    reader: Author | None,
    namespace_uid: str,
    context: ReconcileContext,
) -> Sequence[Precedent]:
    """Returns the precedents that a run is told about.

    Args:
        run: the run.
        plan: its plan.
        alert: its alert.
        words: of the alert's text, masked.
        reader: whose rights count; None: nobody is known.
        namespace_uid: of the run's namespace.
        context: of the reconcile.

    Raises:
        ApiError: the Kubernetes API could not be reached; that is never a yes.
    """
    search = context.store.precedents
    if plan.precedents is None or search is None or reader is None:
        return ()
    changes = next((stage.changes for stage in plan.stages if stage.changes is not None), None)
    query = PrecedentQuery(
        run=run,
        namespace=plan.namespace,
        namespace_uid=namespace_uid,
        alert_type=plan.alert_type,
        incident_key=_incident_key(alert),
        workload=words.workload,
        entities=words.entities,
        words=words.words,
        changed_kinds=() if changes is None else changes.recorded or (),
        changed_seconds=_WINDOW_SECONDS if changes is None else changes.window_seconds,
        granted=await _granted(plan, context) if plan.precedents.scope == "Granted" else {},
    )
    try:
        found = await search.find(query)
    except StoreError as error:
        _log.warning("the run of %s continues without precedents: %s", run, error)
        return ()
    subject = Subject(reader.username, reader.uid or "", reader.groups)
    return await _readable(found, subject, context.kubernetes.client)


def told_precedent(one: Precedent, summary: str) -> Precedent:
    """Returns a precedent as it is stored, its texts on one line and within their limits.

    Args:
        one: as found.
        summary: of its finding, masked.
    """
    reviewer = None if one.reviewer is None else clipped_line(one.reviewer, LONGEST_REVIEWER)
    return one.model_copy(update={"summary": clipped_line(summary, LONGEST_PRECEDENT), "reviewer": reviewer})


def clipped_line(text: str, limit: int) -> str:
    """Returns a text on one line, with at most `limit` characters."""
    line = " ".join(clean(text).split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


async def _granted(plan: Plan, context: ReconcileContext) -> Mapping[str, str]:
    """Returns the uids of other namespaces that let runs of this one be told about their investigations, by name."""
    cache, found = context.cache, {}
    labels = cache.namespace_labels(plan.namespace)
    for name in cache.namespaces:
        defaults = None if name == plan.namespace else cache.get(InvestigationDefaults, name, DEFAULTS_NAME)
        if defaults is None or not lets_in(defaults.spec.allowed_precedent_namespaces, labels):
            continue
        there = await context.kubernetes.client.find("Namespace", None, name) or {}
        if uid := (there.get("metadata") or {}).get("uid"):
            found[name] = str(uid)
        if len(found) == MOST_GRANTED:
            break
    return found


async def _readable(found: Sequence[Precedent], subject: Subject, client: KubeClient) -> Sequence[Precedent]:
    """Returns the first candidates that the subject may read; of a namespace whose names are asked for, a few."""
    whole: dict[str, bool] = {}
    readable: list[Precedent] = []
    asked = 0
    for one in found:
        if len(readable) == MOST_PRECEDENTS:
            break
        if one.namespace not in whole:
            whole[one.namespace] = await _may_read(subject, one.namespace, "", client)
        if not whole[one.namespace]:
            asked += 1
            if asked > _MOST_NAMES or not await _may_read(subject, one.namespace, one.name, client):
                continue
        readable.append(one)
    return readable


async def _may_read(subject: Subject, namespace: str, name: str, client: KubeClient) -> bool:
    read = timeline_read(name, FieldPath(Investigation.KIND, namespace, name))
    try:
        return await may(client, subject, read.what)
    except ApiError as error:
        if error.reason != UNDECIDED:
            raise
        return False


def _incident_key(alert: AlertContent) -> str | None:
    return alert.incident_key if isinstance(alert, AlertSpec) else None
