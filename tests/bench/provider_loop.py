"""One client reads streams of `stamp_server`: `python provider_loop.py CLIENT BASE_URL MODEL CALLS AT_ONCE`.

A process of its own, so that its CPU is that client's alone. It prints JSON: CPU and wall seconds, and for each token
the milliseconds from the server's write to the consumer's loop. Calls before the counted ones pay for imports and
connections.

The clients of this project are wrapped in their retries, as the engine has them. `sdk` is the openai package alone,
`chat` is ChatOpenAI with all defaults, `genai` is google-genai alone.
"""

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator, Callable

from stamp_server import DIGITS

from tarsy.llm.protocol import GenerateRequest, LLMClient, TextChunk
from tarsy.llm.registry import build_client
from tarsy.llm.retry import Retrying
from tarsy.plan.model import Backend, ObjectRef, ProviderPlan
from tarsy.record.messages import Message, Role

QUESTION = "why? " * 200


Texts = Callable[[], AsyncIterator[str]]


def ours(client: LLMClient) -> Texts:
    """A client of this project."""
    request = GenerateRequest([Message(Role.USER, QUESTION)], execution="e")

    async def texts() -> AsyncIterator[str]:
        async for chunk in client.generate(request):
            if isinstance(chunk, TextChunk):
                yield chunk.text

    return texts


def sdk(base_url: str, model: str) -> Texts:
    """The openai package."""
    import openai

    client = openai.AsyncOpenAI(api_key="key", base_url=base_url, max_retries=0)

    async def texts() -> AsyncIterator[str]:
        stream = await client.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": QUESTION}],
            stream=True,
            stream_options={"include_usage": True},
        )
        async for chunk in stream:
            if chunk.choices:
                yield chunk.choices[0].delta.content or ""

    return texts


def chat(base_url: str, model: str) -> Texts:
    """ChatOpenAI."""
    from langchain_core.messages import HumanMessage
    from langchain_openai import ChatOpenAI

    client = ChatOpenAI(model=model, api_key="key", base_url=base_url, max_retries=0, stream_usage=True)  # type: ignore[arg-type]

    async def texts() -> AsyncIterator[str]:
        async for chunk in client.astream([HumanMessage(QUESTION)]):
            yield str(chunk.content)

    return texts


def genai(base_url: str, model: str) -> Texts:
    """The google-genai package."""
    from google.genai import Client, types

    options = types.HttpOptions(base_url=base_url.removesuffix("/v1"), api_version="v1beta")
    client = Client(api_key="key", http_options=options)

    async def texts() -> AsyncIterator[str]:
        async for chunk in await client.aio.models.generate_content_stream(model=model, contents=QUESTION):
            yield chunk.text or ""

    return texts


async def main(name: str, base_url: str, model: str, calls: int, at_once: int) -> None:
    """Reads the streams and prints what they cost."""
    client: LLMClient | None = None
    match name:
        case "sdk":
            texts = sdk(base_url, model)
        case "chat":
            texts = chat(base_url, model)
        case "genai":
            texts = genai(base_url, model)
        case _:
            ref = ObjectRef(kind="LLMProvider", namespace="bench", name="p")
            google = name == Backend.GOOGLE_NATIVE
            plan = ProviderPlan(
                ref=ref,
                type="google" if google else "openai",
                model=model,
                base_url=base_url.removesuffix("/v1") if google else base_url,
                backend=Backend(name),
            )
            client = Retrying(build_client(plan, "key"))
            texts = ours(client)
    delays: list[float] = []

    async def read() -> None:
        async for text in texts():
            now = time.monotonic_ns()
            delays.extend((now - int(text[at : at + DIGITS])) / 1e6 for at in range(0, len(text), DIGITS))

    async def at_once_reads() -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(read())

    await at_once_reads()
    delays.clear()
    cpu, wall = time.process_time(), time.monotonic()
    for _ in range(calls // at_once):
        await at_once_reads()
    used, took = time.process_time() - cpu, time.monotonic() - wall
    print(json.dumps({"cpu_seconds": used, "wall_seconds": took, "delays": delays}))
    if client is not None:
        await client.aclose()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]), int(sys.argv[5])))
