"""Builds and shares the clients of providers: one per provider and key, closed when unused.

The key is asked for at every call and only its digest decides whether the client still fits, so a rotated Secret
applies to the next call while calls under way end on the client they began with. Fields of the ref that change
without changing the client (uid, generation) are no part of its identity; an edited provider is another client, and
the one nobody asks for any more leaves when room is needed.
"""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import lru_cache

from tarsy.llm.limits import Limited, RateLimiter
from tarsy.llm.protocol import LLMClient, ModelError, ModelErrorCode
from tarsy.llm.providers import provider_spec
from tarsy.llm.reach import ANYWHERE, check_reach
from tarsy.llm.retry import OnRetry, Retrying, RetryPolicy
from tarsy.plan.destinations import Destinations
from tarsy.plan.model import ProviderPlan, SecretKey
from tarsy.plan.provider_types import UnsupportedProviderType

_SECRET_SECONDS = 15.0


class SecretProblem(Exception):
    """A Secret cannot be used: `reason` is CamelCase (a condition's reason), `message` names object, key and remedy."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


_Secrets = Callable[[SecretKey], Awaitable[str]]
"""Fetches one key of one Secret (a short cache is the implementer's); raises SecretProblem."""

Build = Callable[[ProviderPlan, str | None], LLMClient]
"""Makes a client for a provider and a key; raises ModelError(INVALID_REQUEST) for what it cannot make."""


def build_client(
    provider: ProviderPlan,
    key: str | None,
    *,
    lent_to: Collection[str] = (),
    destinations: Destinations = ANYWHERE,
) -> LLMClient:
    """Builds the client for a provider's type and backend, without retries.

    Args:
        provider: the model, its server and its settings.
        key: None where it needs none.
        lent_to: namespaces whose providers may use this pod's own identity with Google.
        destinations: where URLs may lead.

    Raises:
        ModelError: INVALID_REQUEST when the type is not supported, or the server may not be asked.
    """
    try:
        client = provider_spec(provider.type).clients.get(provider.backend)
    except UnsupportedProviderType as error:
        problem = str(error)
    else:
        if client is not None:
            return client.build(provider, key, lent_to=lent_to, destinations=destinations)
        problem = f"spec.type {provider.type!r} has no backend {provider.backend.value!r}; leave spec.backend out"
    raise ModelError(ModelErrorCode.INVALID_REQUEST, f"provider {provider.ref.name}: {problem}", retryable=False)


@lru_cache(1024)
def _identity(provider: ProviderPlan) -> str:
    """Returns the fields of a provider that identify its client."""
    ref = provider.ref.model_copy(update={"uid": "", "generation": 0})
    return provider.model_copy(update={"ref": ref, "limits": None, "timeouts": None}).model_dump_json()


@dataclass(slots=True, eq=False)
class _Entry:
    bare: LLMClient
    client: LLMClient
    digest: str
    users: int = 0


class ModelRegistry:
    """Implements the engine's `Models`.

    Args:
        secrets: fetches the API keys.
        policy: the retry policy of every client.
        on_retry: told before each wait of a retry.
        capacity: clients kept; the one unused for longest leaves first.
        build: makes the clients that the policy is wrapped around.
        destinations: where URLs may lead; judged before a Secret is read.
    """

    def __init__(
        self,
        secrets: _Secrets,
        *,
        policy: RetryPolicy | None = None,
        on_retry: OnRetry | None = None,
        capacity: int = 64,
        build: Build = build_client,
        destinations: Destinations = ANYWHERE,
    ) -> None:
        self._secrets = secrets
        self._destinations = destinations
        self._policy = policy or RetryPolicy()
        self._on_retry = on_retry
        self._capacity = capacity
        self._build = build
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._retired: list[_Entry] = []
        self._closed = False

    @asynccontextmanager
    async def client(self, provider: ProviderPlan, turnstile: RateLimiter | None = None) -> AsyncIterator[LLMClient]:
        """A client with the key as it is now, for as long as the context is open.

        Args:
            provider: as in a plan.
            turnstile: keeps the provider's limits; None: they do not count for this client.

        Raises:
            ModelError: CREDENTIALS_MISSING when the key cannot be had, INVALID_REQUEST for an unsupported type or an
                address that may not be asked.
        """
        check_reach(provider, self._destinations)
        key = await self._key(provider)
        if self._closed:
            raise RuntimeError("the model registry is closed")
        entry = self._entry(provider, key)
        entry.users += 1
        try:
            await self._close_unused()
            yield entry.client if turnstile is None else self._limited(entry, provider, turnstile)
        finally:
            entry.users -= 1
            await self._close_unused()

    async def aclose(self) -> None:
        """Closes all clients, those in use included."""
        self._closed = True
        entries = [*self._entries.values(), *self._retired]
        self._entries.clear()
        self._retired.clear()
        for entry in entries:
            await entry.client.aclose()

    async def _key(self, provider: ProviderPlan) -> str | None:
        if (reference := provider.api_key) is None:
            return None
        try:
            async with asyncio.timeout(_SECRET_SECONDS):
                key = (await self._secrets(reference)).strip()
        except SecretProblem as problem:
            text, again = f"{problem.message} ({problem.reason})", False
        except TimeoutError:
            text, again = f"it could not be read within {_SECRET_SECONDS:.0f} s", True
        else:
            if provider.vertexai is not None and key.startswith("{"):
                return key  # a service account's key file
            if key.isascii() and key.isprintable() and key:
                return key
            text, again = "its value is empty or not printable ASCII: store only the key", False
        raise ModelError(
            ModelErrorCode.CREDENTIALS_MISSING,
            f"provider {provider.ref.name}: API key {reference.key!r} of Secret {reference.namespace}/"
            f"{reference.name}: {text}",
            retryable=again,
        )

    def _entry(self, provider: ProviderPlan, key: str | None) -> _Entry:
        name = _identity(provider)
        digest = hashlib.sha256((key or "").encode()).hexdigest()
        entry = self._entries.get(name)
        if entry is None or entry.digest != digest:
            bare = self._build(provider, key)
            fresh = _Entry(bare, self._retrying(bare), digest)
            if entry is not None:
                self._retire(name)
            self._entries[name] = entry = fresh
            if len(self._entries) > self._capacity:
                self._retire(next(iter(self._entries)))
        self._entries.move_to_end(name)
        return entry

    def _limited(self, entry: _Entry, provider: ProviderPlan, turnstile: RateLimiter) -> LLMClient:
        return self._retrying(Limited(entry.bare, provider, turnstile))

    def _retrying(self, client: LLMClient) -> Retrying:
        return Retrying(client, self._policy, on_retry=self._on_retry)

    def _retire(self, name: str) -> None:
        self._retired.append(self._entries.pop(name))

    async def _close_unused(self) -> None:
        while (unused := next((entry for entry in self._retired if not entry.users), None)) is not None:
            self._retired.remove(unused)
            await unused.client.aclose()
