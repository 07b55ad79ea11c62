"""Serves a tool server over stdio or streamable HTTP: the options and the loop that all of ours have."""

import argparse
import socket

from mcp.server import MCPServer


def add_options(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `serve`, and `--bound`."""
    parser.add_argument("--http", action="store_true", help="serve streamable HTTP instead of stdio")
    parser.add_argument("--host", default="127.0.0.1", help="address for --http (default: this machine only)")
    parser.add_argument("--port", type=int, default=0, help="port for --http (default: a free one)")
    parser.add_argument(
        "--bound",
        metavar="NAMESPACE",
        help="refuse requests without namespaces in _meta; only requests for MCPServers of this namespace may read "
        "namespaces other than that of the MCPServer",
    )


def serve(server: MCPServer, options: argparse.Namespace) -> None:
    """Serves until its input ends (stdio) or a signal comes (HTTP, whose URL is printed on one line)."""
    if not options.http:
        server.run("stdio")
        return
    import uvicorn

    from tarsy.listening.asgi import Gate

    with socket.create_server((options.host, options.port)) as listening:
        print(f"http://{options.host}:{listening.getsockname()[1]}/mcp", flush=True)
        # The SDK refuses foreign Host headers on loopback only; elsewhere the NetworkPolicy says who may come.
        gate, app = Gate(), server.streamable_http_app(host=options.host)
        config = uvicorn.Config(gate.wrap(app), http=gate.protocol, ws="none", log_level="warning")
        uvicorn.Server(config).run(sockets=[listening])
