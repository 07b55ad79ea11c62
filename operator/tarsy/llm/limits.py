"""Enforces the rate limits of a provider on the calls of a client.

It wraps the provider's client, inside the retries: the provider counts every try, so each try acquires a permit of its
own, and a call that waits between two tries holds none. The `RateLimiter` decides the order.
"""

from collections.abc import AsyncGenerator
from contextlib import AbstractContextManager, aclosing
from dataclasses import replace
from typing import Protocol

from tarsy.llm.protocol import (
    Chunk,
    GenerateRequest,
    LifeChunk,
    LLMClient,
    ModelError,
    ModelErrorCode,
    NoticeChunk,
    UsageChunk,
    WaitChunk,
)
from tarsy.plan.model import ProviderPlan


class Permit(Protocol):
    """The permit of one call: first in the queue, then at the provider; released when its context ends."""

    async def ask(self) -> WaitChunk | None:
        """Acquires the permit, or a place in the queue and returns what the call waits for."""
        ...

    async def turn(self) -> None:
        """Waits for its turn."""
        ...

    def used(self, tokens: int) -> None:
        """Records the usage of the call; without it, the estimate counts."""
        ...


class RateLimiter(Protocol):
    """Lets the model calls of one run pass."""

    def ticket(self, provider: ProviderPlan, tokens: int) -> AbstractContextManager[Permit]:
        """Returns a permit for one call with this estimate of tokens."""
        ...


class Limited:
    """An `LLMClient` whose calls wait for their turn.

    Args:
        client: the client to call; not closed with this one.
        provider: whose limits count.
        turnstile: gives the turns.
    """

    def __init__(self, client: LLMClient, provider: ProviderPlan, turnstile: RateLimiter) -> None:
        self._client = client
        self._provider = provider
        self._turnstile = turnstile

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Streams the answer; where the call has to wait, a `WaitChunk` before the wait and one after it."""
        received = False
        with self._turnstile.ticket(self._provider, request.tokens) as ticket:
            if (wait := await ticket.ask()) is not None:
                yield wait
                await ticket.turn()
                yield replace(wait, over=True)
            try:
                async with aclosing(self._client.generate(request)) as chunks:
                    async for chunk in chunks:
                        received = received or not isinstance(chunk, NoticeChunk | LifeChunk)
                        if isinstance(chunk, UsageChunk) and chunk.usage.complete:
                            ticket.used(chunk.usage.total_tokens)
                        yield chunk
            except ModelError as error:
                if not received and error.code is not ModelErrorCode.TIMEOUT:
                    ticket.used(0)  # it was refused
                raise

    async def aclose(self) -> None:
        """Does nothing: the client is another's."""
