"""Defines the common part of all pods of tool servers: their user, and the image beside the server's own."""

from dataclasses import dataclass

from tarsy.controllers.tool_workloads.gateway_image import gateway_image
from tarsy.controllers.tool_workloads.pod_users import PodUsers, assigned
from tarsy.controllers.tool_workloads.pods import PodRules
from tarsy.kube.client import KubeClient
from tarsy.resources.v1alpha1.mcp_server import MCPServer


@dataclass(frozen=True, slots=True)
class PodSettings:
    """Settings of the administrator about the pods of tool servers.

    Args:
        operator_namespace: namespace of operator and workers.
        users: who chooses user and group of the pods.
        gateway_image: image of the gateway; None: that of the operator.
    """

    operator_namespace: str
    users: PodUsers = "Auto"
    gateway_image: str | None = None


async def pod_rules(client: KubeClient, settings: PodSettings, server: MCPServer) -> PodRules:
    """Returns the rules of the pods of a server in this cluster.

    Args:
        client: the Kubernetes API.
        settings: of the administrator.
        server: the MCPServer; only one that speaks stdio needs the image of a gateway.

    Raises:
        ApiError: the Kubernetes API could not be reached.
    """
    image = None
    if _has_gateway(server):
        image = await gateway_image(client, settings.gateway_image, settings.operator_namespace)
    return PodRules(await assigned(client, settings.users), image)


def lacks_gateway(server: MCPServer, rules: PodRules) -> bool:
    """Returns whether a server needs a gateway whose image is unknown."""
    return _has_gateway(server) and rules.gateway_image is None


def _has_gateway(server: MCPServer) -> bool:
    return server.spec.transport.type == "stdio"
