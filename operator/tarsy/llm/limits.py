"""Enforces the rate limits of a provider on the calls of a client.

It stands between the provider's client and the retries: each try is a request that the provider counts, so each takes
a turn of its own, and what waits between two tries holds no place. How turns are given is the turnstile's to know.
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
    """One call's place: in the line, then at the provider; given back when its context is left."""

    async def ask(self) -> WaitChunk | None:
        """Takes a place, or one in the line: what the call then waits for."""
        ...

    async def turn(self) -> None:
        """Waits for its turn."""
        ...

    def used(self, tokens: int) -> None:
        """What the call has used; not told, it is what was expected."""
        ...


class RateLimiter(Protocol):
    """Lets the model calls of one run pass."""

    def ticket(self, provider: ProviderPlan, tokens: int) -> AbstractContextManager[Permit]:
        """A ticket for one call that is expected to use so many tokens."""
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
