"""Reports whether an LLMProvider serves, by the last calls that runs made to it.

Watches: the record of model calls, every ten seconds. Decides: `Serving`, from the last calls to the current generation
of the provider. Writes: nothing; when the result changes, the provider is reconciled, which writes it
(`tarsy.controllers.configuration`).

Decision: a reason is the kind of error alone, because the server's own words may only be read by people who may read
the run. One failed call among successful ones changes nothing, except for a provider that never served.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol
from uuid import UUID

from tarsy.controllers.machinery.cache import Key
from tarsy.llm.protocol import ModelErrorCode
from tarsy.resources.meta import Condition, Conditions, condition, set_condition
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.resources.v1alpha1.llm_provider import LLMProvider
from tarsy.store.runs.calls import EndedCall

_log = logging.getLogger(__name__)

ROUND_SECONDS = 10.0
LAST = 3
"""How many calls in a row must fail until a provider that served does not."""

LOOK_BACK = timedelta(hours=1)
"""Period that a controller reads when it becomes active."""

OVERLAP = timedelta(seconds=30)
"""A call is in the record some time after the moment that it says."""

OF_THE_REQUEST: Final = frozenset({ModelErrorCode.CONTEXT_TOO_LONG, ModelErrorCode.CONTENT_FILTER})
"""Failures that say nothing of the provider."""

_KEPT = 4096
"""How many providers are remembered."""

NOT_CALLED = "No run has called it since its last change."
ANSWERS = "It answered a recent call of a run."


class CallReader(Protocol):
    """Reads the calls that ended after a moment, the oldest first (`tarsy.store.runs.calls`)."""

    async def ended_since(self, moment: datetime) -> list[EndedCall]: ...


@dataclass(frozen=True, slots=True)
class LastCalls:
    """Holds the last calls of one generation of a provider, oldest first: the error of each, None for a success."""

    generation: int
    failures: tuple[str | None, ...]


class ServedCalls:
    """Keeps the last calls of every provider.

    Args:
        calls: the record of calls.
        look_at: takes the key of a provider whose last calls have changed.
    """

    def __init__(self, calls: CallReader, look_at: Callable[[Key], None]) -> None:
        self._calls = calls
        self._look_at = look_at
        self._since = datetime.now(UTC) - LOOK_BACK
        self._known: dict[str, dict[UUID, EndedCall]] = {}

    def last(self, uid: str) -> LastCalls | None:
        """Returns the last calls of the provider with that uid; None when there are none."""
        known = list(self._known.get(uid, {}).values())
        if not known:
            return None
        newest = max(one.generation for one in known)
        return LastCalls(newest, tuple(one.failure for one in known if one.generation == newest))

    async def round(self) -> None:
        """Reads the calls that ended since the last round.

        Raises:
            StoreError: Postgres is away.
        """
        changed: dict[str, tuple[Key, LastCalls | None]] = {}
        for ended in await self._calls.ended_since(self._since):
            self._since = max(self._since, ended.finished_at - OVERLAP)
            if ended.failure in OF_THE_REQUEST:
                continue
            if ended.uid not in changed:
                changed[ended.uid] = Key(LLMProvider.KIND, ended.namespace, ended.name), self.last(ended.uid)
            self._known.setdefault(ended.uid, {})[ended.id] = ended
        for uid, (key, before) in changed.items():
            known = self._known[uid].values()
            kept = sorted(known, key=lambda one: (one.generation, one.finished_at, str(one.id)))[-LAST:]
            self._known[uid] = {one.id: one for one in kept}
            if self.last(uid) != before:
                self._look_at(key)
        while len(self._known) > _KEPT:
            del self._known[next(iter(self._known))]


def with_serving(
    conditions: Conditions, provider: LLMProvider, served: ServedCalls | None, now: datetime
) -> Conditions:
    """Adds the condition `Serving`; nothing changes where `served` is None.

    Args:
        conditions: of the provider.
        provider: as it is.
        served: knows the last calls.
        now: the time of a change.
    """
    if served is None:
        return conditions
    old = condition(provider.status.conditions, ConditionType.SERVING)
    new = serving_condition(served.last(provider.metadata.uid), provider.metadata.generation, old)
    return set_condition(conditions, new, now) if new is not None else conditions


def serving_condition(last: LastCalls | None, generation: int, old: Condition | None) -> Condition | None:
    """Makes the condition of the last calls; None keeps `old`.

    Args:
        last: the last calls, None when there are none.
        generation: of the provider as it is.
        old: what was said before.
    """
    before = old if old is not None and old.observed_generation == generation else None
    if last is None or last.generation != generation:
        if before is not None:
            return None
        return Condition(
            type=ConditionType.SERVING,
            status="Unknown",
            reason="NotCalled",
            message=NOT_CALLED,
            observed_generation=generation,
        )
    failed = [failure for failure in last.failures if failure is not None]
    if len(failed) < len(last.failures):
        return Condition(
            type=ConditionType.SERVING,
            status="True",
            reason="Answers",
            message=ANSWERS,
            observed_generation=generation,
        )
    if before is not None and before.status == "True" and len(failed) < LAST:
        return None
    kinds = ", ".join(dict.fromkeys(sorted(failed)))
    return Condition(
        type=ConditionType.SERVING,
        status="False",
        reason=failed[-1],
        message=f"Its last calls failed: {kinds}. See the timeline of a run that used it. The next successful call "
        f"sets this condition to True.",
        observed_generation=generation,
    )
