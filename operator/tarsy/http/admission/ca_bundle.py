"""Makes the Kubernetes API believe the certificates of this installation: the `caBundle` of the objects that say so.

Decision: each replica adds its own authority and leaves those of the others; whoever loses a race looks again.
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
    """A `caBundle` that holds an authority beside those of other replicas, which are in `present`."""
    try:
        found = base64.b64decode(present or "").decode()
    except (binascii.Error, UnicodeDecodeError):
        found = ""
    return encoded(merge_authorities(authority, found, datetime.now(UTC)))


def encoded(authorities: str) -> str:
    """PEM as a `caBundle` has it."""
    return base64.b64encode(authorities.encode()).decode()


async def keep_ca_bundle(
    client: KubeClient, kind: str, name: str, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> bool:
    """Writes a cluster-wide object as `change` wants it, where it is not so; False: it is not there.

    Raises:
        ApiError: the Kubernetes API refused or is away, or the object changes all the time.
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
    raise ApiError(409, "Conflict", f"could not update the {kind} {name}: others keep changing it")
