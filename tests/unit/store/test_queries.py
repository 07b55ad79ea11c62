"""Statements are found by name, whole, and without a placeholder left in them."""

import re

import pytest

from tarsy.store.queries import load


@pytest.mark.parametrize("name", ["claims", "reads", "runs", "writer"])
def test_statements_are_complete(name: str) -> None:
    statements = load(name)
    assert statements
    for statement in statements.values():
        assert re.match(r"WITH|SELECT|INSERT|UPDATE|DELETE", statement)
        assert not re.search(r"\{_|--", statement)


def test_every_step_begins_with_the_fence() -> None:
    steps = {name: text for name, text in load("writer").items() if "INSERT" in text or "UPDATE" in text}
    assert len(steps) == 13
    for statement in steps.values():
        assert re.match(r"WITH fence AS MATERIALIZED \(\s+SELECT investigation FROM lease .* FOR SHARE", statement)
