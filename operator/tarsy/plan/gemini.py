"""Reads the abilities of a Gemini model from its name.

Decision: a name that says no version (`gemini-flash-latest`, a tuned model) counts as new, so that the list of old
models stays closed and a new one needs no change here.
"""

from __future__ import annotations

import re

_VERSION = re.compile(r"(?:^|/)gemini-(\d+)(?:\.(\d+))?(?=-|$)")
_WITHOUT_THINKING = re.compile(r"(?:^|/)(?:gemma|learnlm)|-(?:image|tts|live|native-audio)(?:-|$)")
_NEW = (3, 0)


def signs_calls(model: str) -> bool:
    """Whether a model requires a thought signature with each function call (Gemini 3 and newer).

    The same models take native tools and function tools in one request, on Gemini's own API.
    """
    return _version(model) >= _NEW


def thinks(model: str) -> bool:
    """Whether the thinking of a model can be set."""
    return _version(model) >= (2, 5) and not _WITHOUT_THINKING.search(model)


def thinks_by_level(model: str) -> bool:
    """Whether its thinking is set by a level, not by a budget of tokens."""
    return thinks(model) and _version(model) >= _NEW


def default_budget(model: str) -> int | None:
    """Returns the default thinking budget in tokens; None where a level is set instead."""
    if not thinks(model) or thinks_by_level(model):
        return None
    return 32_768 if "-pro" in model else 24_576


def _version(model: str) -> tuple[int, int]:
    found = _VERSION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else _NEW
