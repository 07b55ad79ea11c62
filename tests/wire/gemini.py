"""The shape of Gemini's `streamGenerateContent`, as recorded from its streams.

Camel-case JSON; thoughts are parts marked `thought`; signatures are base64 in the part that they belong to; calls come
whole; usage, grounding and the finish reason are in the last piece. Errors have a status and reasons in `details`, and
for a wrong key it is 400.
"""

import asyncio
import base64
import json
from collections.abc import Mapping
from typing import Any

from tarsy.llm.google_native.names import spell
from wire import server
from wire.server import Answerer, Said, event

USAGE = {"promptTokenCount": 20, "candidatesTokenCount": 5, "thoughtsTokenCount": 4, "cachedContentTokenCount": 7}


def text(words: str, signature: bytes | None = None) -> dict[str, Any]:
    """A part of the answer's text."""
    return _signed({"text": words}, signature)


def thought(words: str) -> dict[str, Any]:
    """A part of the summary of the model's thoughts."""
    return {"text": words, "thought": True}


def call(name: str, arguments: dict[str, Any], id: str | None = None, signature: bytes | None = None) -> dict[str, Any]:
    """A function call, as Gemini names it; older models give it no id."""
    return _signed({"functionCall": {"name": name, "args": arguments} | ({"id": id} if id else {})}, signature)


def code(source: str, output: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Code that Google ran, and what it printed."""
    return (
        {"executableCode": {"language": "PYTHON", "code": source}},
        {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": output}},
    )


def searched(queries: list[str], pages: dict[str, str]) -> dict[str, Any]:
    """Fields of a candidate that was grounded with search; `pages` are titles by URL."""
    chunks = [{"web": {"uri": url, "title": title}} for url, title in pages.items()]
    return {"groundingMetadata": {"webSearchQueries": queries, "groundingChunks": chunks}}


def read_pages(*urls: str) -> dict[str, Any]:
    """Fields of a candidate that read pages."""
    return {
        "urlContextMetadata": {
            "urlMetadata": [{"retrievedUrl": url, "urlRetrievalStatus": "URL_RETRIEVAL_STATUS_SUCCESS"} for url in urls]
        }
    }


def piece(
    *parts: dict[str, Any], finish: str | None = None, usage: dict[str, int] | None = None, **fields: Any
) -> dict[str, Any]:
    """One piece of a stream; `fields` are the candidate's."""
    candidate: dict[str, Any] = {"index": 0, **fields}
    if parts:
        candidate["content"] = {"role": "model", "parts": list(parts)}
    if finish:
        candidate["finishReason"] = finish
    made = {"candidates": [candidate], "modelVersion": "stand-in", "responseId": "r1"}
    return made | ({"usageMetadata": usage} if usage else {})


def last(*parts: dict[str, Any], finish: str = "STOP", **fields: Any) -> dict[str, Any]:
    """The piece that ends an answer."""
    return piece(*parts, finish=finish, usage=USAGE, **fields)


def blocked(reason: str) -> dict[str, Any]:
    """The only piece of an answer to a prompt that is refused."""
    return {"promptFeedback": {"blockReason": reason}, "usageMetadata": {"promptTokenCount": 20}}


def stream(*pieces: dict[str, Any] | bytes | asyncio.Event, cut: bool = False, hang: bool = False) -> Answerer:
    """Answers 200 with these pieces (bytes as they are, an event is waited for); then the end, a cut, or silence."""
    packets = [event(made) if isinstance(made, dict) else made for made in pieces]
    return server.stream(*packets, cut=cut, hang=hang)


def said(answer: Said) -> Answerer:
    """A whole answer."""
    pieces = [piece(thought(words)) for words in answer.thinking] + [piece(text(words)) for words in answer.text]
    calls = [call(spell(made.name), json.loads(made.arguments), made.id) for made in answer.calls]
    usage = None
    if (told := answer.usage) is not None:
        usage = {
            "promptTokenCount": told.input_tokens,
            "candidatesTokenCount": told.output_tokens - told.thinking_tokens,
            "thoughtsTokenCount": told.thinking_tokens,
            "cachedContentTokenCount": told.cached_tokens,
        }
    return stream(*pieces, piece(*calls, finish="STOP", usage=usage))


def half(*parts: bytes | asyncio.Event, **how: Any) -> Answerer:
    """An answer that begins with the text `half`."""
    return stream(piece(text("half")), *parts, **how)


def error(status: int, message: str, name: str = "", *details: dict[str, Any]) -> dict[str, Any]:
    """An error object."""
    return {"error": {"code": status, "message": message, "status": name, "details": list(details)}}


def reason(word: str) -> dict[str, Any]:
    """Why, for machines."""
    return {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": word, "domain": "googleapis.com"}


def retry_in(seconds: str) -> dict[str, Any]:
    """When to come again."""
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": seconds}


def quota(identifier: str) -> dict[str, Any]:
    """Which quota is used up."""
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": identifier}]}


def fail(status: int, words: str, headers: Mapping[str, str] | None = None, *details: dict[str, Any]) -> Answerer:
    """Answers with an error."""
    return server.fail(status, error(status, words, "", *details), dict(headers or {}))


def signatures(request: dict[str, Any]) -> list[bytes]:
    """The thought signatures of a request, in their order."""
    found = [part.get("thoughtSignature") for content in request["contents"] for part in content["parts"]]
    return [base64.urlsafe_b64decode(one) for one in found if one]


def _signed(part: dict[str, Any], signature: bytes | None) -> dict[str, Any]:
    return part if signature is None else part | {"thoughtSignature": base64.b64encode(signature).decode()}
