"""A tool server made with the official SDK: `python tool_server.py PORT [sse]`, or `python tool_server.py stdio`.

By HTTP it is streamable HTTP where nothing else is said.
"""

import sys

import uvicorn
from mcp.server import MCPServer

ANSWER_CHARACTERS = 2000
LINE = "2026-11-20T10:00:00Z checkout-6f7d9c8b54 level=error connection to {name} refused, retrying in 5 s\n"


def make_server() -> MCPServer:
    """A server with one tool, whose answer always has the same length."""
    server = MCPServer("bench")

    @server.tool()
    def look_up(name: str) -> str:
        """Returns the last lines of the log of a workload."""
        return (LINE.format(name=name) * ANSWER_CHARACTERS)[:ANSWER_CHARACTERS]

    return server


def main() -> None:
    match sys.argv[1:]:
        case ["stdio"]:
            make_server().run("stdio")
        case [port, *kind]:
            app = make_server().sse_app() if kind == ["sse"] else make_server().streamable_http_app()
            uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="error", timeout_keep_alive=75)


if __name__ == "__main__":
    main()
