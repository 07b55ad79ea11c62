"""Whatever the SDK raises becomes one error that says why, whether to try again, and never the key."""

import email.utils
import json
import socket
import ssl
import time

import httpx2
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st

from for_each import for_each
from tarsy.llm.call_errors import FailedCall
from tarsy.llm.error_responses import clean_message, retry_after
from tarsy.llm.protocol import ModelError, ModelErrorCode
from tarsy.llm.sdk_errors import classify_sdk_error

KEY = "sk-0123456789abcdefSECRET"
REQUEST = httpx2.Request("POST", "http://model.example/v1/chat/completions")
Code = ModelErrorCode


def of_status(
    status: int, body: object = None, headers: dict[str, str] | None = None, makers: bool = True
) -> ModelError:
    text = body if isinstance(body, str) else json.dumps({"error": body or {"message": "words"}})
    response = httpx2.Response(status, text=text, headers=headers, request=REQUEST)
    parsed = None if isinstance(body, str) else body or {"message": "words"}
    error = openai.APIStatusError("sdk words", response=response, body=parsed)
    return classify_sdk_error(error, FailedCall("provider p", KEY, started=False, makers=makers))


def of(error: BaseException, started: bool = False) -> ModelError:
    return classify_sdk_error(error, FailedCall("provider p", KEY, started))


def lost() -> openai.APIConnectionError:
    return openai.APIConnectionError(request=REQUEST)


def caused(error: Exception, by: BaseException) -> Exception:
    error.__cause__ = by
    return error


@for_each(
    ("status", "body", "code", "retryable"),
    [
        (401, None, Code.CREDENTIALS, False),
        (403, None, Code.CREDENTIALS, False),
        (404, None, Code.NOT_FOUND, False),
        (400, None, Code.INVALID_REQUEST, False),
        (422, None, Code.INVALID_REQUEST, False),
        (308, "", Code.INVALID_REQUEST, False),
        (400, {"message": "x", "code": "context_length_exceeded"}, Code.CONTEXT_TOO_LONG, False),
        (400, {"message": "the prompt is too long: 9 > 8"}, Code.CONTEXT_TOO_LONG, False),
        (400, {"message": "x", "code": "content_filter"}, Code.CONTENT_FILTER, False),
        (413, "too large", Code.CONTEXT_TOO_LONG, False),
        (402, {"message": "Insufficient Balance"}, Code.RATE_LIMIT, False),
        (429, None, Code.RATE_LIMIT, True),
        (429, {"message": "x", "code": "insufficient_quota"}, Code.RATE_LIMIT, False),
        (408, None, Code.TIMEOUT, True),
        (500, None, Code.SERVER, True),
        (503, None, Code.SERVER, True),
        (529, None, Code.SERVER, True),
    ],
)
def test_statuses_are_classified(status: int, body: object, code: ModelErrorCode, retryable: bool) -> None:
    error = of_status(status, body)
    assert (error.code, error.retryable, error.started) == (code, retryable, False)
    assert str(status) in str(error)


@pytest.mark.parametrize(
    ("body", "code", "retryable"),
    [
        ({"message": "overloaded", "code": 503}, Code.SERVER, True),
        ({"message": "slow down", "type": "rate_limit_error"}, Code.RATE_LIMIT, True),
        ({"message": "no credit", "code": "insufficient_quota"}, Code.INVALID_REQUEST, False),
        ({"message": "exceeds the context window"}, Code.CONTEXT_TOO_LONG, False),
        ({"message": "bad", "type": "invalid_request_error"}, Code.INVALID_REQUEST, False),
        ({"message": "who", "type": "authentication_error"}, Code.CREDENTIALS, False),
        ("just words", Code.SERVER, True),
    ],
)
def test_errors_inside_a_stream_are_classified_by_code_type_and_words(
    body: object, code: ModelErrorCode, retryable: bool
) -> None:
    error = of(openai.APIError("words", REQUEST, body=body), started=True)
    assert (error.code, error.retryable, error.started) == (code, retryable, True)


@pytest.mark.parametrize(
    ("error", "code", "retryable"),
    [
        (openai.APITimeoutError(REQUEST), Code.TIMEOUT, True),
        (httpx2.ReadTimeout("t"), Code.TIMEOUT, True),
        (TimeoutError(), Code.TIMEOUT, True),
        (caused(openai.APITimeoutError(REQUEST), httpx2.ConnectTimeout("t")), Code.CONNECTION, True),
        (
            caused(lost(), ConnectionRefusedError(111, "refused")),
            Code.CONNECTION,
            True,
        ),
        (caused(lost(), socket.gaierror(-2, "unknown")), Code.CONNECTION, True),
        (caused(httpx2.ConnectError("x"), ssl.SSLCertVerificationError("self-signed")), Code.CONNECTION, False),
        (
            caused(lost(), httpx2.UnsupportedProtocol("ftp")),
            Code.INVALID_REQUEST,
            False,
        ),
        (json.JSONDecodeError("bad", "x", 0), Code.SERVER, True),
    ],
)
def test_failures_without_a_status_are_classified(error: Exception, code: ModelErrorCode, retryable: bool) -> None:
    told = of(error)
    assert (told.code, told.retryable) == (code, retryable)


@pytest.mark.parametrize("error", [httpx2.RemoteProtocolError("cut"), ConnectionResetError(), ValueError("chunk")])
def test_whatever_breaks_after_the_first_chunk_is_a_partial_stream(error: Exception) -> None:
    told = of(error, started=True)
    assert (told.code, told.started) == (Code.PARTIAL_STREAM, True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after_is_read_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_as_a_date_is_the_time_until_then() -> None:
    seconds = retry_after({"retry-after": email.utils.formatdate(time.time() + 30, usegmt=True)})
    assert seconds is not None and 25 < seconds <= 30


def test_retry_after_comes_with_the_error_only_when_trying_again_may_help() -> None:
    assert of_status(503, headers={"retry-after": "4"}).retry_after == 4.0
    assert of_status(429, {"code": "insufficient_quota"}, {"retry-after": "4"}).retry_after is None


@given(st.text(max_size=400), st.text(max_size=400), st.sampled_from(["", "\x00", "\u200b", "\x1b"]))
def test_no_text_carries_the_key_control_characters_or_more_than_300_characters(a: str, b: str, mark: str) -> None:
    told = clean_message(a + KEY[:9] + mark + KEY[9:] + b, KEY)
    assert KEY not in told and len(told) <= 300 and told.isprintable()


def test_an_html_error_page_is_named_by_its_title() -> None:
    error = of_status(502, "<html><head><title>Bad gateway</title></head><body>" + "x" * 9000)
    assert str(error) == "provider p: the server answered 502: an HTML page, 'Bad gateway'"


def test_the_servers_own_words_are_kept_in_the_shapes_servers_use() -> None:
    assert str(of_status(422, {"detail": [{"loc": ["model"], "msg": "missing"}]})).endswith('missing"}]')
    assert str(of_status(500, "plain words")).endswith(": plain words")


def test_the_words_of_a_server_of_ones_own_are_kept_for_the_trace_and_not_told() -> None:
    error = of_status(400, "AccessKeyId and more", makers=False)
    assert str(error) == "provider p: the server answered 400; what it said is in the trace"
    assert error.words == "AccessKeyId and more"


def test_what_a_library_quotes_of_a_server_of_ones_own_is_not_told() -> None:
    error = of(caused(lost(), httpx2.RemoteProtocolError("illegal status line: bytearray(b'SSH-2.0')")))
    assert "SSH" not in str(error) and "RemoteProtocolError" in str(error) and "SSH" in error.words


def test_what_the_system_says_of_a_connection_is_told() -> None:
    assert "Connection refused" in str(of(caused(lost(), ConnectionRefusedError(111, "Connection refused"))))


def test_the_provider_is_named_once_where_an_error_names_it_already() -> None:
    named = ModelError(ModelErrorCode.INVALID_REQUEST, "provider p: spec.baseURL is not allowed", retryable=False)
    told = classify_sdk_error(named, FailedCall("provider p (model m)", KEY, started=False))
    assert told.message == "provider p (model m): spec.baseURL is not allowed"
