"""Runs the tool server over stdio, or with `--http` over streamable HTTP: `python -m tarsy.prometheus_tools`."""

import argparse

from tarsy.kubernetes_tools.serving import add_options, serve
from tarsy.prometheus_tools.api import PrometheusReader
from tarsy.prometheus_tools.settings import ToolSettings
from tarsy.prometheus_tools.tools import prometheus_server


def main() -> None:
    """Serves until its input ends (stdio) or a signal comes (HTTP, whose URL is printed on one line)."""
    parser = argparse.ArgumentParser(
        prog="python -m tarsy.prometheus_tools", description="Read-only PromQL of PROMETHEUS_URL, as MCP."
    )
    add_options(parser)
    parser.add_argument("--namespace-label", default="namespace", help="label that has the namespace of a series")
    parser.add_argument(
        "--shared-metrics",
        metavar="REGEX",
        help="names of metrics that are about no namespace: readable for runs of all namespaces (default: none)",
    )
    options = parser.parse_args()
    try:
        settings = ToolSettings.of(options.namespace_label, options.shared_metrics)
    except ValueError as error:
        parser.error(str(error))
    serve(prometheus_server(PrometheusReader(), owner=options.bound, settings=settings), options)


if __name__ == "__main__":
    main()
