"""Reads the context window from the error of a server that rejects a long conversation.

Servers of the same API word it differently, and few state it as data (llama.cpp does, as `n_ctx`). Only a sentence
whose meaning is certain is read: a number that is none of the window would shorten every later call of the agent.
"""

import re
from collections.abc import Mapping

from tarsy.llm.protocol import ModelError, ModelErrorCode

LEAST, MOST = 256, 100_000_000
"""Tokens of a window that is believed."""

_N = r"(\d[\d,_]*)"
_WINDOWS = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"maximum (?:context|prompt|input|sequence) length (?:is|of|:)\s*{_N}",  # OpenAI, vLLM, OpenRouter, xAI
        rf"model with {_N} maximum context length",  # Mistral
        rf"available context size \(\s*{_N} tokens?\)",  # llama.cpp
        rf"context (?:window|length|size)(?: (?:is|of)|:| limit of)\s*{_N}\s*(?:tokens|\.|,|$)",  # Ollama, LM Studio
        rf"{_N} tokens? > {_N} maximum",  # Anthropic
        rf"exceed context limit: {_N} \+ {_N} > {_N}",  # Anthropic, answer included
        rf"maximum number of (?:input )?tokens allowed \(\s*{_N}\s*\)",  # Gemini
        rf"max_new_tokens`? must be <= {_N}",  # TGI
        rf"max_model_len\D{{1,3}}{_N}",  # vLLM
    )
)
_ASKED = tuple(
    re.compile(pattern, re.IGNORECASE | re.DOTALL)
    for pattern in (
        rf"messages resulted in {_N} tokens",
        rf"{_N} (?:tokens )?(?:in|from) the (?:messages|input)",
        rf"request (?:has|contains) {_N} (?:input )?tokens",
        rf"request \(\s*{_N} tokens?\) exceeds",
        rf"prompt contains (?:at least )?{_N}",
        rf"input token count(?: is)? \(\s*{_N}\s*\)",
        rf"{_N} tokens? > {_N} maximum",
        rf"given: {_N} `?inputs`? tokens",
        rf"you requested (?:about )?{_N} tokens",
    )
)


def noted(error: ModelError, body: object = None) -> ModelError:
    """The error, with what the server states where it found a conversation too long.

    Args:
        error: has the server's words.
        body: as for `stated`.
    """
    if error.code is ModelErrorCode.CONTEXT_TOO_LONG:
        error.window, error.asked = stated(error.words or error.message, body)
    return error


def stated(words: str, body: object = None) -> tuple[int | None, int | None]:
    """The tokens that the model's window holds, and those of the request, as far as the server states them.

    Args:
        words: what the server says.
        body: its error object, where there is one.
    """
    window = _number(body, "n_ctx") or _last(_WINDOWS, words)
    asked = _number(body, "n_prompt_tokens") or _first(_ASKED, words)
    return window, asked


def _number(body: object, name: str) -> int | None:
    found = body.get(name) if isinstance(body, Mapping) else None
    return _believed(found) if type(found) is int else None


def _last(patterns: tuple[re.Pattern[str], ...], words: str) -> int | None:
    """The last number of the first pattern that fits: the window stands behind what exceeds it."""
    match = next((found for pattern in patterns if (found := pattern.search(words))), None)
    return None if match is None else _believed(_int(match[match.re.groups]))


def _first(patterns: tuple[re.Pattern[str], ...], words: str) -> int | None:
    match = next((found for pattern in patterns if (found := pattern.search(words))), None)
    return None if match is None else _believed(_int(match[1]))


def _int(digits: str) -> int:
    return int(digits.replace(",", "").replace("_", "")[:12])


def _believed(tokens: int) -> int | None:
    return tokens if LEAST <= tokens <= MOST else None
