"""Models of the tools of an MCPServer with `spec.pin`, as people compare and accept them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal, Self

from pydantic import Field

from tarsy.http.models import View
from tarsy.record.reading.tool_definition import KnownDefinition
from tarsy.resources.meta import condition
from tarsy.resources.v1alpha1.common import ConditionType
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from tarsy.resources.v1alpha1.tool_pin import PinMode, PinnedTool


class DefinitionView(View):
    """A definition of a tool."""

    digest: str = Field(description="SHA-256 of the definition, in hex.")
    definition: str | None = Field(
        default=None,
        description="JSON of name, description, parameters and annotations, without secrets; null if it is not known. "
        "Untrusted text.",
    )
    first_seen: datetime | None = Field(default=None, description="When the operator first saw it.")


class ServerToolView(View):
    """A tool of a server."""

    name: str = Field(description="Name of the tool.")
    state: Literal["Trusted", "Changed", "New", "Gone"] = Field(description="As in status.pinnedTools.")
    now: DefinitionView | None = Field(default=None, description="The definition that the server lists now.")
    before: DefinitionView | None = Field(
        default=None, description="The latest other definition that was first seen or accepted."
    )


class ServerToolsView(View):
    """The tools of an MCPServer."""

    name: str = Field(description="Name of the MCPServer.")
    uid: str = Field(description="metadata.uid of the MCPServer.")
    pin: PinMode | None = Field(description="spec.pin. Null: tools need not be accepted.")
    message: str = Field(description="Message of the condition ToolsChanged; empty without spec.pin.")
    tools: tuple[ServerToolView, ...] = Field(description="The tools, by name.")

    @classmethod
    def of(cls, server: MCPServer, known: Iterable[KnownDefinition]) -> Self:
        """Joins the status of a server with the known definitions."""
        texts = {one.digest: one for one in known}
        changed = condition(server.status.conditions, ConditionType.TOOLS_CHANGED)
        return cls(
            name=server.metadata.name,
            uid=server.metadata.uid,
            pin=server.spec.pin,
            message=changed.message if changed is not None else "",
            tools=tuple(
                ServerToolView(
                    name=tool.name,
                    state=tool.state,
                    now=_definition(tool.digest, texts) if tool.digest else None,
                    before=_before(server, tool, texts),
                )
                for tool in server.status.pinned_tools
            ),
        )


def _definition(digest: str, texts: dict[str, KnownDefinition]) -> DefinitionView:
    known = texts.get(digest)
    if known is None:
        return DefinitionView(digest=digest)
    return DefinitionView(digest=digest, definition=known.definition, first_seen=known.first_seen)


def _before(server: MCPServer, tool: PinnedTool, texts: dict[str, KnownDefinition]) -> DefinitionView | None:
    accepted = [one.digest for entry in server.spec.accepted_tools for one in entry.tools if one.name == tool.name]
    others = [digest for digest in (*accepted, tool.first) if digest is not None and digest != tool.digest]
    told = [digest for digest in others if digest in texts] or others
    latest = max(told, key=lambda digest: texts[digest].first_seen.timestamp() if digest in texts else 0, default=None)
    return _definition(latest, texts) if latest is not None else None
