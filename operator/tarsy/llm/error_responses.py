"""Classifies the error responses of servers, for all clients alike.

Status, error code and type decide; the message is the last resort, because compatible servers word the same failure
differently. Messages are cleaned in one order: control characters out, the key out, then cut, so that no trick can
hide a key from the next step.
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
    """Returns external text as one line without control characters and without the key.

    Args:
        text: the text.
        secret: the key, or None.
        limit: maximum characters.
    """
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
    """Classifies a response by its status: code, and whether to retry.

    Args:
        status: the HTTP status.
        body: the error object, where there is one.
        words: the server's message.
        overflow: whether it is otherwise known that the context was too long.
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
    """Classifies an error in a stream that began with 200, by its object, which may contain a code.

    Args:
        body: the error object.
        words: the server's message.
        overflow: whether it is otherwise known that the context was too long.
    """
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
    """Returns the remedy for an error response, in brackets; empty where only waiting helps.

    Args:
        code: the code of the error.
        status: the HTTP status.
        makers: whether it came from the vendor's own address, so that there is no `spec.baseURL`.
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
    """Returns the message of an error object; empty if it contains none."""
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
    """Returns the message of a body that is not JSON: its beginning, or the title of a web page."""
    head = text[:4096]
    if "<html" not in head.lower():
        return head
    title = re.search(r"<title[^>]*>([^<]*)", head, re.IGNORECASE)
    return f"an HTML page, {title.group(1).strip()!r}" if title else "an HTML page"


def not_a_stream(status: int, kind: str) -> str:
    """Returns the error message for a web page or a whole completion instead of a stream."""
    return (
        f"the server answered {status} with {kind} instead of text/event-stream (check that spec.baseURL is the API's "
        "address, including `/v1`, and that the server supports streaming)"
    )


def _error_code(body: object) -> str:
    code = body.get("code") if isinstance(body, Mapping) else None
    return "" if code is None else str(code)
