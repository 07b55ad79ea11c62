"""Tests results as text."""

from typing import Any

import mcp_types as types
import pytest

from tarsy.mcp.result_text import render

TEXT = {"type": "text", "text": "two pods"}
IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
IMAGE_TOLD = "[image, image/png, about 3 bytes: not shown]"
BOOK = {"type": "resource", "resource": {"uri": "file:///log", "text": "line one"}}


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
            "[resource a: file:///a: not read] The log.",
        ),
        (
            {
                "content": [
                    {"type": "resource_link", "uri": "file:///a", "name": "a", "mimeType": "text/plain", "size": 9000}
                ]
            },
            "[resource a: file:///a, text/plain, 9000 bytes: not read]",
        ),
        ({"content": [IMAGE]}, "[image, image/png, about 3 bytes: not shown]"),
        ({"content": [IMAGE], "structuredContent": {"pods": 2}}, '{\n  "pods": 2\n}\n' + IMAGE_TOLD),
        ({"content": [TEXT, IMAGE, BOOK, TEXT]}, f"two pods\n{IMAGE_TOLD}\n[resource file:///log]\nline one\ntwo pods"),
        ({"content": [IMAGE | {"data": ""}]}, "[image, image/png, about 0 bytes: not shown]"),
        (
            {"content": [{"type": "resource", "resource": {"uri": "file:///b", "blob": "AAAA"}}]},
            "[resource file:///b, binary, about 3 bytes: not shown]",
        ),
    ],
)
def test_what_a_model_reads(result: dict[str, Any], text: str) -> None:
    assert render(types.CallToolResult.model_validate(result)) == text


def test_the_bytes_of_a_large_picture_are_not_told() -> None:
    picture = IMAGE | {"data": "A" * 4_000_000}
    told = render(types.CallToolResult.model_validate({"content": [TEXT, picture]}))
    assert told == "two pods\n[image, image/png, about 3000000 bytes: not shown]"


def test_a_large_text_is_told_whole() -> None:
    text = "line\n" * 200_000
    assert render(types.CallToolResult.model_validate({"content": [{"type": "text", "text": text}]})) == text
