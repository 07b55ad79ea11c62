"""Names the workloads of tool servers that the operator runs (`MCPServer.spec.run`): objects, addresses, tokens.

Decision: all of it follows from the server and, where each run has its own, from the run's id and the account that it
acts as. So the controller that creates a workload and the worker that calls it need not communicate, and a plan
contains neither. Both check `why_not_lent` before a token for such a workload is requested.
"""

import hashlib
from collections.abc import Callable
from uuid import UUID

from tarsy.plan.model import HttpTransport, SecretKey, ServerPlan, Value, WorkloadTransport

PORT = 8080
"""Port of the Service; the container's may differ."""

TOKEN_KEY = "token"
WorkloadAddress = Callable[[str, str], str]
"""The beginning of the URL of a Service, of its name and namespace."""


def workload_name(server: str, run: UUID | None = None, account: str | None = None) -> str:
    """Returns the name of the Deployment or Job, Service and Secret of a server; at most 61 characters.

    Args:
        server: name of the MCPServer.
        run: the run that owns it, where each run has its own.
        account: the ServiceAccount that it acts as, where it acts as an agent's.
    """
    if run is None:
        return f"mcp-{server}"
    whose = run.hex if account is None else hashlib.sha256(f"{run.hex}/{account}".encode()).hexdigest()
    return f"mcp-{server}-{whose[:16]}"


def policy_name(server: str) -> str:
    """Returns the name of the NetworkPolicy of all workloads of a server."""
    return workload_name(server)


def service_address(name: str, namespace: str) -> str:
    """Returns the URL of a Service inside its cluster."""
    return f"http://{name}.{namespace}.svc:{PORT}"


def why_not_lent(server: str, namespace: str, of_run: str, library: str) -> str | None:
    """Returns why a workload may not receive tokens of a run's ServiceAccounts; None: it may.

    The author of an MCPServer chooses the image that receives the token, so only these two namespaces may.

    Args:
        server: name of the MCPServer.
        namespace: its namespace, which the workload is in.
        of_run: the run's namespace.
        library: the library's.
    """
    if namespace in (of_run, library):
        return None
    return (
        f"MCPServer {namespace}/{server} would run in namespace {namespace}, and tokens of ServiceAccounts of "
        f"{of_run} go to workloads in {of_run} and in the library namespace {library} only; move the MCPServer to one "
        "of them, or set --library-namespace of operator and workers"
    )


def reached(server: ServerPlan, run: UUID | None = None, address: WorkloadAddress = service_address) -> ServerPlan:
    """Returns a workload server as an HTTP server with its token; other servers unchanged.

    Args:
        server: as planned.
        run: the run that calls; required where each run has a workload of its own.
        address: where Services are.
    """
    transport = server.transport
    if not isinstance(transport, WorkloadTransport):
        return server
    name = workload_name(
        transport.server, run if transport.per_run else None, server.account if transport.kubeconfig else None
    )
    token = Value(name="run token", secret=SecretKey(namespace=transport.namespace, name=name, key=TOKEN_KEY))
    http = HttpTransport(url=f"{address(name, transport.namespace)}/mcp", bearer_token=token)
    return server.model_copy(update={"transport": http})
