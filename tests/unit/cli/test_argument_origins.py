"""Origins of arguments in a terminal."""

import pytest

from tarsy.cli.runs.argument_origins import origins_text


@pytest.mark.parametrize(
    ("found", "text"),
    [
        (None, ""),
        ("x", ""),
        ([], ""),
        ([{"argument": "/url", "origins": ["A", "X"], "destination": True}], "/url (destination) from A, X"),
        (
            [{"argument": "/a", "origins": ["K"]}, {"argument": "/b", "origins": ["Nowhere"]}],
            "/a from K; /b from Nowhere",
        ),
        ([3, {}], " from "),
    ],
)
def test_origins_are_one_line(found: object, text: str) -> None:
    assert origins_text(found) == text


@pytest.mark.parametrize(("count", "more"), [(8, False), (9, True)])
def test_many_arguments_are_counted(count: int, more: bool) -> None:
    found = [{"argument": f"/{n}", "origins": ["K"]} for n in range(count)]
    assert origins_text(found).endswith("and 1 more") is more
