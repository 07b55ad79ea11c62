"""Reads lists of the Kubernetes API with the rights of a caller.

Decision: a caller with a token reads with it, so the API server itself decides. A caller without one (the aggregated
API, a proxy that forwards none) was authenticated by somebody else: the operator reads for them, and only the kinds
that a SubjectAccessReview lets them list, with their groups and extra. Nobody is impersonated. What the operator itself
may not list is a gap that names the component which grants it. Its own errors are never passed on.
"""

from collections.abc import Mapping
from typing import Any

from tarsy.evidence.reading import KINDS, CannotRead, List, ReadKind
from tarsy.http.authentication.access import AccessReviews
from tarsy.http.authentication.identity import Caller, Permission
from tarsy.http.errors import Unavailable
from tarsy.http.route import CheckedRequest
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.lists import ROOM_BYTES, accepted, too_large, with_token
from tarsy.kube.response_room import ResponseRoom, ResponseTooLarge

OPERATOR_MAY_NOT = "TARSy itself may not list them; add the component tenant-evidence, or use the HTTP API with a token"
CLUSTER_MAY_NOT = "TARSy itself may not list them; bind the ClusterRole tarsy-evidence-cluster, or use a token"


def reader_for(ask: CheckedRequest) -> List:
    """Returns the function that reads lists with the rights of the caller of a request."""
    services, caller = ask.services, ask.caller
    if caller.token is not None:
        return with_token(services.callers.bearing(caller.token), ResponseRoom(ROOM_BYTES))
    return reviewed(services.kube, services.access, caller, ask.namespace)


def reviewed(client: KubeClient, access: AccessReviews, caller: Caller, namespace: str) -> List:
    """Returns the function that reads lists as the operator, of the kinds that a caller may list.

    Args:
        client: authenticated as the operator.
        access: asks what the caller may list.
        caller: an authenticated caller.
        namespace: of the lists.
    """
    kinds = {kind.target(namespace): kind for kind in KINDS}
    room = ResponseRoom(ROOM_BYTES)

    async def get(path: str, query: Mapping[str, str], metadata_only: bool) -> Mapping[str, Any]:
        kind = kinds.get(path)
        if kind is None:
            raise CannotRead(403, "this is not a list that evidence is computed from")
        await _demand(access, caller, kind, namespace)
        try:
            return await client.request("GET", path, query=query, accept=accepted(metadata_only), room=room)
        except ApiError as error:
            raise _as_gap(error, kind) from error
        except ResponseTooLarge:
            raise too_large() from None

    return get


async def _demand(access: AccessReviews, caller: Caller, kind: ReadKind, namespace: str) -> None:
    permission = Permission("list", kind.plural, group=kind.api_group)
    try:
        may = await access.allowed(caller, permission, namespace if kind.namespaced else "")
    except Unavailable as error:
        raise CannotRead(0, error.message) from error
    if not may:
        raise CannotRead(403, "the caller may not list them")


def _as_gap(error: ApiError, kind: ReadKind) -> CannotRead:
    if error.status == 403:
        return CannotRead(
            403, "the operator may not list them", OPERATOR_MAY_NOT if kind.namespaced else CLUSTER_MAY_NOT
        )
    if error.transient and error.status != 429:
        return CannotRead(0, "the Kubernetes API is unavailable; try again")
    if error.status == 401:
        return CannotRead(0, "the Kubernetes API does not accept the operator's credentials")
    return CannotRead(error.status, f"the API server refused the list with status {error.status}")
