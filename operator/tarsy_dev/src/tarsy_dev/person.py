"""Defines the local user: their name in the Kubernetes API of `tarsy dev` and `tarsy demo`.

Decision: not the cluster's administrator, who may create objects in another's name: whoever tries TARSy out meets
authors, and refusals of forged ones, as in a cluster.
"""

import getpass
from importlib.resources import files
from typing import Any

from tarsy.kube.client import KubeClient
from tarsy_dev.objects import documents, put

_RBAC = "rbac.authorization.k8s.io"
NAMELESS = "you"


def name_of_person() -> str:
    """Returns the login name of the user of this process; `you` if there is none."""
    try:
        return getpass.getuser() or NAMELESS
    except (KeyError, OSError):  # a uid without an entry, as in some containers
        return NAMELESS


async def let_work(client: KubeClient, binding: str, subject: dict[str, Any]) -> None:
    """Grants a subject the rights of the local user.

    Args:
        client: as an administrator.
        binding: name of the ClusterRoleBinding.
        subject: a user or a ServiceAccount, as RBAC writes it.
    """
    (role,) = documents(files("tarsy_dev").joinpath("person.yaml").read_text("utf-8"))
    await put(client, role)
    bound = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": binding},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": role["metadata"]["name"]},
        "subjects": [subject],
    }
    await put(client, bound)


def user(name: str) -> dict[str, Any]:
    """Returns a user as an RBAC subject."""
    return {"kind": "User", "apiGroup": _RBAC, "name": name}
