"""The window that a server states in its refusal, in the words of each, and nothing that is none."""

import pytest

from for_each import for_each
from tarsy.llm.context_windows import LEAST, MOST, noted, stated
from tarsy.llm.error_responses import of_status
from tarsy.llm.protocol import ModelError, ModelErrorCode

SAID = {
    "openai": (
        "This model's maximum context length is 4096 tokens. However, your messages resulted in 5012 tokens. Please "
        "reduce the length of the messages.",
        (4096, 5012),
    ),
    "openai with tools": (
        "This model's maximum context length is 16385 tokens. However, you requested 17000 tokens (16000 in the "
        "messages, 1000 in the completion).",
        (16385, 16000),
    ),
    "openrouter": (
        "This endpoint's maximum context length is 8192 tokens. However, you requested about 9300 tokens (9000 of text "
        "input, 300 in the output).",
        (8192, 9300),
    ),
    "vllm": (
        "This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens. Please "
        "reduce the length of the input messages.",
        (4096, 5000),
    ),
    "llama.cpp": ("the request exceeds the available context size (4096 tokens), try increasing it", (4096, None)),
    "llama.cpp, newer": ("request (5123 tokens) exceeds the available context size (4096 tokens)", (4096, 5123)),
    "anthropic": ("prompt is too long: 208310 tokens > 200000 maximum", (200_000, 208_310)),
    "anthropic with answer": (
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length",
        (200_000, None),
    ),
    "gemini": (
        "The input token count (1100000) exceeds the maximum number of tokens allowed (1048576).",
        (1_048_576, 1_100_000),
    ),
    "mistral": (
        "Prompt contains 40001 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        (32_768, 40_001),
    ),
    "xai": (
        "This model's maximum prompt length is 131072 but the request contains 150000 tokens.",
        (131_072, 150_000),
    ),
    "thousands": ("maximum context length is 32,768 tokens", (32_768, None)),
    "none": (
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        (None, None),
    ),
    "another number": ("the request of 2026-11-20 exceeds the context window", (None, None)),
}


@pytest.mark.parametrize("server", SAID)
def test_window_and_request_are_read_from_the_words_of_each_server(server: str) -> None:
    words, expected = SAID[server]
    assert stated(words) == expected
    overflow = server == "gemini"  # its own client knows it by other means
    assert of_status(400, {}, words, overflow=overflow)[0] is ModelErrorCode.CONTEXT_TOO_LONG


def test_what_a_server_states_as_data_counts_before_its_words() -> None:
    body = {"type": "exceed_context_size_error", "n_prompt_tokens": 5123, "n_ctx": 4096}
    assert stated("the request exceeds the available context size (9999 tokens)", body) == (4096, 5123)
    assert stated("too long", {"n_ctx": "4096"}) == (None, None)


@pytest.mark.parametrize(
    ("tokens", "window"),
    [(LEAST - 1, None), (LEAST, LEAST), (LEAST + 1, LEAST + 1), (MOST, MOST), (MOST + 1, None)],
)
def test_a_window_that_cannot_be_is_not_believed(tokens: int, window: int | None) -> None:
    assert stated(f"maximum context length is {tokens} tokens")[0] == window


@for_each("code", list(ModelErrorCode))
def test_only_a_conversation_that_is_too_long_tells_of_a_window(code: ModelErrorCode) -> None:
    error = noted(ModelError(code, SAID["openai"][0], retryable=False))
    assert (error.window, error.asked) == ((4096, 5012) if code is ModelErrorCode.CONTEXT_TOO_LONG else (None, None))
