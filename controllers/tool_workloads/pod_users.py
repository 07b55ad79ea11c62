"""Decides whether the cluster assigns user and group of pods, as OpenShift does.

Decision: the security context constraint `restricted-v2` of OpenShift refuses a pod that names a user outside of the
range of its namespace, and gives one that names none a user, and a group that may read its volumes. Other clusters do
not. So the API is asked, and nobody must know about it at the installation.
"""

from typing import Final, Literal

from tarsy.kube.client import ApiError, KubeClient

PodUsers = Literal["Auto", "Assigned", "Fixed"]
"""Auto: as the cluster has security context constraints or not; Assigned: by the cluster; Fixed: by us."""
_CONSTRAINTS: Final = "/apis/security.openshift.io"
_UNKNOWN: Final = (403, 404)


async def assigned(client: KubeClient, choice: PodUsers) -> bool:
    """Returns whether pods must name no user and no group.

    Args:
        client: the Kubernetes API.
        choice: of the administrator.

    Raises:
        ApiError: the Kubernetes API could not be reached.
    """
    if choice != "Auto":
        return choice == "Assigned"
    try:
        await client.read(_CONSTRAINTS)
    except ApiError as error:
        if error.status in _UNKNOWN:
            return False
        raise
    return True
