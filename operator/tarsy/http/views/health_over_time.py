"""Models of the health of configuration objects over time, derived from recorded changes of their conditions.

Decision: a period is told in cells of equal length, so that an object that flaps makes no larger answer than one that
does not. A cell has the worst problem in it, however short; without one it has the health that lasted longest.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal, Self

from pydantic import Field

from tarsy.http.models import View
from tarsy.http.views.common import NEXT_PAGE
from tarsy.http.views.configured_objects import ObjectRefView
from tarsy.record.reading.condition_transition import ABSENT, ConditionTransition
from tarsy.resources.health import RANKS, Health, health_of, is_problem
from tarsy.resources.meta import Conditions

ShownHealth = Literal["NotReady", "Degraded", "Unknown", "Ready", "NotRecorded"]
_PROBLEMS: Final = ("NotReady", "Degraded")
_NOT_RECORDED: Final = "NotRecorded"


class TransitionView(ObjectRefView):
    """A change of the status of a condition."""

    uid: str = Field(description="Uid of the object.")
    type: str = Field(description="Type of the condition.")
    at: datetime = Field(description="Time of the change.")
    status: str = Field(description="Status after it. Absent: the object has no condition of this type any more.")
    was: str | None = Field(description="Status before it. Null: this is the first one that is known.")
    reason: str
    message: str = Field(description="Message of the condition after the change, with secrets masked.")
    address: str | None = Field(description="Scheme, host and port that the object was reached by.")
    omitted: int = Field(description="Number of states just before this change that came too fast to be recorded.")

    @classmethod
    def of(cls, one: ConditionTransition) -> Self:
        """Converts a recorded change."""
        place = one.object
        return cls(
            kind=place.kind,
            namespace=place.namespace,
            name=place.name,
            uid=place.uid,
            type=one.type,
            at=one.at,
            status=one.status,
            was=one.was,
            reason=one.reason,
            message=one.message,
            address=one.address,
            omitted=one.omitted,
        )


class TransitionList(View):
    """Changes of conditions, the latest first."""

    items: tuple[TransitionView, ...]
    next: str | None = Field(alias="continue", description=NEXT_PAGE)


class HealthCells(View):
    """Cells in a row that have the same health for the same reason."""

    cells: int = Field(description="Number of cells.")
    health: ShownHealth = Field(description="NotRecorded: the object was not there, or nothing is recorded of it.")
    since: datetime | None = Field(description="Time of the change that began it.")
    type: str = Field(description="Type of the condition that decides; empty without one.")
    reason: str
    message: str
    address: str | None
    transitions: int = Field(description="Changes of conditions in these cells.")


class LastProblem(View):
    """The last change of a condition to a problem."""

    at: datetime
    type: str
    reason: str
    message: str
    address: str | None = Field(description="Scheme, host and port that the object was reached by.")


class ObjectHealthView(ObjectRefView):
    """Health of a configuration object, now and over time."""

    uid: str
    health: Health
    reason: str = Field(description="Reason of the condition that decides; empty without a condition.")
    message: str
    since: datetime | None = Field(description="Time of the last change of that condition's status.")
    transitions: int = Field(description="Recorded changes of conditions in the period, without first ones.")
    last_problem: LastProblem | None
    history: tuple[HealthCells, ...] = Field(description="Health in the cells of the period, the oldest first.")


class ObjectHealthList(View):
    """Health of configuration objects over a period, those with problems first."""

    since: datetime = Field(description="Begin of the period.")
    until: datetime = Field(description="End of the period.")
    cell_minutes: int = Field(description="Length of a cell.")
    items: tuple[ObjectHealthView, ...]
    kinds: tuple[str, ...] = Field(description="Kinds that the caller may list.")
    next: str | None = Field(alias="continue", description=NEXT_PAGE)


@dataclass(frozen=True, slots=True)
class Period:
    """A period in cells of equal length.

    Attributes:
        until: its end.
        cell: length of a cell.
        cells: their number.
    """

    until: datetime
    cell: timedelta
    cells: int

    @property
    def since(self) -> datetime:
        """The begin of the period."""
        return self.until - self.cell * self.cells


@dataclass(frozen=True, slots=True)
class _Stated:
    """A condition at a time; `at` is None where only its status is known."""

    type: str
    status: str
    reason: str = ""
    message: str = ""
    address: str | None = None
    at: datetime | None = None


@dataclass(frozen=True, slots=True)
class _Stretch:
    """A time with one health."""

    begin: datetime
    end: datetime
    health: ShownHealth
    decides: _Stated


_NOTHING: Final = _Stated("", "")


def object_health(
    item: Mapping[str, Any], conditions: Conditions, changes: Sequence[ConditionTransition], period: Period
) -> ObjectHealthView:
    """Makes the health of an object over time.

    Args:
        item: kind, namespace, name, uid, health, reason, message and since, as they are now.
        conditions: of the object now; they hold since their lastTransitionTime, whatever is recorded.
        changes: recorded changes in the period, and the last one of each condition before it; the oldest first.
        period: that is told.
    """
    moments = _moments(conditions, changes)
    counted = [one.at for one in changes if one.was is not None and one.at >= period.since]
    stretches = list(_stretches(moments, period))
    last = next((one for one in reversed(moments) if is_problem(one) and one.at is not None), None)
    return ObjectHealthView(
        **item,
        transitions=len(counted),
        last_problem=None if last is None else LastProblem.model_validate(last, from_attributes=True),
        history=tuple(_joined(_cell(stretches, counted, period, number) for number in range(period.cells))),
    )


def _moments(conditions: Conditions, changes: Sequence[ConditionTransition]) -> list[_Stated]:
    """Lists what conditions became, the oldest first: first what they were before, last what they are now."""
    found: defaultdict[str, list[_Stated]] = defaultdict(list)
    for one in changes:
        if one.type not in found and one.was is not None:
            found[one.type].append(_Stated(one.type, one.was))
        found[one.type].append(_Stated(one.type, one.status, one.reason, one.message, one.address, one.at))
    for now in conditions:
        last = found[now.type][-1] if found[now.type] else None
        at = now.last_transition_time
        if at is not None and (last is None or last.at is None or (last.status, last.at) != (now.status, at)):
            at = at if last is None or last.at is None else max(at, last.at)
            found[now.type].append(_Stated(now.type, now.status, now.reason, now.message, at=at))
    everything = [one for told in found.values() for one in told]
    return sorted(everything, key=lambda one: (one.at is not None, one.at.timestamp() if one.at is not None else 0.0))


def _stretches(moments: Sequence[_Stated], period: Period) -> Iterator[_Stretch]:
    """Yields the times of one health each, from begin to end of the period; a change within a second has no length."""
    states: dict[str, _Stated] = {}
    begin = period.since
    for one in moments:
        if one.at is not None and one.at > period.until:
            break
        if one.at is not None and one.at > begin:
            yield _Stretch(begin, one.at, *_health(states))
            begin = one.at
        elif one.at is not None and one.at == begin and states:
            yield _Stretch(begin, begin, *_health(states))
        states[one.type] = one
    yield _Stretch(begin, period.until, *_health(states))


def _health(states: Mapping[str, _Stated]) -> tuple[ShownHealth, _Stated]:
    there = [one for one in states.values() if one.status != ABSENT]
    if not there:
        return _NOT_RECORDED, _NOTHING
    health, decides = health_of(there)
    return health, decides or _NOTHING


def _cell(stretches: Sequence[_Stretch], counted: Sequence[datetime], period: Period, number: int) -> HealthCells:
    """Makes one cell."""
    begin = period.since + period.cell * number
    end = begin + period.cell
    within = [one for one in stretches if one.begin < end and (one.end > begin or one.begin == one.end >= begin)]
    wrong = [one for one in within if one.health in _PROBLEMS]
    if wrong:
        worst = min(RANKS[one.health] for one in wrong if one.health != _NOT_RECORDED)
        shown = [one for one in wrong if one.health != _NOT_RECORDED and RANKS[one.health] == worst][-1]
    else:
        shown = max(within, key=lambda one: min(one.end, end) - max(one.begin, begin))
    return HealthCells(
        cells=1,
        health=shown.health,
        since=shown.decides.at,
        type=shown.decides.type,
        reason=shown.decides.reason,
        message=shown.decides.message,
        address=shown.decides.address,
        transitions=sum(begin <= at < end for at in counted),
    )


def _joined(cells: Iterator[HealthCells]) -> Iterator[HealthCells]:
    """Joins cells that have the same health for the same reason, and no change."""
    row: HealthCells | None = None
    for one in cells:
        if row is not None and not one.transitions and one == row.model_copy(update={"cells": 1, "transitions": 0}):
            row = row.model_copy(update={"cells": row.cells + 1})
            continue
        if row is not None:
            yield row
        row = one
    if row is not None:
        yield row
