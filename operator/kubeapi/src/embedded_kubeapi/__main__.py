"""Implements the command `embedded-kubeapi`, also `python -m embedded_kubeapi`: runs the server until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path

from embedded_kubeapi.pki import write_private
from embedded_kubeapi.server import EmbeddedApi


def main() -> None:
    """Serves until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(
        prog="embedded-kubeapi",
        description="Run a Kubernetes API server in one process, for development and tests, until Ctrl-C.",
    )
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        required=True,
        metavar="FILE",
        help="write the administrator's kubeconfig to this file",
    )
    parser.add_argument("--keep", type=Path, metavar="FILE", help="keep the objects in this file between runs")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 to listen on (default: a free one)")
    options = parser.parse_args()
    signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # before any thread exists, so that sigwait gets them
    with EmbeddedApi(keep=options.keep, port=options.port) as api:
        write_private(options.kubeconfig, api.kubeconfig.read_bytes())
        print(f"embedded Kubernetes API at {api.url}, kubeconfig {options.kubeconfig}", flush=True)
        signal.sigwait(signals)


if __name__ == "__main__":
    main()
