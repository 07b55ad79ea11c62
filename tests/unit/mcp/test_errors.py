"""Tests that every exception of the SDK becomes one readable reason."""

import asyncio

from tarsy.mcp.errors import readable_error


def test_the_first_reason_inside_nested_groups_is_told() -> None:
    error = BaseExceptionGroup("a", [asyncio.CancelledError(), ExceptionGroup("b", [ConnectionError("refused")])])
    assert readable_error(error) == "refused"


def test_an_error_without_words_is_told_by_its_name() -> None:
    assert readable_error(ExceptionGroup("a", [TimeoutError()])) == "TimeoutError"
