"""Names the workloads of tool servers that the operator runs (`MCPServer.spec.run`): objects, addresses, tokens.

Decision: all of it follows from the server and, where each run has its own, from the run's id and the account that it
acts as. So the controller that makes a workload and the worker that asks it never talk to each other, and a plan needs
to hold neither. Both ask `why_not_lent` before anybody asks for a token that such a workload is to get.
"""

import hashlib
from collections.abc import Callable
from uuid import UUID

from tarsy.plan.model import HttpTransport, SecretKey, ServerPlan, Value, WorkloadTransport

PORT = 8080
"""Of the Service, whatever the container's is."""

TOKEN_KEY = "token"
WorkloadAddress = Callable[[str, str], str]
"""The beginning of the URL of a Service, of its name and namespace."""


def workload_name(server: str, run: UUID | None = None, account: str | None = None) -> str:
    """What Deployment or Job, Service and Secret of a server are called; at most 61 characters.

    Args:
        server: name of the MCPServer.
        run: whose it is, where each run has its own.
        account: the ServiceAccount that it acts as, where it acts as an agent's.
    """
    if run is None:
        return f"mcp-{server}"
    whose = run.hex if account is None else hashlib.sha256(f"{run.hex}/{account}".encode()).hexdigest()
    return f"mcp-{server}-{whose[:16]}"


def policy_name(server: str) -> str:
    """What the NetworkPolicy of all workloads of a server is called."""
    return workload_name(server)


def service_address(name: str, namespace: str) -> str:
    """Where a Service is, inside its cluster."""
    return f"http://{name}.{namespace}.svc:{PORT}"


def why_not_lent(server: str, namespace: str, of_run: str, library: str) -> str | None:
    """Why a workload gets no token of a run's ServiceAccounts, or None where it may.

    Who writes an MCPServer chooses the image that the token goes to, so it goes to no namespace but these two.

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
    """The server as it is reached: by HTTP, with its token; any other than a workload as it is.

    Args:
        server: as planned.
        run: who asks; needed where each run has a workload of its own.
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
