"""Checks whether runs can act as the ServiceAccount that an Agent names, in the Agent's own namespace.

Decision: the API is asked for what a run will ask it for, in a way that makes no token. An Agent of the library is not
asked about: the account is one of each run's namespace, and what is missing there is said in that run's timeline.
"""

from tarsy.kube.client import KubeClient
from tarsy.kube.tokens import why_none
from tarsy.plan.errors import FieldPath, PlanError
from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1.agent import Agent


def account_to_check(obj: AnyResource, library: str) -> str | None:
    """Returns the account that `obj` names, if it is one of the object's own namespace."""
    if not isinstance(obj, Agent) or obj.metadata.namespace == library:
        return None
    return obj.spec.service_account_name


async def account_errors(obj: AnyResource, client: KubeClient, library: str) -> list[tuple[PlanError, str]]:
    """Explains why no run of the namespace can act as the account, with the reason for a condition; at most one.

    Args:
        obj: any configuration; only Agents name accounts.
        client: the Kubernetes API.
        library: the library's namespace.

    Raises:
        ApiError: the Kubernetes API failed or could not be reached.
    """
    name = account_to_check(obj, library)
    problem = await why_none(client, obj.metadata.namespace, name) if name is not None else None
    if problem is None:
        return []
    return [((FieldPath.of(obj) / "serviceAccountName").error(problem.message), problem.reason)]
