"""Classifies the errors of the OpenAI and Anthropic SDKs and of their HTTP client.

Imported with an SDK (half a second), so only from modules that are loaded at first use. What a server's answer means
is decided in `llm.error_responses`; this module only reads the exceptions. The SDK of Anthropic is an optional package
whose errors have the shape of those of OpenAI, so that shape is asked for instead of its classes.
"""

from collections.abc import Mapping

import httpx2
import openai
from langchain_core.exceptions import ContextOverflowError

from tarsy.llm.call_errors import FailedCall, causes, of_connection, provider_message, said
from tarsy.llm.context_windows import noted
from tarsy.llm.error_responses import clean_message, of_event, of_status, remedy, retry_after, words_of, words_of_text
from tarsy.llm.protocol import ModelError, ModelErrorCode


def classify_sdk_error(error: BaseException, call: FailedCall) -> ModelError:
    """Converts an error of the OpenAI or Anthropic SDK, or of their HTTP client.

    Args:
        error: as the SDK raised it.
        call: the call that it ended.
    """
    if (known := call.known(error)) is not None:
        return known
    body = getattr(error, "body", None)
    if isinstance(body, Mapping) and isinstance(body.get("error"), Mapping):
        body = body["error"]  # Anthropic's SDK leaves it wrapped
    words = clean_message(_words(error, body), call.secret)
    response = getattr(error, "response", None)
    if isinstance(response, httpx2.Response) and not response.is_success:
        status = response.status_code
        code, retryable = of_status(status, body, words, overflow=isinstance(error, ContextOverflowError))
        text = provider_message(f"the server answered {status}{remedy(code, status, call.makers)}", words, call)
        wait = retry_after(response.headers) if retryable else None
        return noted(call.error(code, text, retryable=retryable, retry_after=wait, words=words), body)
    code, retryable, text = _of_type(error, body, words, call)
    return noted(call.error(code, text, retryable=retryable, words=words), body)


def _of_type(error: BaseException, body: object, words: str, call: FailedCall) -> tuple[ModelErrorCode, bool, str]:
    found = list(causes(error))
    if any(isinstance(cause, httpx2.ConnectTimeout) for cause in found):
        return ModelErrorCode.CONNECTION, True, "the server did not accept the connection in time"
    if any(isinstance(c, openai.APITimeoutError | httpx2.TimeoutException | TimeoutError) for c in found):
        return ModelErrorCode.TIMEOUT, True, "the server sent nothing for too long"
    if any(isinstance(cause, httpx2.UnsupportedProtocol | httpx2.InvalidURL) for cause in found):
        return ModelErrorCode.INVALID_REQUEST, False, "spec.baseURL is not a usable http(s) URL"
    if any(isinstance(cause, openai.APIConnectionError | httpx2.TransportError | OSError) for cause in found):
        return of_connection(found, words if call.makers else said(found[-1], makers=False), call)
    if isinstance(error, openai.APIError) or isinstance(body, Mapping):
        code, retryable = of_event(body, words, overflow=isinstance(error, ContextOverflowError))
        return code, retryable, provider_message("the server reported an error in its response", words, call)
    code = ModelErrorCode.PARTIAL_STREAM if call.started else ModelErrorCode.SERVER
    return code, True, provider_message(f"the response cannot be read ({type(error).__name__})", words, call)


def _words(error: BaseException, body: object) -> str:
    """Returns the server's message, without the wrapping of the SDK."""
    response = getattr(error, "response", None)
    if isinstance(response, httpx2.Response) and not response.is_success:
        return words_of(body) or words_of_text(response.text) or response.reason_phrase or "no message"
    if isinstance(error, openai.APIConnectionError | httpx2.TransportError | OSError):
        innermost = list(causes(error))[-1]
        return f"{type(innermost).__name__}: {innermost}"
    if isinstance(error, openai.APIError) or isinstance(body, Mapping):
        return words_of(body) or str(error)
    return str(error).partition("\n")[0] or "no message"
