"""Clients are shared, follow their key, and are closed when nobody is left."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tarsy.llm.langchain import LangChainProvider
from tarsy.llm.openai_native import OpenAINativeProvider
from tarsy.llm.protocol import EndChunk, GenerateRequest, ModelError, ModelErrorCode, TextChunk
from tarsy.llm.registry import ModelRegistry, SecretProblem, build_client
from tarsy.plan.model import Backend, CallLimits, ObjectRef, ProviderPlan, SecretKey, Vertex
from wire.scripted_client import Answer, ScriptedClient

CLIENTS = {Backend.OPENAI_NATIVE: OpenAINativeProvider, Backend.LANGCHAIN: LangChainProvider}


def plan(
    name: str = "p", generation: int = 1, key: bool = True, type: str = "openai", model: str = "m"
) -> ProviderPlan:
    return ProviderPlan(
        ref=ObjectRef(kind="LLMProvider", namespace="team", name=name, generation=generation),
        type=type,
        model="m",
        api_key=SecretKey(namespace="team", name="llm", key="apiKey") if key else None,
    )


class World:
    """A Secret and the clients that were built."""

    def __init__(self, capacity: int = 64) -> None:
        self.key = "k1"
        self.problem: SecretProblem | None = None
        self.answers: list[Answer] = []
        self.built: list[tuple[str, str | None, ScriptedClient]] = []
        self.registry = ModelRegistry(self.secret, build=self.build, capacity=capacity)

    async def secret(self, reference: SecretKey) -> str:
        if self.problem:
            raise self.problem
        return self.key

    def build(self, provider: ProviderPlan, key: str | None) -> ScriptedClient:
        client = ScriptedClient(self.answers)
        self.built.append((provider.ref.name, key, client))
        return client

    @property
    def closed(self) -> list[bool]:
        return [client.closed for _, _, client in self.built]


async def test_a_client_is_built_once_and_shared_across_generations() -> None:
    world = World()
    async with world.registry.client(plan()) as one, world.registry.client(plan(generation=9)) as two:
        assert one is two
    async with world.registry.client(plan()) as three:
        assert three is one
    assert world.closed == [False]


async def test_a_client_that_keeps_limits_is_the_same_client_behind_a_turnstile() -> None:
    world, passed = World(), []
    world.answers = [Answer("a"), Answer("b")]

    class Turnstile:
        @contextmanager
        def ticket(self, provider: ProviderPlan, tokens: int) -> Iterator[Free]:
            passed.append((provider.limits, tokens))
            yield Free()

    limited = plan().model_copy(update={"limits": CallLimits(max_concurrent=1)})
    async with world.registry.client(limited, Turnstile()) as one, world.registry.client(plan()) as two:
        assert len(world.built) == 1, "limits make no other client"
        for client in (one, two):
            assert [type(chunk) async for chunk in client.generate(GenerateRequest((), tokens=7))] == [
                TextChunk,
                EndChunk,
            ]
    assert passed == [(CallLimits(max_concurrent=1), 7)], "only the one that was given the turnstile passes it"
    assert world.closed == [False]


class Free:
    """A ticket for a turn at once."""

    async def ask(self) -> None:
        return None

    async def turn(self) -> None:
        raise AssertionError("nobody has to wait")

    def used(self, tokens: int) -> None:
        pass


async def test_a_rotated_key_applies_to_the_next_call_and_the_old_client_closes_after_its_last_user() -> None:
    world = World()
    async with world.registry.client(plan()) as old:
        world.key = "k2\n"
        async with world.registry.client(plan()) as new:
            assert new is not old
            assert world.closed == [False, False]
    assert world.closed == [True, False]
    assert [key for _, key, _ in world.built] == ["k1", "k2"]


async def test_a_provider_without_a_key_asks_for_none() -> None:
    world = World()
    world.problem = SecretProblem("SecretMissing", "never asked")
    async with world.registry.client(plan(key=False)):
        assert world.built[0][1] is None


@pytest.mark.parametrize("key", ["", "  \n", "two\nlines", "schlüssel"])
async def test_a_key_that_cannot_be_one_is_said_without_quoting_it(key: str) -> None:
    world = World()
    world.key = key
    with pytest.raises(ModelError) as raised:
        async with world.registry.client(plan()):
            pass
    assert raised.value.code is ModelErrorCode.CREDENTIALS_MISSING
    assert "'apiKey' of Secret team/llm" in str(raised.value)
    assert not key.strip() or key not in str(raised.value)


async def test_a_service_accounts_key_file_is_a_key_for_vertex_ai_only() -> None:
    world = World()
    world.key = '{\n  "type": "service_account"\n}\n'
    vertex = plan(type="vertexai").model_copy(update={"vertexai": Vertex(project="p", location="global")})
    async with world.registry.client(vertex):
        assert world.built[0][1] == world.key.strip()
    with pytest.raises(ModelError, match="printable"):
        async with world.registry.client(plan(type="google")):
            pass


async def test_a_secret_problem_names_provider_secret_key_and_remedy() -> None:
    world = World()
    world.problem = SecretProblem("SecretMissing", "no such Secret, create it")
    with pytest.raises(ModelError, match=r"provider p: API key 'apiKey' of Secret team/llm: no such Secret, create it"):
        async with world.registry.client(plan()):
            pass


async def test_an_unsupported_type_names_what_is_supported() -> None:
    registry = ModelRegistry(World().secret)
    with pytest.raises(ModelError, match=r"provider p: spec.type 'abacus' is not supported; use 'openai' \(") as raised:
        async with registry.client(plan(type="abacus")):
            pass
    assert raised.value.code is ModelErrorCode.INVALID_REQUEST and not raised.value.retryable


def test_a_provider_has_the_client_of_its_backend() -> None:
    made = {backend: build_client(plan().model_copy(update={"backend": backend}), None) for backend in CLIENTS}
    assert {backend: type(client) for backend, client in made.items()} == CLIENTS


@pytest.mark.parametrize("type", ["anthropic", "google", "xai"])
def test_every_type_can_be_spoken_to_through_langchain(type: str) -> None:
    assert isinstance(build_client(plan(type=type), None), LangChainProvider)


async def test_the_registry_is_bounded_and_never_closes_a_client_in_use() -> None:
    world = World(capacity=2)
    async with world.registry.client(plan("a")):
        async with world.registry.client(plan("b")), world.registry.client(plan("c")):
            assert world.closed == [False, False, False]
        assert world.closed == [False, False, False]
    assert world.closed == [True, False, False]


async def test_closing_the_registry_closes_every_client_and_refuses_new_calls() -> None:
    world = World()
    async with world.registry.client(plan("a")):
        pass
    async with world.registry.client(plan("b")):
        await world.registry.aclose()
    assert world.closed == [True, True]
    with pytest.raises(RuntimeError):
        async with world.registry.client(plan("a")):
            pass


async def test_a_hundred_calls_at_once_share_one_client() -> None:
    world = World()

    async def use() -> None:
        async with world.registry.client(plan()):
            await asyncio.sleep(0)

    async with asyncio.TaskGroup() as group:
        for _ in range(100):
            group.create_task(use())
    assert len(world.built) == 1
