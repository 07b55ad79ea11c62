"""Classifies the error responses of servers, for all clients alike.

Decisions are made on status, error code and type; words are only the last resort, because compatible servers word the
same failure differently. Whatever is said is said once: control characters out, the key out, then cut, in this order,
so that neither trick can hide a key from the next step.
"""

import email.utils
import json
import re
import time
from collections.abc import Mapping
from typing import Any

from tarsy.llm.protocol import ModelErrorCode

WORDS = 300
NOT_A_STREAM = ("text/html", "application/json", "application/xhtml+xml")
"""Types of bodies that are certainly no stream of events."""
_CONTEXT = re.compile(
    r"context_length_exceeded|exceed_context_size|maximum (context|prompt) length|context window|context size"
    r"|prompt is too long|input tokens exceed|exceeds? (the )?context (limit|length)|too many (input )?tokens"
    r"|max_model_len|max_new_tokens`? must be <=",
    re.IGNORECASE,
)
_FILTER = re.compile(r"content_filter|content_policy_violation|ResponsibleAIPolicyViolation", re.IGNORECASE)
_NEVER_AGAIN = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}


def clean_message(text: str, secret: str | None, limit: int = WORDS) -> str:
    """One line of text from outside: no control characters, no key, at most `limit` characters."""
    line = " ".join("".join(c if c.isprintable() or c.isspace() else "" for c in text).split())
    if secret:
        line = line.replace(secret, "[key]")
    return line if len(line) <= limit else line[: limit - 1] + "…"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks to wait (`retry-after-ms`, `Retry-After` in seconds or as a date), or None."""
    milliseconds, value = headers.get("retry-after-ms"), headers.get("retry-after")
    for text, scale in ((milliseconds, 1000.0), (value, 1.0)):
        if text is not None and re.fullmatch(r"\s*\d{1,9}(\.\d+)?\s*", text):
            return float(text) / scale
    try:
        moment = email.utils.parsedate_to_datetime(value or "")
    except ValueError:
        return None
    return max(0.0, moment.timestamp() - time.time())


def of_status(status: int, body: object, words: str, *, overflow: bool = False) -> tuple[ModelErrorCode, bool]:
    """What an answer with this status means, and whether to ask again.

    Args:
        status: the HTTP status.
        body: the error object, where there is one.
        words: what the server said.
        overflow: whether it is known by other means that the context was too long.
    """
    error_code = _error_code(body)
    told = f"{error_code} {words}"
    match status:
        case 401 | 403:
            return ModelErrorCode.CREDENTIALS, False
        case 404:
            return ModelErrorCode.NOT_FOUND, False
        case 402:
            return ModelErrorCode.RATE_LIMIT, False
        case 408:
            return ModelErrorCode.TIMEOUT, True
        case 413:
            return ModelErrorCode.CONTEXT_TOO_LONG, False
        case 429:
            return ModelErrorCode.RATE_LIMIT, error_code not in _NEVER_AGAIN
        case 409 | 425:
            return ModelErrorCode.SERVER, True
    if status >= 500:
        return ModelErrorCode.SERVER, True
    if overflow or _CONTEXT.search(told):
        return ModelErrorCode.CONTEXT_TOO_LONG, False
    if _FILTER.search(told):
        return ModelErrorCode.CONTENT_FILTER, False
    return ModelErrorCode.INVALID_REQUEST, False


def of_event(body: object, words: str, *, overflow: bool = False) -> tuple[ModelErrorCode, bool]:
    """The same for an error in a stream that began with 200: no status, only an object (sometimes with a code)."""
    error_code = _error_code(body)
    status = int(error_code) if re.fullmatch(r"[45]\d\d", error_code) else 0
    if not status and isinstance(body, Mapping):
        told = f"{error_code} {body.get('type')}".lower()
        status = 429 if "rate_limit" in told else 401 if "authentication" in told else 0
        status = status or (400 if "invalid_request" in told or error_code in _NEVER_AGAIN else 0)
    code, retryable = of_status(status or 500, body, words, overflow=overflow)
    told = f"{error_code} {words}"
    if code in (ModelErrorCode.SERVER, ModelErrorCode.INVALID_REQUEST):
        if overflow or _CONTEXT.search(told):
            return ModelErrorCode.CONTEXT_TOO_LONG, False
        if _FILTER.search(told):
            return ModelErrorCode.CONTENT_FILTER, False
    return code, retryable


def remedy(code: ModelErrorCode, status: int, makers: bool) -> str:
    """What to do about an answer with this status, in brackets; empty where nothing helps but time.

    Args:
        code: what the answer means.
        status: the HTTP status.
        makers: whether it came from the maker's own address, so that there is no `spec.baseURL`.
    """
    match code:
        case ModelErrorCode.INVALID_REQUEST if status < 400:
            return " (redirects are not followed: set spec.baseURL to the final address)"
        case ModelErrorCode.CREDENTIALS:
            return " (check the API key in the provider's Secret)"
        case ModelErrorCode.NOT_FOUND if makers:
            return " (check spec.model)"
        case ModelErrorCode.NOT_FOUND:
            return " (check spec.model and spec.baseURL, which must include `/v1` if the API has it)"
        case _:
            return ""


def words_of(body: Any) -> str:
    """What an error object says; empty when it is none."""
    match body:
        case {"message": str(message)} | {"error": str(message)} | {"error": {"message": str(message)}}:
            return message
        case {"detail": detail} if detail:
            return detail if isinstance(detail, str) else json.dumps(detail, ensure_ascii=False, default=str)
        case dict() if body:
            return json.dumps(body, ensure_ascii=False, default=str)
        case _:
            return ""


def words_of_text(text: str) -> str:
    """What a body says that is no JSON: its beginning, or the title of a web page."""
    head = text[:4096]
    if "<html" not in head.lower():
        return head
    title = re.search(r"<title[^>]*>([^<]*)", head, re.IGNORECASE)
    return f"an HTML page, {title.group(1).strip()!r}" if title else "an HTML page"


def not_a_stream(status: int, kind: str) -> str:
    """The sentence about a web page, or a whole completion, where a stream was asked for."""
    return (
        f"the server answered {status} with {kind} instead of text/event-stream (check that spec.baseURL is the API's "
        "address, including `/v1`, and that the server supports streaming)"
    )


def _error_code(body: object) -> str:
    code = body.get("code") if isinstance(body, Mapping) else None
    return "" if code is None else str(code)
