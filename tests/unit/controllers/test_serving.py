"""Tests `Serving` by a provider's last calls."""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from tarsy.controllers.machinery.cache import Key
from tarsy.controllers.readiness.serving import LastCalls, ServedCalls, serving_condition
from tarsy.resources.meta import Condition
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.store.runs.calls import EndedCall
from unit.controllers.builders import NOW, UID

TIMEOUT, DOWN = "ModelTimeout", "ModelServerError"


def before(status: str, generation: int = 1) -> Condition:
    return Condition.model_validate(
        {"type": ConditionType.SERVING, "status": status, "reason": "Old", "observedGeneration": generation}
    )


@pytest.mark.parametrize(
    ("failures", "old", "status", "reason"),
    [
        ((None,), None, "True", "Answers"),
        ((DOWN, DOWN, None), before("False"), "True", "Answers"),
        ((None, DOWN, DOWN), before("True"), "True", "Answers"),
        ((DOWN,), None, "False", DOWN),
        ((DOWN,), before("Unknown"), "False", DOWN),
        ((TIMEOUT, DOWN, DOWN), before("True"), "False", DOWN),
    ],
)
def test_the_last_calls_say_whether_a_provider_serves(
    failures: tuple[str | None, ...], old: Condition | None, status: str, reason: str
) -> None:
    found = serving_condition(LastCalls(1, failures), 1, old)
    assert found is not None and (found.status, found.reason, found.observed_generation) == (status, reason, 1)


@pytest.mark.parametrize("failures", [(DOWN,), (DOWN, TIMEOUT)])
def test_fewer_failures_than_three_in_a_row_say_nothing_of_one_that_served(failures: tuple[str, ...]) -> None:
    assert serving_condition(LastCalls(1, failures), 1, before("True")) is None


def test_before_any_call_it_is_unknown_and_after_a_restart_what_was_said_stays() -> None:
    first = serving_condition(None, 1, None)
    assert first is not None and (first.status, first.reason) == ("Unknown", "NotCalled")
    assert serving_condition(None, 1, before("False")) is None


def test_calls_of_an_earlier_generation_say_nothing_of_the_provider_as_it_is() -> None:
    found = serving_condition(LastCalls(1, (DOWN, DOWN, DOWN)), 2, before("False", generation=1))
    assert found is not None and (found.status, found.reason, found.observed_generation) == ("Unknown", "NotCalled", 2)


def test_a_message_holds_kinds_of_errors_alone_and_stays_while_they_do() -> None:
    one = serving_condition(LastCalls(1, (DOWN, TIMEOUT, DOWN)), 1, None)
    other = serving_condition(LastCalls(1, (TIMEOUT, DOWN, DOWN)), 1, None)
    assert one is not None and one == other and one.message.startswith(f"Its last calls failed: {DOWN}, {TIMEOUT}.")


class Record:
    """Calls as the record has them; each round gives all that ended after a moment."""

    def __init__(self) -> None:
        self.calls: list[EndedCall] = []

    def add(self, failure: str | None, seconds: int, generation: int = 1, identity: UUID | None = None) -> None:
        at = NOW + timedelta(days=3650, seconds=seconds)
        self.calls.append(EndedCall(identity or uuid4(), at, failure, "team-a", "model", UID, generation))

    async def ended_since(self, moment: datetime) -> list[EndedCall]:
        return sorted((one for one in self.calls if one.finished_at > moment), key=lambda one: one.finished_at)


async def test_a_provider_is_looked_at_when_its_last_calls_change_and_not_otherwise() -> None:
    record, woken = Record(), list[Key]()
    served = ServedCalls(record, woken.append)
    record.add(None, 0)
    await served.round()
    assert woken == [Key("LLMProvider", "team-a", "model")]
    await served.round()
    assert len(woken) == 1, "the same call is read again and is no news"
    for second in (1, 2, 3):
        record.add(DOWN, second)
    await served.round()
    assert served.last(UID) == LastCalls(1, (DOWN, DOWN, DOWN))
    woken.clear()
    record.add(DOWN, 4)
    await served.round()
    assert woken == [], "one more failure of the same kind is no news"


async def test_a_call_that_is_told_late_takes_its_place_in_time() -> None:
    record = Record()
    served = ServedCalls(record, lambda _: None)
    record.add(DOWN, 10)
    await served.round()
    record.add(None, 5)
    await served.round()
    assert served.last(UID) == LastCalls(1, (None, DOWN))


async def test_failures_of_the_request_say_nothing_of_the_provider() -> None:
    record = Record()
    served = ServedCalls(record, lambda _: None)
    record.add("ContextTooLong", 0)
    record.add("ContentFiltered", 1)
    await served.round()
    assert served.last(UID) is None


async def test_a_newer_generation_begins_anew() -> None:
    record = Record()
    served = ServedCalls(record, lambda _: None)
    for second in range(3):
        record.add(DOWN, second)
    record.add(None, 3, generation=2)
    await served.round()
    assert served.last(UID) == LastCalls(2, (None,))
