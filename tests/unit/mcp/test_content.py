"""Results as text."""

from typing import Any

import mcp_types as types
import pytest

from tarsy.mcp.content import render

TEXT = {"type": "text", "text": "two pods"}


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"content": [TEXT, TEXT]}, "two pods\ntwo pods"),
        ({"content": [TEXT], "structuredContent": {"pods": 2}}, "two pods"),
        ({"content": [], "structuredContent": {"größe": 2}}, '{\n  "größe": 2\n}'),
        ({"content": []}, "(the tool answered without content)"),
        ({"content": [{"type": "text", "text": ""}]}, "(the tool answered without content)"),
        (
            {"content": [{"type": "audio", "data": "AAAAAAAA", "mimeType": "audio/wav"}]},
            "[audio, audio/wav, about 6 bytes: not shown]",
        ),
        (
            {"content": [{"type": "resource_link", "uri": "file:///a", "name": "a", "description": "The log."}]},
            "[resource a: file:///a] The log.",
        ),
        (
            {"content": [{"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA"}}]},
            "[resource file:///b, binary, about 3 bytes: not shown]",
        ),
    ],
)
def test_what_a_model_reads(result: dict[str, Any], text: str) -> None:
    assert render(types.CallToolResult.model_validate(result)) == text
