"""Publishes the CAs of this installation to the Kubernetes API, in the `caBundle` of its objects.

Decision: each replica adds its own CA and keeps those of the other replicas; a conflicting write is repeated.
"""

import base64
import binascii
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tarsy.http.admission.tls import merge_authorities
from tarsy.kube.client import ApiError, KubeClient

_RACES = 10


def with_authority(authority: str, present: str | None) -> str:
    """Adds a CA to a `caBundle`.

    Args:
        authority: PEM of the CA.
        present: the current `caBundle`, with the CAs of other replicas.
    """
    try:
        found = base64.b64decode(present or "").decode()
    except (binascii.Error, UnicodeDecodeError):
        found = ""
    return encoded(merge_authorities(authority, found, datetime.now(UTC)))


def encoded(authorities: str) -> str:
    """Encodes PEM as a `caBundle`."""
    return base64.b64encode(authorities.encode()).decode()


async def keep_ca_bundle(
    client: KubeClient, kind: str, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> bool:
    """Updates a cluster-wide object if `change` changes it. Returns False if the object does not exist.

    Args:
        client: authenticated as the operator.
        kind: kind of the object.
        name: name of the object.
        change: returns the wanted object for the current one.

    Raises:
        ApiError: the Kubernetes API refused or is unavailable, or other writers keep changing the object.
    """
    for _ in range(_RACES):
        found = await client.find(kind, None, name)
        if found is None:
            return False
        wanted = change(found)
        if wanted == found:
            return True
        try:
            await client.replace(wanted)
        except ApiError as error:
            if error.reason != "Conflict":
                raise
        else:
            return True
    raise ApiError(409, "Conflict", f"could not update the {kind} {name}: it keeps being changed by others")
