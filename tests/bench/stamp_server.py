"""A model whose tokens are the time at which they were sent: `python stamp_server.py PORT`.

It speaks OpenAI's chat completions and Gemini's `streamGenerateContent`. The name of the model is what it does: `200@5`
(to Gemini's clients `200-5`, for a name in a path) streams 200 tokens, 5 ms apart. A token is 20 digits of
`CLOCK_MONOTONIC` in nanoseconds, which all processes of a machine share, so whoever reads it knows how long it was on
its way.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from typing import Any

import orjson
from aiohttp import web

DIGITS = 20
MICROSECONDS = 10**12
"""What a stamp counts up to where it has to be shorter: in microseconds."""


async def completion(request: web.Request) -> web.StreamResponse:
    """One chat completion."""
    tokens, _, milliseconds = (await request.json())["model"].partition("@")
    response = await _tokens(
        request, int(tokens), float(milliseconds), lambda text: _event([_choice({"content": text})])
    )
    usage = {"prompt_tokens": 10, "completion_tokens": int(tokens), "total_tokens": 10 + int(tokens)}
    await response.write(_event([_choice({}, "stop")]) + _event([], usage=usage) + b"data: [DONE]\n\n")
    await response.write_eof()
    return response


async def content(request: web.Request) -> web.StreamResponse:
    """One streamed answer of Gemini."""
    tokens, _, milliseconds = request.match_info["model"].partition("-")
    response = await _tokens(request, int(tokens), float(milliseconds), _piece)
    await response.write(_piece("", finishReason="STOP"))
    await response.write_eof()
    return response


async def _tokens(
    request: web.Request, count: int, apart_ms: float, event: Callable[[str], bytes]
) -> web.StreamResponse:
    """Begins the response and sends the tokens."""
    await request.read()
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    loop = asyncio.get_running_loop()
    started = loop.time()
    for number in range(count):
        if apart_ms:
            await asyncio.sleep(started + number * apart_ms / 1000 - loop.time())
        await response.write(event(f"{time.monotonic_ns():0{DIGITS}}"))
    return response


def _piece(text: str, **fields: str) -> bytes:
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "index": 0, **fields}
    usage = {"promptTokenCount": 10, "candidatesTokenCount": 200, "totalTokenCount": 210}
    return (
        b"data: " + orjson.dumps({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m"}) + b"\r\n\r\n"
    )


def _choice(delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _event(choices: list[dict[str, Any]], usage: dict[str, int] | None = None) -> bytes:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: " + orjson.dumps({**head, "choices": choices, "usage": usage}) + b"\n\n"


if __name__ == "__main__":
    app = web.Application()
    app.router.add_post("/v1/chat/completions", completion)
    app.router.add_post("/v1beta/models/{model}:streamGenerateContent", content)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)
