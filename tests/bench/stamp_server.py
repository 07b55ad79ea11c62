"""A model whose tokens are the time at which they were sent: `python stamp_server.py PORT`.

The name of the model is what it does: `200@5` streams 200 tokens, 5 ms apart. A token is 20 digits of `CLOCK_MONOTONIC`
in nanoseconds, which all processes of a machine share, so whoever reads it knows how long it was on its way.
"""

import asyncio
import sys
import time
from typing import Any

import orjson
from aiohttp import web

DIGITS = 20
MICROSECONDS = 10**12
"""What a stamp counts up to where it has to be shorter: in microseconds."""


async def answer(request: web.Request) -> web.StreamResponse:
    """One chat completion."""
    tokens, _, milliseconds = (await request.json())["model"].partition("@")
    count, apart = int(tokens), float(milliseconds) / 1000
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(request)
    loop = asyncio.get_running_loop()
    started = loop.time()
    for number in range(count):
        if apart:
            await asyncio.sleep(started + number * apart - loop.time())
        await response.write(_event([_choice({"content": f"{time.monotonic_ns():0{DIGITS}}"})]))
    usage = {"prompt_tokens": 10, "completion_tokens": count, "total_tokens": 10 + count}
    await response.write(_event([_choice({}, "stop")]) + _event([], usage=usage) + b"data: [DONE]\n\n")
    await response.write_eof()
    return response


def _choice(delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _event(choices: list[dict[str, Any]], usage: dict[str, int] | None = None) -> bytes:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: " + orjson.dumps({**head, "choices": choices, "usage": usage}) + b"\n\n"


if __name__ == "__main__":
    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    web.run_app(app, host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)
