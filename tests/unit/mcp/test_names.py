"""Tests the splitting of tool names."""

import pytest

from tarsy.engine.ports import Toolbox
from tarsy.mcp.toolbox import McpToolbox


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("kubernetes.pods_list", ("kubernetes", "pods_list")),
        ("kubernetes__pods_list", ("kubernetes", "pods_list")),
        ("kubernetes.pods__list", ("kubernetes", "pods__list")),
        ("kubernetes__pods.list", ("kubernetes", "pods.list")),
        ("pods_list", ("", "pods_list")),
        ("", ("", "")),
    ],
)
def test_a_name_is_taken_apart_at_its_first_separator(name: str, parts: tuple[str, str]) -> None:
    assert McpToolbox({}, {}, str).split(name) == parts


def test_a_toolbox_is_what_the_engine_asks_for() -> None:
    box: Toolbox = McpToolbox({}, {"kubernetes": "it is not there"}, str)
    assert (box.tools, dict(box.unavailable)) == ((), {"kubernetes": "it is not there"})


async def test_a_call_to_a_server_that_is_not_there_says_why() -> None:
    box = McpToolbox({}, {"kubernetes": "it is not there"}, str)
    outcome = await box.call("kubernetes__pods", "{}", timeout=1, idempotency_key="k")
    assert outcome.is_error and outcome.content == "Server 'kubernetes' is not available: it is not there"
