"""Calls of a provider without limits ask Postgres together once; each call of one with limits asks."""

import asyncio
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import pytest

from tarsy.plan.model import CallLimits, ObjectRef, ProviderPlan
from tarsy.runtime.rate_limiter import RateLimiters
from tarsy.store.runs.rate_limit_slots import SlotRequest
from unit.engine.build import until

CALLS = 50


@dataclass
class Slots:
    """Answers when it is told to, always the same."""

    limited: bool
    asked: list[UUID] = field(default_factory=list)
    answer: asyncio.Event = field(default_factory=asyncio.Event)

    async def take(self, ticket: UUID, *_: object, **__: object) -> SlotRequest:
        self.asked.append(ticket)
        await self.answer.wait()
        return SlotRequest(limited=self.limited)


async def asked(slots: Slots, limits: CallLimits | None = None) -> list[tuple[bool, object]]:
    """What calls are told that ask while the first of them waits for Postgres."""
    limiters = RateLimiters(slots, lambda channel, payload: None)  # type: ignore[arg-type,return-value]
    ref = ObjectRef(kind="LLMProvider", namespace="n", name="p")
    provider = ProviderPlan(ref=ref, type="openai", model="m", limits=limits)
    of: Any = limiters.of(uuid4(), 1, lambda: 60.0)
    async with asyncio.TaskGroup() as group:
        calls = [group.create_task(limiters.take(uuid4(), provider, 100, of)) for _ in range(CALLS)]
        await until(lambda: slots.asked)
        await asyncio.sleep(0)
        slots.answer.set()
    return [call.result() for call in calls]


async def test_calls_that_wait_for_the_answer_about_a_provider_without_limits_do_not_ask_again() -> None:
    slots = Slots(limited=False)

    assert await asked(slots) == [(False, None)] * CALLS

    assert len(slots.asked) == 1


@pytest.mark.parametrize("limits", [None, CallLimits(max_concurrent=100)])
async def test_each_call_of_a_provider_with_limits_asks(limits: CallLimits | None) -> None:
    slots = Slots(limited=True)

    assert await asked(slots, limits) == [(True, None)] * CALLS

    assert len(slots.asked) == len(set(slots.asked)) == CALLS


async def test_a_plan_with_limits_asks_although_its_provider_has_none() -> None:
    slots = Slots(limited=False)

    await asked(slots, CallLimits(max_concurrent=1))

    assert len(slots.asked) == CALLS
