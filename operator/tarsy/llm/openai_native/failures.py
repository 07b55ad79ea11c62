"""What aiohttp raises, and what a server answers instead of a stream, told as one `ModelError`."""

from typing import Any

import aiohttp
import orjson

from tarsy.llm.context_windows import noted
from tarsy.llm.failures import causes, describe_provider, not_allowed, of_connection, provider_message, said
from tarsy.llm.openai_native.reading import UnreadableResponse, reported
from tarsy.llm.openai_native.sse import EventTooLong
from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.llm.refusal import clean_message, not_a_stream, of_status, remedy, retry_after, words_of, words_of_text


def classify_openai_error(
    error: BaseException, *, subject: str, secret: str | None, started: bool, makers: bool = False
) -> ModelError:
    """Turns whatever a model call raised into a ModelError.

    Args:
        error: as it was raised.
        subject: provider and model, the beginning of every message.
        secret: the API key, which is taken out of every text.
        started: whether anything of the answer was received before.
        makers: whether the server is the maker's own.
    """
    if isinstance(error, ModelError):
        return describe_provider(error, subject=subject, started=started)
    code, retryable, text = _of_type(error, started, makers)
    words = clean_message(said(list(causes(error))[-1], makers=True), secret)
    return ModelError(
        code, f"{subject}: {clean_message(text, secret, 600)}", retryable=retryable, started=started, words=words
    )


def refusal_error(
    response: aiohttp.ClientResponse, body: bytes, secret: str | None, *, makers: bool = False
) -> ModelError:
    """An answer that is no success; `body` is the beginning of its body."""
    answered = _object(body)
    error = answered.get("error") or answered
    words = words_of(error) or (error if isinstance(error, str) else "") or words_of_text(body.decode(errors="replace"))
    words = clean_message(words or response.reason or "no words", secret)
    code, retryable = of_status(response.status, error, words)
    found = ModelError(
        code,
        provider_message(
            f"the server answered {response.status}{remedy(code, response.status, makers)}", words, makers=makers
        ),
        retryable=retryable,
        retry_after=retry_after(response.headers) if retryable else None,
        words=words,
    )
    return noted(found, error)


def no_stream(response: aiohttp.ClientResponse, body: bytes, secret: str | None, *, makers: bool = False) -> ModelError:
    """A success that is no stream; `body` is the beginning of its body, which may tell an error all the same."""
    if error := _object(body).get("error"):
        return reported(error, secret, started=False, makers=makers)
    text = not_a_stream(response.status, response.content_type)
    return ModelError(ModelErrorCode.INVALID_REQUEST, text, retryable=False)


def _of_type(error: BaseException, started: bool, makers: bool) -> tuple[ModelErrorCode, bool, str]:
    found = list(causes(error))
    if why := not_allowed(found):
        return ModelErrorCode.INVALID_REQUEST, False, why
    match error:
        case aiohttp.ConnectionTimeoutError():
            return ModelErrorCode.CONNECTION, True, "the server did not accept the connection in time"
        case TimeoutError():
            return ModelErrorCode.TIMEOUT, True, "the server sent nothing for too long"
        case EventTooLong():
            return ModelErrorCode.SERVER, False, f"the answer cannot be read: {error}"
        case aiohttp.InvalidURL() | aiohttp.NonHttpUrlClientError():
            return ModelErrorCode.INVALID_REQUEST, False, "spec.baseURL is not a usable http(s) URL"
        case aiohttp.ClientError() | OSError():
            return of_connection(found, said(found[-1], makers=makers), started=started, makers=makers)
    code = ModelErrorCode.PARTIAL_STREAM if started else ModelErrorCode.SERVER
    what = str(error) if isinstance(error, UnreadableResponse) else said(error, makers=makers)
    return code, True, f"the answer cannot be read: {what}"


def _object(body: bytes) -> dict[str, Any]:
    try:
        found = orjson.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
