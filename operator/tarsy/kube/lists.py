"""Reads the lists that evidence is computed from, as the identity of a client."""

from collections.abc import Mapping
from typing import Any, Final

from tarsy.evidence.reading import METADATA_LIST, CannotRead, List
from tarsy.kube.client import ApiError, KubeClient
from tarsy.kube.response_room import ResponseRoom, ResponseTooLarge

ROOM_BYTES: Final = 64 * 1024 * 1024
"""Maximum bytes of all lists of a read on the wire; objects in memory are three to five times that."""


def with_token(client: KubeClient, room: ResponseRoom | None = None) -> List:
    """Returns the function that reads lists as the identity of a client.

    Args:
        client: the Kubernetes API.
        room: bytes of all lists; None: no limit.
    """

    async def get(path: str, query: Mapping[str, str], metadata_only: bool) -> Mapping[str, Any]:
        try:
            return await client.request("GET", path, query=query, accept=accepted(metadata_only), room=room)
        except ApiError as error:
            raise CannotRead(error.status, error.message) from error
        except ResponseTooLarge:
            raise too_large() from None

    return get


def accepted(metadata_only: bool) -> str:
    """Returns the media type of a list, or of a list of metadata alone."""
    return METADATA_LIST if metadata_only else "application/json"


def too_large() -> CannotRead:
    """Returns the refusal of a list that exceeds the room."""
    text = f"the objects of this read are larger than {ROOM_BYTES // 1024**2} MiB together"
    return CannotRead(413, text, text)
