"""Checks whether runs can act as the ServiceAccount that an Agent or a stage names, in its own namespace.

Decision: the API is asked for what a run will ask it for, in a way that makes no token. An object of the library is not
asked about: the account is one of each run's namespace, and what is missing there is said in that run's timeline.
"""

from collections.abc import Mapping

from tarsy.kube.client import KubeClient
from tarsy.kube.tokens import why_none
from tarsy.plan.errors import FieldPath, PlanError
from tarsy.resources.meta import AnyResource
from tarsy.resources.v1alpha1.agent import Agent
from tarsy.resources.v1alpha1.chain import Chain


def accounts_to_check(obj: AnyResource, library: str) -> Mapping[FieldPath, str]:
    """Returns the accounts that `obj` names, by field, if they are of the object's own namespace."""
    at = FieldPath.of(obj)
    if obj.metadata.namespace == library:
        return {}
    if isinstance(obj, Agent):
        named = {at / "serviceAccountName": obj.spec.service_account_name}
    elif isinstance(obj, Chain):
        named = {
            (at / "stages")[index] / "changes" / "serviceAccountName": stage.changes.service_account_name
            for index, stage in enumerate(obj.spec.stages)
            if stage.changes is not None
        }
    else:
        return {}
    return {field: account for field, account in named.items() if account is not None}


async def account_errors(obj: AnyResource, client: KubeClient, library: str) -> list[tuple[PlanError, str]]:
    """Explains why no run of the namespace can act as the accounts, with the reason for a condition.

    Args:
        obj: any configuration; only Agents and Chains name accounts.
        client: the Kubernetes API.
        library: the library's namespace.

    Raises:
        ApiError: the Kubernetes API failed or could not be reached.
    """
    problems = {
        field: await why_none(client, obj.metadata.namespace, account)
        for field, account in accounts_to_check(obj, library).items()
    }
    return [(field.error(problem.message), problem.reason) for field, problem in problems.items() if problem]
