"""Classifies the errors of google-genai and aiohttp.

A wrong key is a 400 with Google, a context that is too long is one too, so the reasons in the error's details decide
before the status does. A quota of a day is not waited for.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import aiohttp
from google.genai import errors

from tarsy.llm.call_errors import FailedCall, causes, of_connection, provider_message, said
from tarsy.llm.context_windows import noted
from tarsy.llm.error_responses import clean_message, of_status, remedy, retry_after, words_of, words_of_text
from tarsy.llm.protocol import ModelError, ModelErrorCode

_KEY = re.compile(r"API_KEY_|API key (not valid|expired)|ACCESS_TOKEN_", re.IGNORECASE)
_CONTEXT = re.compile(r"token count.{0,80}exceeds|exceeds the maximum number of tokens", re.IGNORECASE | re.DOTALL)
_DELAY = re.compile(r"(\d{1,9}(?:\.\d+)?)s")


def classify_google_error(error: BaseException, call: FailedCall) -> ModelError:
    """Converts an error of google-genai or aiohttp.

    Args:
        error: as it was raised.
        call: the call that it ended.
    """
    if (known := call.known(error)) is not None:
        return known
    wait: float | None = None
    if isinstance(error, errors.APIError):
        code, retryable, text, words, wait = _of_response(error, call)
        text = provider_message(text, words, call)
    else:
        code, retryable, text = _of_type(error, call)
        words = clean_message(said(list(causes(error))[-1], makers=True), call.secret)
    return noted(call.error(code, text, retryable=retryable, retry_after=wait, words=words))


def _of_response(error: errors.APIError, call: FailedCall) -> tuple[ModelErrorCode, bool, str, str, float | None]:
    body: Any = error.details
    body = body.get("error", body) if isinstance(body, Mapping) else {"message": str(body)}
    message = words_of(body)
    words = clean_message(words_of_text(message) if message else "no message", call.secret)
    status = error.code if isinstance(error.code, int) else 500
    provider_message = " ".join([words, *_reasons(body)])
    code, retryable = of_status(status, body, words, overflow=status == 400 and bool(_CONTEXT.search(provider_message)))
    if status == 400 and _KEY.search(provider_message):
        code = ModelErrorCode.CREDENTIALS
    elif status == 504:
        code = ModelErrorCode.TIMEOUT
    elif status == 429 and "PerDay" in provider_message:
        retryable = False
    if code is ModelErrorCode.NOT_FOUND and not call.makers:
        hint = " (check spec.model and spec.baseURL, which needs no version: the default is v1beta)"
    else:
        hint = remedy(code, status, call.makers)
    headers = getattr(error.response, "headers", None)
    wait = _delay(body)
    if wait is None and isinstance(headers, Mapping):
        wait = retry_after(headers)
    return code, retryable, f"the server answered {status}{hint}", words, wait if retryable else None


def _of_type(error: BaseException, call: FailedCall) -> tuple[ModelErrorCode, bool, str]:
    found = list(causes(error))
    words = clean_message(said(found[-1], makers=call.makers), call.secret)
    if any(isinstance(cause, aiohttp.InvalidURL) for cause in found):
        return ModelErrorCode.INVALID_REQUEST, False, "spec.baseURL is not a usable http(s) URL"
    if any(isinstance(cause, aiohttp.ConnectionTimeoutError) for cause in found):
        return ModelErrorCode.CONNECTION, True, "the server did not accept the connection in time"
    if any(isinstance(cause, aiohttp.ClientConnectionError | aiohttp.ClientPayloadError | OSError) for cause in found):
        return of_connection(found, words, call)
    if any(isinstance(cause, TimeoutError) for cause in found):
        return ModelErrorCode.TIMEOUT, True, "the server sent nothing for too long"
    code = ModelErrorCode.PARTIAL_STREAM if call.started else ModelErrorCode.SERVER
    line = str(error).partition("\n")[0] if call.makers else type(error).__name__
    return code, True, f"the response cannot be read ({clean_message(line, call.secret)})"


def _reasons(body: Mapping[str, Any]) -> Iterator[str]:
    """The machine-readable reasons of an error: `ErrorInfo.reason` and the ids of the quotas."""
    for detail in _details(body):
        yield str(detail.get("reason", ""))
        violations = detail.get("violations")
        for violation in violations if isinstance(violations, list) else ():
            yield str(violation.get("quotaId", "")) if isinstance(violation, Mapping) else ""


def _delay(body: Mapping[str, Any]) -> float | None:
    """Seconds to wait, from `RetryInfo`."""
    found = (_DELAY.fullmatch(str(detail.get("retryDelay", ""))) for detail in _details(body))
    return next((float(match[1]) for match in found if match is not None), None)


def _details(body: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    details = body.get("details")
    return [item for item in details if isinstance(item, Mapping)] if isinstance(details, list) else []
