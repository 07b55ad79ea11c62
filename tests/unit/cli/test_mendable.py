"""Errors that a person can mend are known by name, so that no command imports the rooms of all others."""

from importlib import import_module

import pytest

from tarsy.cli.running import MENDABLE


@pytest.mark.parametrize("module", MENDABLE)
def test_an_error_that_becomes_a_sentence_is_where_it_is_looked_for(module: str) -> None:
    error = getattr(import_module(module), MENDABLE[module])
    assert issubclass(error, Exception) and error.__module__ == module
