"""Gives clients for the LLMProviders of judges, whose calls are counted in the metrics as those of runs are."""

import time
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, asynccontextmanager

from tarsy.engine.limits.budget import cost
from tarsy.engine.ports import Models
from tarsy.llm.protocol import Chunk, GenerateRequest, LLMClient, ModelError, ModelErrorCode, UsageChunk
from tarsy.observe.metrics import Metrics
from tarsy.plan.model import ProviderPlan
from tarsy.runtime.model_metrics import FinishedCall, count_call

JUDGE_KINDS = {"judge": "checklist", "score": "score"}
"""Purposes of calls, by the agent of their request."""


class JudgeModels:
    """Implements `engine.ports.Models` for judges.

    Args:
        models: clients, which wait for the limits of their LLMProviders.
        metrics: of the process.
    """

    def __init__(self, models: Models, metrics: Metrics) -> None:
        self._models = models
        self._metrics = metrics

    @asynccontextmanager
    async def client(self, provider: ProviderPlan) -> AsyncIterator[LLMClient]:
        """Returns a client for one call, with the key as it is now."""
        async with self._models.client(provider) as client:
            yield _Counted(client, provider, self._metrics)


class _Counted:
    """An `LLMClient` whose calls are counted."""

    def __init__(self, client: LLMClient, provider: ProviderPlan, metrics: Metrics) -> None:
        self._client = client
        self._provider = provider
        self._metrics = metrics

    async def generate(self, request: GenerateRequest) -> AsyncGenerator[Chunk, None]:
        """Streams the answer."""
        began, usage = time.monotonic(), None
        failure: str | None = ModelErrorCode.TIMEOUT.value  # unless it ends in another way
        try:
            async with aclosing(self._client.generate(request)) as chunks:
                async for chunk in chunks:
                    if isinstance(chunk, UsageChunk):
                        usage = chunk.usage
                    yield chunk
            failure = None
        except ModelError as error:
            failure = error.code.value
            raise
        finally:
            provider, seconds = self._provider, time.monotonic() - began
            kind, spent = JUDGE_KINDS.get(request.agent, "other"), cost(usage, provider.rates)
            count_call(self._metrics, FinishedCall(provider.type, kind, seconds, failure, usage, spent))

    async def aclose(self) -> None:
        """Does nothing: the client is another's."""
