"""One retry policy: what is tried again, how often and when. Nothing here sleeps."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tarsy.llm.protocol import Chunk, EndChunk, GenerateRequest, ModelError, ModelErrorCode, RetryChunk, TextChunk
from tarsy.llm.retry import Retrying, RetryPolicy
from wire.scripted_client import Answer, ScriptedClient


def failing(retryable: bool = True, retry_after: float | None = None, started: bool = False, text: str = "") -> Answer:
    code = ModelErrorCode.SERVER
    return Answer(text, error=ModelError(code, "down", retryable=retryable, retry_after=retry_after, started=started))


class Bench:
    """A retrying client whose sleeps are written down."""

    def __init__(self, *answers: Answer, policy: RetryPolicy | None = None) -> None:
        self.script = ScriptedClient(answers)
        self.slept: list[float] = []
        self.told: list[tuple[int, float]] = []
        self.client = Retrying(
            self.script,
            policy,
            sleep=self.sleep,
            chance=lambda: 1.0,
            on_retry=lambda attempt, _, delay: self.told.append((attempt, delay)),
        )

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    async def run(self) -> list[Chunk]:
        return [chunk async for chunk in self.client.generate(GenerateRequest(()))]


async def test_a_call_that_fails_twice_succeeds_on_the_third_try_with_growing_waits() -> None:
    bench = Bench(failing(), failing(), Answer("ok"))
    first, second, *answer = await bench.run()
    assert answer == [TextChunk("ok"), EndChunk("stop")]
    assert all(isinstance(chunk, RetryChunk) for chunk in (first, second)), "whoever waits hears that it begins anew"
    assert [chunk.seconds for chunk in (first, second) if isinstance(chunk, RetryChunk)] == bench.slept == [2.0, 4.0]
    assert bench.told == [(1, 2.0), (2, 4.0)]


async def test_the_third_failure_is_raised() -> None:
    bench = Bench(failing(), failing(), failing(), Answer("too late"))
    with pytest.raises(ModelError, match="down"):
        await bench.run()
    assert len(bench.script.requests) == 3


@pytest.mark.parametrize("answer", [failing(retryable=False), failing(started=True), failing(text="half an answer")])
async def test_what_cannot_help_or_has_begun_is_not_tried_again(answer: Answer) -> None:
    bench = Bench(answer, Answer("never"))
    with pytest.raises(ModelError):
        await bench.run()
    assert len(bench.script.requests) == 1 and bench.slept == []


async def test_retry_after_is_honoured_up_to_its_cap() -> None:
    bench = Bench(failing(retry_after=7.0), failing(retry_after=9999.0), Answer("ok"))
    await bench.run()
    assert bench.slept == pytest.approx([7.7, 66.0])


async def test_cancelling_the_consumer_cuts_the_wait_at_once() -> None:
    waiting = asyncio.Event()

    async def forever(_: float) -> None:
        waiting.set()
        await asyncio.Event().wait()

    script = ScriptedClient([failing(), Answer("never")])
    client = Retrying(script, sleep=forever)

    async def consume() -> None:
        async for _ in client.generate(GenerateRequest(())):
            pass

    task = asyncio.ensure_future(consume())
    await asyncio.wait_for(waiting.wait(), 60)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 60)
    assert len(script.requests) == 1


async def test_closing_closes_the_wrapped_client() -> None:
    bench = Bench()
    await bench.client.aclose()
    assert bench.script.closed


@given(st.integers(1, 5000), st.none() | st.floats(0, 1e9), st.floats(0, 1))
def test_waits_stay_within_their_bounds(attempt: int, asked: float | None, chance: float) -> None:
    policy = RetryPolicy()
    delay = policy.delay(attempt, asked, chance)
    if asked is None:
        assert 1.0 <= delay <= policy.longest_seconds
    else:
        assert min(asked, 60.0) <= delay <= 66.0
