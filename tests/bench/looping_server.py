"""A model that calls a tool until it has said enough: `python looping_server.py PORT CALLS`.

The answer number `CALLS` of a conversation is the final one; those before it are some words and one tool call. The
request is not parsed: the answers that it holds are counted.
"""

import sys

import orjson
from aiohttp import web

WORDS = ("the", "pod", "restarts", "because", "its", "variable", "is", "missing")
MOST_BYTES = 64 << 20


def application(calls: int) -> web.Application:
    """The server of the model.

    Args:
        calls: of a conversation, the last of which is answered without a tool call.
    """

    async def answer(request: web.Request) -> web.StreamResponse:
        number = (await request.read()).count(b'"role":"assistant"')
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"".join(_events(number, final=number + 1 >= calls)))
        await response.write_eof()
        return response

    app = web.Application(client_max_size=MOST_BYTES)
    app.router.add_post("/v1/chat/completions", answer)
    return app


def _events(number: int, *, final: bool) -> list[bytes]:
    made = [_event({"content": f"{word} "}) for word in WORDS]
    if not final:
        function = {"name": "k__get", "arguments": f'{{"n": {number}}}'}
        made.append(
            _event({"tool_calls": [{"index": 0, "id": f"c{number}", "type": "function", "function": function}]})
        )
    made.append(_event({}, "stop" if final else "tool_calls"))
    return [*made, b"data: [DONE]\n\n"]


def _event(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + orjson.dumps({"object": "chat.completion.chunk", "choices": [choice]}) + b"\n\n"


if __name__ == "__main__":
    web.run_app(application(int(sys.argv[2])), host="127.0.0.1", port=int(sys.argv[1]), print=None, access_log=None)
