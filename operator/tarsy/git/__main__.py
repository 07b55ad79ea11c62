"""Runs the fetcher over stdio, or with `--http` over streamable HTTP: `python -m tarsy.git`."""

import argparse
import os
import sys

from tarsy.git.fetcher import git_server
from tarsy.kubernetes_tools.serving import add_options, serve
from tarsy.plan.destinations import CLUSTER_DOMAIN, Destinations

_MEMORY = 1 << 30


def main() -> None:
    """Serves until its input ends (stdio) or a signal comes (HTTP, whose URL is printed on one line)."""
    parser = argparse.ArgumentParser(prog="python -m tarsy.git", description="Files of public Git repositories.")
    add_options(parser)
    parser.add_argument("--url-host", action="append", default=[], help="host that may have any address")
    parser.add_argument("--cluster-domain", default=CLUSTER_DOMAIN, help="DNS domain of the cluster's Services")
    options = parser.parse_args()
    in_pod = "KUBERNETES_SERVICE_HOST" in os.environ
    try:
        destinations = Destinations.of(options.url_host, in_pod=in_pod, cluster_domain=options.cluster_domain)
    except ValueError as error:
        parser.error(str(error))
    _limit_memory()
    serve(git_server(destinations), options)


def _limit_memory() -> None:
    """Limits the memory of this process, where the system can."""
    if sys.platform == "linux":
        import resource

        resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))


if __name__ == "__main__":
    main()
