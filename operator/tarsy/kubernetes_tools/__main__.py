"""Runs the tool server over stdio, or with `--http` over streamable HTTP: `python -m tarsy.kubernetes_tools`."""

import argparse

from tarsy.kubernetes_tools.cluster import ClusterReader
from tarsy.kubernetes_tools.serving import add_options, serve
from tarsy.kubernetes_tools.tools import tool_server


def main() -> None:
    """Serves until its input ends (stdio) or a signal comes (HTTP, whose URL is printed on one line)."""
    parser = argparse.ArgumentParser(
        prog="python -m tarsy.kubernetes_tools", description="Read-only Kubernetes, as MCP."
    )
    add_options(parser)
    options = parser.parse_args()
    serve(tool_server(ClusterReader(), owner=options.bound), options)


if __name__ == "__main__":
    main()
