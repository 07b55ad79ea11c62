"""Reads a namespace for a caller and computes its evidence, in a thread where there are many objects."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from tarsy.evidence.alerted import AlertSubject, choose_target
from tarsy.evidence.history.recorded import RecordedHistory
from tarsy.evidence.reading import CannotRead, read_snapshot
from tarsy.evidence.report import find_changes, find_faults
from tarsy.evidence.snapshot import ObjectKey
from tarsy.evidence.target import MalformedTarget, UnknownTarget, find_target
from tarsy.evidence.topology import Topology
from tarsy.http.errors import BadRequest, Forbidden, HttpError, NotFound, Unavailable
from tarsy.http.evidence.history import history_for
from tarsy.http.evidence.rights import reader_for
from tarsy.http.route import CheckedRequest
from tarsy.http.views.evidence import ChangesView, InvestigationChangesView, RecordedCalls, TriageView, VerdictView
from tarsy.masking import default_masker
from tarsy.record.text import clean

READ_SECONDS: Final = 15.0
"""Maximum time for all lists: half of a request's, so that a slow API server leaves gaps and no timeout."""

MOST_OBJECTS: Final = 20_000
"""Maximum objects of a read."""

_ON_LOOP: Final = 50
"""Maximum objects that are computed on the event loop, in about two milliseconds."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Question:
    """Holds the request for evidence.

    Attributes:
        namespace: the namespace.
        target: the object, as `deploy/checkout`; None: all of the namespace.
        window: how long before the onset changes count.
        alerted_at: the onset, if an alert says so.
        subject: what an alert says about its subject, instead of `target`.
    """

    namespace: str
    target: str | None
    window: timedelta
    alerted_at: datetime | None = None
    subject: AlertSubject | None = None


async def changes_for(ask: CheckedRequest, question: Question) -> ChangesView:
    """Returns the changes that a caller may see. Raises HttpError."""
    return await _computed(ask, question, lambda found, history: _changes(found, question, history))


async def triage_for(ask: CheckedRequest, question: Question) -> TriageView:
    """Returns the signals of what a caller may see. Raises HttpError."""
    return await _computed(ask, question, lambda found, _: _triage(found, question), history=False)


async def verdict_for(ask: CheckedRequest, question: Question) -> VerdictView:
    """Returns the verdict on a target. Raises HttpError."""

    def compute(found: Topology, _: RecordedHistory) -> VerdictView:
        target = _target(found, question)
        if target is None:
            raise TypeError("a verdict is about a target")
        return VerdictView.of(target, find_faults(found, target), found.gaps, default_masker().mask)

    return await _computed(ask, question, compute, history=False)


async def both_for(ask: CheckedRequest, question: Question, calls: RecordedCalls) -> InvestigationChangesView:
    """Returns changes and signals of one read, with the ids of the calls that found them before. Raises HttpError."""

    def compute(found: Topology, history: RecordedHistory) -> InvestigationChangesView:
        return InvestigationChangesView.computed(_changes(found, question, history), _triage(found, question), calls)

    return await _computed(ask, question, compute)


async def _computed(
    ask: CheckedRequest,
    question: Question,
    compute: Callable[[Topology, RecordedHistory], _T],
    *,
    history: bool = True,
) -> _T:
    give_back = ask.services.evidence.take(ask.caller.username)
    try:
        snapshot = await read_snapshot(
            reader_for(ask), question.namespace, datetime.now(UTC), most_in_all=MOST_OBJECTS, seconds=READ_SECONDS
        )
        since = (question.alerted_at or snapshot.read_at) - question.window
        recorded = await history_for(ask, question.namespace, since) if history else RecordedHistory()
        if len(snapshot.objects) + len(recorded.changes) <= _ON_LOOP:
            return compute(Topology(snapshot), recorded)
        thread = asyncio.create_task(asyncio.to_thread(lambda: compute(Topology(snapshot), recorded)))
        give_back = _after(thread, give_back)
        return await asyncio.shield(thread)
    except CannotRead as error:
        raise _refused(error) from None
    except MalformedTarget as error:
        raise BadRequest(clean(str(error))) from None
    except UnknownTarget as error:
        raise NotFound(clean(str(error))) from None
    finally:
        give_back()


def _after(thread: "asyncio.Task[_T]", give_back: Callable[[], None]) -> Callable[[], None]:
    """Gives a slot back when a thread has ended, also if nobody waits for it any more."""

    def ended(done: "asyncio.Task[_T]") -> None:
        give_back()
        if not done.cancelled():
            done.exception()  # retrieved, also if the request was cancelled

    thread.add_done_callback(ended)
    return lambda: None


def _refused(error: CannotRead) -> HttpError:
    if error.status == 401:
        return Forbidden(
            "the Kubernetes API does not accept your token, so nothing can be read with your rights; use a token of "
            "the audience of the Kubernetes API"
        )
    return Unavailable("the Kubernetes API is unavailable; try again")


def _changes(topology: Topology, question: Question, history: RecordedHistory) -> ChangesView:
    report = find_changes(
        topology,
        question.namespace,
        _target(topology, question),
        alerted_at=question.alerted_at,
        window=question.window,
        history=history,
    )
    return ChangesView.of(report, default_masker().mask)


def _triage(topology: Topology, question: Question) -> TriageView:
    target = _target(topology, question)
    return TriageView.of(target, find_faults(topology, target), topology.gaps, default_masker().mask)


def _target(topology: Topology, question: Question) -> ObjectKey | None:
    if question.subject is not None:
        return choose_target(topology.snapshot, question.namespace, question.subject).key
    if question.target is None:
        return None
    return find_target(topology.snapshot, question.namespace, question.target)
