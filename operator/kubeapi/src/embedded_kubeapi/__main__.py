"""`python -m embedded_kubeapi --kubeconfig FILE [--keep FILE]`: the embedded API alone, until Ctrl-C."""

from __future__ import annotations

import argparse
import signal
from pathlib import Path

from embedded_kubeapi.pki import write_private
from embedded_kubeapi.server import EmbeddedApi


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser(prog="python -m embedded_kubeapi", description="A small Kubernetes API in memory.")
    parser.add_argument(
        "--kubeconfig", type=Path, required=True, help="where the administrator's kubeconfig is written"
    )
    parser.add_argument("--keep", type=Path, help="a file in which objects outlive this process")
    parser.add_argument("--port", type=int, default=0, help="on 127.0.0.1; a free one when not given")
    options = parser.parse_args()
    signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)  # before any thread exists, so that sigwait gets them
    with EmbeddedApi(keep=options.keep, port=options.port) as api:
        write_private(options.kubeconfig, api.kubeconfig.read_bytes())
        print(f"embedded Kubernetes API at {api.url}, kubeconfig {options.kubeconfig}", flush=True)
        signal.sigwait(signals)


if __name__ == "__main__":
    main()
