"""Converts the result of a tool call to text, for the model and the record.

Text blocks are joined; structured content is used only without text (servers send both for the same data). Images and
other binary content are described in words.
"""

import json
from typing import assert_never

import mcp_types as types


def render(result: types.CallToolResult) -> str:
    """Converts a result to text.

    Args:
        result: The response of the server.
    """
    parts = [_part(block) for block in result.content]
    has_text = any(isinstance(block, types.TextContent) and block.text.strip() for block in result.content)
    if result.structured_content is not None and not has_text:
        parts.insert(0, json.dumps(result.structured_content, ensure_ascii=False, indent=2))
    return "\n".join(part for part in parts if part) or "(the tool answered without content)"


def _part(block: types.ContentBlock) -> str:
    match block:
        case types.TextContent():
            return block.text
        case types.ImageContent():
            return f"[image, {block.mime_type}, about {_decoded(block.data)} bytes: not shown]"
        case types.AudioContent():
            return f"[audio, {block.mime_type}, about {_decoded(block.data)} bytes: not shown]"
        case types.ResourceLink():
            size = f"{block.size} bytes" if block.size is not None else None
            told = ", ".join(part for part in (str(block.uri), block.mime_type, size) if part)
            return f"[resource {block.name}: {told}: not read]" + (f" {block.description}" if block.description else "")
        case types.EmbeddedResource():
            resource = block.resource
            if isinstance(resource, types.TextResourceContents):
                return f"[resource {resource.uri}]\n{resource.text}"
            kind = resource.mime_type or "binary"
            return f"[resource {resource.uri}, {kind}, about {_decoded(resource.blob)} bytes: not shown]"
        case _:
            assert_never(block)


def _decoded(base64: str) -> int:
    return len(base64) * 3 // 4
