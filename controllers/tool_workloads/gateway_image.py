"""Finds the image of `tarsy mcp-gateway` and `tarsy-launcher`, which pods of stdio servers have as well.

Decision: it is the image of the operator itself, read from its Deployment, so that both are of one version and no
manifest repeats the image. An administrator may name another, as where the operator runs outside of the cluster.
"""

from typing import Final

from tarsy.kube.client import ApiError, KubeClient

DEPLOYMENT: Final = "tarsy-operator"
CONTAINER: Final = "operator"
_UNKNOWN: Final = (403, 404)


async def gateway_image(client: KubeClient, chosen: str | None, operator_namespace: str) -> str | None:
    """Returns the image; None if the operator cannot read its own Deployment.

    Args:
        client: the Kubernetes API.
        chosen: the image that the administrator names, if any.
        operator_namespace: namespace of the operator.

    Raises:
        ApiError: the Kubernetes API could not be reached.
    """
    if chosen is not None:
        return chosen
    try:
        deployment = await client.find("Deployment", operator_namespace, DEPLOYMENT)
    except ApiError as error:
        if error.status in _UNKNOWN:
            return None
        raise
    containers = deployment["spec"]["template"]["spec"]["containers"] if deployment else ()
    return next((str(one["image"]) for one in containers if one["name"] == CONTAINER), None)
