"""Where a tool server is that the operator runs itself (`MCPServer.spec.run`): names, addresses, tokens.

Decision: all of it follows from the server and, where each run has its own, from the run's id. So the controller that
makes a workload and the worker that asks it never talk to each other, and a plan needs to hold neither.
"""

from collections.abc import Callable
from uuid import UUID

from tarsy.plan.model import HttpTransport, SecretKey, ServerPlan, Value, WorkloadTransport

PORT = 8080
"""Of the Service, whatever the container's is."""

TOKEN_KEY = "token"
Address = Callable[[str, str], str]
"""The beginning of the URL of a Service, of its name and namespace."""


def workload_name(server: str, run: UUID | None = None) -> str:
    """What Deployment or Job, Service and Secret of a server are called; at most 61 characters."""
    return f"mcp-{server}" if run is None else f"mcp-{server}-{run.hex[:16]}"


def policy_name(server: str) -> str:
    """What the NetworkPolicy of all workloads of a server is called."""
    return workload_name(server)


def service_address(name: str, namespace: str) -> str:
    """Where a Service is, inside its cluster."""
    return f"http://{name}.{namespace}.svc:{PORT}"


def reached(server: ServerPlan, run: UUID | None = None, address: Address = service_address) -> ServerPlan:
    """The server as it is reached: by HTTP, with its token; any other than a workload as it is.

    Args:
        server: as planned.
        run: who asks; needed where each run has a workload of its own.
        address: where Services are.
    """
    transport = server.transport
    if not isinstance(transport, WorkloadTransport):
        return server
    name = workload_name(transport.server, run if transport.per_run else None)
    token = Value(name="run token", secret=SecretKey(namespace=transport.namespace, name=name, key=TOKEN_KEY))
    http = HttpTransport(url=f"{address(name, transport.namespace)}/mcp", bearer_token=token)
    return server.model_copy(update={"transport": http})
