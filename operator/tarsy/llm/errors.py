"""What the SDK raises, told as one `ModelError`: why, whether to try again, and the server's own words.

Imported with the SDK (half a second), so only from modules that are loaded at first use. Decisions are made on status,
type and error code, words are only the last resort, because compatible servers word the same failure differently.
Whatever is said is said once: control characters out, the key out, then cut, in this order, so that neither trick
can hide a key from the next step.
"""

import email.utils
import json
import re
import socket
import ssl
import time
from collections.abc import Iterator, Mapping
from typing import Any

import httpx2
import openai
from langchain_core.exceptions import ContextOverflowError

from tarsy.llm.protocol import ModelError, ModelErrorCode

WORDS = 300
_CONTEXT = re.compile(
    r"context_length_exceeded|maximum context length|context window|context size|prompt is too long"
    r"|input tokens exceed|too many (input )?tokens|max_model_len",
    re.IGNORECASE,
)
_FILTER = re.compile(r"content_filter|content_policy_violation|ResponsibleAIPolicyViolation", re.IGNORECASE)
_NEVER_AGAIN = {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"}


def classify(error: BaseException, *, subject: str, secret: str | None, started: bool) -> ModelError:
    """Turns whatever a model call raised into a ModelError.

    Args:
        error: as the SDK raised it.
        subject: provider and model, the beginning of every message.
        secret: the API key, which is taken out of every text.
        started: whether anything of the answer was received before.
    """
    if isinstance(error, ModelError):
        return ModelError(
            error.code,
            f"{subject}: {error.message}",
            retryable=error.retryable,
            retry_after=error.retry_after,
            started=started or error.started,
        )
    status = getattr(error, "status_code", None)
    body = getattr(error, "body", None)
    words = clean(_words(error, body), secret)
    if isinstance(error, openai.APIStatusError) and isinstance(status, int):
        code, retryable = _of_status(error, status, _error_code(body), words)
        text = f"the server answered {status}{_remedy(code, status)}: {words}"
        return ModelError(
            code,
            f"{subject}: {text}",
            retryable=retryable,
            retry_after=retry_after(error.response.headers) if retryable else None,
            started=started,
        )
    code, retryable, text = _of_type(error, body, words, started)
    return ModelError(code, f"{subject}: {text}", retryable=retryable, started=started)


def clean(text: str, secret: str | None, limit: int = WORDS) -> str:
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


def _of_status(error: BaseException, status: int, error_code: str, words: str) -> tuple[ModelErrorCode, bool]:
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
    if isinstance(error, ContextOverflowError) or _CONTEXT.search(told):
        return ModelErrorCode.CONTEXT_TOO_LONG, False
    if _FILTER.search(told):
        return ModelErrorCode.CONTENT_FILTER, False
    return ModelErrorCode.INVALID_REQUEST, False


def _of_type(error: BaseException, body: object, words: str, started: bool) -> tuple[ModelErrorCode, bool, str]:
    causes = list(_causes(error))
    if any(isinstance(cause, httpx2.ConnectTimeout) for cause in causes):
        return ModelErrorCode.CONNECTION, True, "the server did not accept the connection in time"
    if any(isinstance(c, openai.APITimeoutError | httpx2.TimeoutException | TimeoutError) for c in causes):
        return ModelErrorCode.TIMEOUT, True, "the server sent nothing for too long"
    if any(isinstance(cause, httpx2.UnsupportedProtocol | httpx2.InvalidURL) for cause in causes):
        return ModelErrorCode.INVALID_REQUEST, False, f"spec.baseURL is not a usable http(s) URL: {words}"
    if any(isinstance(cause, openai.APIConnectionError | httpx2.TransportError | OSError) for cause in causes):
        if started:
            return ModelErrorCode.PARTIAL_STREAM, True, f"the connection broke in the middle of the answer: {words}"
        if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
            return ModelErrorCode.CONNECTION, False, f"the server's TLS certificate is not trusted: {words}"
        if any(isinstance(cause, socket.gaierror) for cause in causes):
            return ModelErrorCode.CONNECTION, True, f"the server's name cannot be resolved, check spec.baseURL: {words}"
        return ModelErrorCode.CONNECTION, True, f"no answer from the server: {words}"
    if isinstance(error, openai.APIError):
        code, retryable = _of_event(error, body, words)
        return code, retryable, f"the server reported an error in its answer: {words}"
    code = ModelErrorCode.PARTIAL_STREAM if started else ModelErrorCode.SERVER
    return code, True, f"the answer cannot be read ({type(error).__name__}): {words}"


def _of_event(error: BaseException, body: object, words: str) -> tuple[ModelErrorCode, bool]:
    """An error sent as an event of a stream that began with 200: no status, only a body (sometimes with a code)."""
    error_code = _error_code(body)
    status = int(error_code) if re.fullmatch(r"[45]\d\d", error_code) else 0
    if not status and isinstance(body, Mapping):
        told = f"{error_code} {body.get('type')}".lower()
        status = 429 if "rate_limit" in told else 401 if "authentication" in told else 0
        status = status or (400 if "invalid_request" in told or error_code in _NEVER_AGAIN else 0)
    code, retryable = _of_status(error, status or 500, error_code, words)
    told = f"{error_code} {words}"
    if code in (ModelErrorCode.SERVER, ModelErrorCode.INVALID_REQUEST):
        if isinstance(error, ContextOverflowError) or _CONTEXT.search(told):
            return ModelErrorCode.CONTEXT_TOO_LONG, False
        if _FILTER.search(told):
            return ModelErrorCode.CONTENT_FILTER, False
    return code, retryable


def _remedy(code: ModelErrorCode, status: int) -> str:
    match code:
        case ModelErrorCode.INVALID_REQUEST if status < 400:
            return " (redirects are not followed: put the final address into spec.baseURL)"
        case ModelErrorCode.CREDENTIALS:
            return " (check the API key in the provider's Secret)"
        case ModelErrorCode.NOT_FOUND:
            return " (check spec.model and spec.baseURL, which is taken as given, `/v1` included)"
        case _:
            return ""


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _error_code(body: object) -> str:
    code = body.get("code") if isinstance(body, Mapping) else None
    return "" if code is None else str(code)


def _words(error: BaseException, body: object) -> str:
    """What the server said, without the wrapping of the SDK."""
    if isinstance(error, openai.APIStatusError):
        return _of_body(body) or _of_text(error.response.text) or error.response.reason_phrase or "no words"
    if isinstance(error, openai.APIConnectionError | httpx2.TransportError | OSError):
        innermost = list(_causes(error))[-1]
        return f"{type(innermost).__name__}: {innermost}"
    if isinstance(error, openai.APIError):
        return _of_body(body) or error.message
    return str(error).partition("\n")[0] or "no words"


def _of_body(body: Any) -> str:
    match body:
        case {"message": str(message)} | {"error": str(message)} | {"error": {"message": str(message)}}:
            return message
        case {"detail": detail} if detail:
            return detail if isinstance(detail, str) else json.dumps(detail, ensure_ascii=False, default=str)
        case dict() if body:
            return json.dumps(body, ensure_ascii=False, default=str)
        case _:
            return ""


def _of_text(text: str) -> str:
    head = text[:4096]
    if "<html" not in head.lower():
        return head
    title = re.search(r"<title[^>]*>([^<]*)", head, re.IGNORECASE)
    return f"an HTML page, {title.group(1).strip()!r}" if title else "an HTML page"
