"""Retries failed calls by one policy for all providers; the SDKs' own retries are off.

Only a call of which nothing was received is made again, so a consumer never sees text twice. Clock and chance are
arguments: tests do not sleep. Waiting is plain `await sleep(...)`, so cancelling the consumer cuts it at once.
"""

import asyncio
import random
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass

from tarsy.llm.protocol import (
    Chunk,
    GenerateRequest,
    LifeChunk,
    LLMClient,
    ModelError,
    NoticeChunk,
    RetryChunk,
    WaitChunk,
)

OnRetry = Callable[[int, ModelError, float], None]


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Holds the number of attempts of a call and the delay between them: by default three attempts, 2^n seconds apart.

    Args:
        tries: calls in all, the first included.
        base_seconds: the wait before the second call; it doubles from there.
        longest_seconds: the most the policy waits by itself.
        longest_retry_after_seconds: the most it waits because the server asks for it.
    """

    tries: int = 3
    base_seconds: float = 2.0
    longest_seconds: float = 30.0
    longest_retry_after_seconds: float = 60.0

    def delay(self, attempt: int, retry_after: float | None, chance: float) -> float:
        """Returns the seconds to wait after failed call number `attempt` (from 1).

        Half of the wait is fixed and half is chance (0 to 1). A server's Retry-After is never undercut unless it is
        longer than the cap; chance adds up to a tenth, so that many clients do not come back together.
        """
        if retry_after is not None:
            return min(retry_after, self.longest_retry_after_seconds) * (1 + chance / 10)
        # The exponent is bounded: 2.0 to the power of thousands is an OverflowError.
        full = min(self.base_seconds * 2.0 ** min(attempt - 1, 64), self.longest_seconds)
        return full * (0.5 + chance / 2)


class Retrying:
    """An `LLMClient` that makes another's failed calls again.

    Args:
        client: the client to call; closed with this one.
        policy: how often and how far apart.
        on_retry: told before each wait: number of the failed call (from 1), its error, seconds to wait.
        sleep: waits that many seconds.
        chance: a number from 0 to 1, at each call.
    """

    def __init__(
        self,
        client: LLMClient,
        policy: RetryPolicy | None = None,
        *,
        on_retry: OnRetry | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._policy = policy or RetryPolicy()
        self._on_retry = on_retry
        self._sleep = sleep
        self._chance = chance

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Streams the answer of the first call of which anything was received; raises the last call's ModelError.

        Before each wait comes a `RetryChunk`.
        """
        attempt = 1
        while True:
            received = False
            try:
                async with aclosing(self._client.generate(request)) as chunks:
                    async for chunk in chunks:
                        received = received or not isinstance(chunk, NoticeChunk | WaitChunk | LifeChunk)
                        yield chunk
                return
            except ModelError as error:
                if received or error.started or not error.retryable or attempt >= self._policy.tries:
                    raise
                delay = self._policy.delay(attempt, error.retry_after, self._chance())
                if self._on_retry is not None:
                    self._on_retry(attempt, error, delay)
                again = RetryChunk(error, delay)
            yield again
            await self._sleep(delay)
            attempt += 1

    async def aclose(self) -> None:
        """Closes the wrapped client."""
        await self._client.aclose()
