"""Matches alert labels as Alertmanager does: equal, not equal, regular expression, its negation.

Decision: expressions are RE2's, which takes time in proportion to the label, because routes are written by users. A
label that is not there is an empty one, as in Alertmanager, so `team!=""` asks for one.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import re2  # type: ignore[import-untyped]

from tarsy.resources.v1alpha1.alert_route import Matcher

OWN_LABEL: Final = "tarsy_self"
"""Defines rules about TARSy itself carry this label as "true": it does not investigate itself."""

SOURCE_LABEL: Final = "__source__"


class InvalidMatcher(Exception):
    """An expression that RE2 does not take; `sentence` says why, and what to do."""

    def __init__(self, sentence: str) -> None:
        super().__init__(sentence)
        self.sentence = sentence


def matches(matcher: Matcher, labels: Mapping[str, str]) -> bool:
    """Whether the labels are as the matcher says.

    Raises:
        InvalidMatcher: its expression cannot be used.
    """
    value = labels.get(matcher.name, "")
    match matcher.match_type:
        case "=":
            return value == matcher.value
        case "!=":
            return value != matcher.value
        case "=~":
            return _expression(matcher.value).fullmatch(value) is not None
        case "!~":
            return _expression(matcher.value).fullmatch(value) is None


def check_matcher(matcher: Matcher) -> None:
    """Raises InvalidMatcher where the matcher has an expression that cannot be used."""
    if matcher.match_type in ("=~", "!~"):
        _expression(matcher.value)


def format_matcher(matcher: Matcher) -> str:
    """The matcher as people write it."""
    return f'{matcher.name}{matcher.match_type}"{matcher.value}"'


@lru_cache(maxsize=4096)
def _expression(text: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 8 << 20
    try:
        return re2.compile(text, options)
    except re2.error as error:
        why = error.args[0] if error.args else "it is malformed"
        why = why.decode(errors="replace") if isinstance(why, bytes) else str(why)
        raise InvalidMatcher(f"RE2 does not accept this expression: {why}; change it") from None
