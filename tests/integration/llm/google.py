"""What the tests of Gemini share: bytes that sign a thought, and what Gemini is sent."""

from collections.abc import Callable
from typing import Any

from integration.llm.asking import ASK, collect
from tarsy.llm.google_native.provider import GoogleNativeProvider
from tarsy.llm.protocol import GenerateRequest, LLMClient
from wire import gemini
from wire.server import StandIn

SIGNATURES = [bytes(range(256)), b"\xff\xfe\xfd"]
Make = Callable[..., GoogleNativeProvider]


async def asked(server: StandIn, client: LLMClient, request: GenerateRequest = ASK) -> dict[str, Any]:
    """What Gemini is sent."""
    server.answers = [gemini.stream(gemini.last(gemini.text("ok")))]
    await collect(client, request)
    sent: dict[str, Any] = server.requests[-1]
    return sent
