"""A client within the limits of its provider: each try takes a turn, and what it used is known at its end."""

import asyncio
from collections.abc import Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field

import pytest

from tarsy.llm.limits import Limited
from tarsy.llm.protocol import (
    EndChunk,
    GenerateRequest,
    ModelError,
    ModelErrorCode,
    RetryChunk,
    TextChunk,
    UsageChunk,
    WaitChunk,
)
from tarsy.llm.retry import Retrying, RetryPolicy
from tarsy.plan.model import ObjectRef, ProviderPlan
from tarsy.record.usage import Usage
from wire.scripted_client import Answer, ScriptedClient

PROVIDER = ProviderPlan(ref=ObjectRef(kind="LLMProvider", namespace="t", name="p"), type="openai", model="m")
ASK = GenerateRequest((), tokens=500)
WAIT = WaitChunk("maxConcurrent", 2)


@dataclass
class Ticket:
    """One turn, for which the call waits when it is told to."""

    tokens: int
    wait: WaitChunk | None = None
    open: asyncio.Event = field(default_factory=asyncio.Event)
    spent: int | None = None
    closed: bool = False

    async def ask(self) -> WaitChunk | None:
        return self.wait

    async def turn(self) -> None:
        await self.open.wait()

    def used(self, tokens: int) -> None:
        self.spent = tokens


class Turnstile:
    """Hands out the given tickets, then free ones."""

    def __init__(self, *waits: WaitChunk | None) -> None:
        self.waits = list(waits)
        self.tickets: list[Ticket] = []

    @contextmanager
    def ticket(self, provider: ProviderPlan, tokens: int) -> Iterator[Ticket]:
        assert provider is PROVIDER
        assert all(ticket.closed for ticket in self.tickets), "a call has one place"
        made = Ticket(tokens, self.waits.pop(0) if self.waits else None)
        self.tickets.append(made)
        try:
            yield made
        finally:
            made.closed = True


def limited(turnstile: Turnstile, *answers: Answer) -> Limited:
    return Limited(ScriptedClient(answers), PROVIDER, turnstile)


async def test_a_call_that_has_a_place_is_made_at_once_and_its_usage_is_known() -> None:
    turnstile = Turnstile()
    usage = Usage(input_tokens=40, output_tokens=2)
    chunks = [chunk async for chunk in limited(turnstile, Answer("hi", usage=usage)).generate(ASK)]
    assert chunks == [TextChunk("hi"), UsageChunk(usage), EndChunk("stop")]
    (ticket,) = turnstile.tickets
    assert (ticket.tokens, ticket.spent, ticket.closed) == (500, 42, True)


async def test_a_call_without_a_place_says_so_and_reaches_nobody_before_its_turn() -> None:
    turnstile = Turnstile(WAIT)
    client = ScriptedClient([Answer("hi")])
    async with aclosing(Limited(client, PROVIDER, turnstile).generate(ASK)) as chunks:
        assert await anext(chunks) == WAIT
        turn = asyncio.create_task(anext(chunks))
        await asyncio.sleep(0)
        assert not client.requests
        turnstile.tickets[0].open.set()
        assert await turn == WaitChunk("maxConcurrent", 2, over=True)
        assert [chunk async for chunk in chunks] == [TextChunk("hi"), EndChunk("stop")]


async def test_who_gives_up_waiting_gives_its_place_back() -> None:
    turnstile = Turnstile(WAIT)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01), aclosing(limited(turnstile).generate(ASK)) as chunks:
            async for _ in chunks:
                pass
    assert turnstile.tickets[0].closed


@pytest.mark.parametrize(
    ("answer", "spent"),
    [
        pytest.param(Answer(error=ModelError(ModelErrorCode.RATE_LIMIT, "no", retryable=True)), 0, id="refused"),
        pytest.param(Answer(error=ModelError(ModelErrorCode.TIMEOUT, "late", retryable=True)), None, id="no answer"),
        pytest.param(Answer("he", error=ModelError(ModelErrorCode.SERVER, "x", retryable=True)), None, id="broken off"),
    ],
)
async def test_a_refused_call_has_used_nothing_and_a_lost_one_what_was_expected(
    answer: Answer, spent: int | None
) -> None:
    turnstile = Turnstile()
    with pytest.raises(ModelError):
        async for _ in limited(turnstile, answer).generate(ASK):
            pass
    assert turnstile.tickets[0].spent == spent and turnstile.tickets[0].closed


async def test_each_try_takes_a_turn_of_its_own_and_none_has_a_place_while_it_waits_to_try() -> None:
    turnstile = Turnstile(None, WAIT)
    slept: list[bool] = []

    async def sleep(_: float) -> None:
        slept.append(turnstile.tickets[0].closed)

    error = ModelError(ModelErrorCode.SERVER, "down", retryable=True)
    inner = limited(turnstile, Answer(error=error), Answer("up"))
    async with aclosing(Retrying(inner, RetryPolicy(), sleep=sleep).generate(ASK)) as chunks:
        assert isinstance(await anext(chunks), RetryChunk)
        assert await anext(chunks) == WAIT
        turnstile.tickets[1].open.set()
        assert [type(chunk) async for chunk in chunks] == [WaitChunk, TextChunk, EndChunk]
    assert slept == [True] and len(turnstile.tickets) == 2


async def test_a_call_that_waited_and_failed_is_still_made_again() -> None:
    turnstile = Turnstile(WAIT)
    error = ModelError(ModelErrorCode.SERVER, "down", retryable=True)
    client = Retrying(limited(turnstile, Answer(error=error), Answer("up")), RetryPolicy(base_seconds=0.0))
    async with aclosing(client.generate(ASK)) as chunks:
        await anext(chunks)
        turnstile.tickets[0].open.set()
        assert [type(chunk) async for chunk in chunks] == [WaitChunk, RetryChunk, TextChunk, EndChunk]
