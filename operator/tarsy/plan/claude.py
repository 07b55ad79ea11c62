"""Reads the abilities of a Claude model from its name.

Decision: a name that says no version (an alias of a gateway) counts as old, because old ways of thinking are refused
by new models with words, and new ones silently left by old gateways.
"""

from __future__ import annotations

import re

_NAME = re.compile(r"(?:^|[/.])claude-([a-z]+)-(\d+)(?:-(\d{1,2}))?(?![\d])")


def thinks_adaptively(model: str) -> bool:
    """Whether a model decides itself how much it thinks: it accepts an effort, but no budget of tokens.

    Source: the docstring of ChatAnthropic 1.7.7 ("budget_tokens is removed": Opus from 4.7 on, all others from 5 on).
    """
    if (found := _NAME.search(model)) is None:
        return False
    version = (int(found[2]), int(found[3] or 0))
    return version >= ((4, 7) if found[1] == "opus" else (5, 0))
