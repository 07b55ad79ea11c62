"""Serves tools with the official SDK: over stdio when run, under uvicorn when imported."""

import asyncio
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError


def make_server() -> MCPServer:
    server = MCPServer("sample", instructions="Ask `echo` first.")

    @server.tool()
    def echo(text: str, times: int = 1) -> str:
        """Says it again."""
        return text * times

    @server.tool()
    def refuse(text: str) -> str:
        """Answers with an error."""
        raise ToolError(text)

    @server.tool()
    def explode() -> str:
        """Fails inside."""
        raise RuntimeError("inside")

    @server.tool()
    async def wait(seconds: float) -> str:
        """Takes its time."""
        await asyncio.sleep(seconds)
        return "waited"

    @server.tool()
    def big(megabytes: int) -> str:
        """A large answer."""
        return "x" * (megabytes * 1024 * 1024)

    @server.tool()
    def key(ctx: Context) -> str:
        """The idempotency key of this call."""
        meta: Any = ctx.request_context.meta
        return str(meta)

    return server


if __name__ == "__main__":
    make_server().run("stdio")
