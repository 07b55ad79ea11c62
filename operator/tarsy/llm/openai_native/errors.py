"""Classifies the errors of aiohttp, and responses that are no stream."""

from typing import Any

import aiohttp
import orjson

from tarsy.llm.call_errors import FailedCall, causes, of_connection, provider_message, said
from tarsy.llm.context_windows import noted
from tarsy.llm.error_responses import (
    clean_message,
    not_a_stream,
    of_status,
    remedy,
    retry_after,
    words_of,
    words_of_text,
)
from tarsy.llm.openai_native.reading import UnreadableResponse, reported
from tarsy.llm.openai_native.sse import EventTooLong
from tarsy.llm.protocol import ModelError, ModelErrorCode


def classify_openai_error(error: BaseException, call: FailedCall) -> ModelError:
    """Converts an error of the openai-native client or of aiohttp.

    Args:
        error: as it was raised.
        call: the call that it ended.
    """
    if (known := call.known(error)) is not None:
        return known
    code, retryable, text = _of_type(error, call)
    words = clean_message(said(list(causes(error))[-1], makers=True), call.secret)
    return call.error(code, clean_message(text, call.secret, 600), retryable=retryable, words=words)


def response_error(response: aiohttp.ClientResponse, body: bytes, call: FailedCall) -> ModelError:
    """Converts a response that is no success; the error names no provider yet.

    Args:
        response: its status and headers.
        body: the beginning of its body.
        call: the call that it answers.
    """
    answered = _object(body)
    error = answered.get("error") or answered
    words = words_of(error) or (error if isinstance(error, str) else "") or words_of_text(body.decode(errors="replace"))
    words = clean_message(words or response.reason or "no message", call.secret)
    code, retryable = of_status(response.status, error, words)
    found = ModelError(
        code,
        provider_message(
            f"the server answered {response.status}{remedy(code, response.status, call.makers)}", words, call
        ),
        retryable=retryable,
        retry_after=retry_after(response.headers) if retryable else None,
        words=words,
    )
    return noted(found, error)


def no_stream(response: aiohttp.ClientResponse, body: bytes, call: FailedCall) -> ModelError:
    """Converts a success that is no stream; the error names no provider yet.

    Args:
        response: its status and headers.
        body: the beginning of its body, which may contain an error all the same.
        call: the call that it answers.
    """
    if error := _object(body).get("error"):
        return reported(error, call)
    text = not_a_stream(response.status, response.content_type)
    return ModelError(ModelErrorCode.INVALID_REQUEST, text, retryable=False)


def _of_type(error: BaseException, call: FailedCall) -> tuple[ModelErrorCode, bool, str]:
    found = list(causes(error))
    match error:
        case aiohttp.ConnectionTimeoutError():
            return ModelErrorCode.CONNECTION, True, "the server did not accept the connection in time"
        case TimeoutError():
            return ModelErrorCode.TIMEOUT, True, "the server sent nothing for too long"
        case EventTooLong():
            return ModelErrorCode.SERVER, False, f"the response cannot be read: {error}"
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return ModelErrorCode.INVALID_REQUEST, False, "spec.baseURL is not a usable http(s) URL"
        case aiohttp.ClientError() | OSError():
            return of_connection(found, said(found[-1], makers=call.makers), call)
    code = ModelErrorCode.PARTIAL_STREAM if call.started else ModelErrorCode.SERVER
    what = str(error) if isinstance(error, UnreadableResponse) else said(error, makers=call.makers)
    return code, True, f"the response cannot be read: {what}"


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
