"""Judges which acceptances of tools count (`MCPServer.spec.acceptedTools`).

Decision: as for the approval of a call, a username in the object proves nothing. An entry counts while its user has
the verb `approve` on the MCPServer, by the API server's own authorizers, and while the API server refuses a forged
entry. Where it admits one, none counts.
"""

from tarsy.controllers.approvals.enforcement import why_acceptance_not_enforced
from tarsy.controllers.readiness.tool_pins import NOTHING_ACCEPTED, CountedAcceptances
from tarsy.kube.access import ResourceAttributes, Subject, may
from tarsy.kube.client import ApiError, KubeClient
from tarsy.resources.meta import GROUP
from tarsy.resources.v1alpha1.mcp_server import MCPServer
from tarsy.resources.v1alpha1.tool_pin import ToolAcceptance

ACCEPTANCE_SECONDS = 60.0
"""Seconds until acceptances are judged again: rights and policies are not watched."""


async def count_acceptances(server: MCPServer, client: KubeClient) -> CountedAcceptances:
    """Returns the acceptances of a server that count now.

    Args:
        server: the MCPServer.
        client: the Kubernetes API, as the operator.

    Raises:
        ApiError: the API could not be reached.
    """
    entries = server.spec.accepted_tools
    if server.spec.pin is None or not any(entry.tools for entry in entries):
        return NOTHING_ACCEPTED
    if (why := await why_acceptance_not_enforced(server, client)) is not None:
        return CountedAcceptances(refused=(why,))
    accepted: set[tuple[str, str]] = set()
    refused: list[str] = []
    for entry in entries:
        if await _is_entitled(entry, server, client):
            accepted.update((tool.name, tool.digest) for tool in entry.tools)
        else:
            refused.append(
                f"{entry.username[:100]} may not accept them: grant the verb approve on mcpservers.tarsy.dev "
                f"{server.metadata.name}, such as by the role tarsy-tool-acceptor, or state the group that has it"
            )
    return CountedAcceptances(frozenset(accepted), tuple(refused))


async def _is_entitled(entry: ToolAcceptance, server: MCPServer, client: KubeClient) -> bool:
    meta = server.metadata
    what = ResourceAttributes("approve", GROUP, MCPServer.PLURAL, namespace=meta.namespace, name=meta.name)
    try:
        return await may(client, Subject(entry.username, groups=entry.groups), what)
    except ApiError as error:
        if error.transient:
            raise
        return False  # nobody could say, which is never a yes
