"""Reads the lists that evidence is computed from, as the identity of a client."""

from collections.abc import Mapping
from typing import Any

from tarsy.evidence.reading import METADATA_LIST, CannotRead, List
from tarsy.kube.client import ApiError, KubeClient


def with_token(client: KubeClient) -> List:
    """Returns the function that reads lists as the identity of a client; its errors are CannotRead."""

    async def get(path: str, query: Mapping[str, str], metadata_only: bool) -> Mapping[str, Any]:
        try:
            return await client.request("GET", path, query=query, accept=accepted(metadata_only))
        except ApiError as error:
            raise CannotRead(error.status, error.message) from error

    return get


def accepted(metadata_only: bool) -> str:
    """Returns the media type of a list, or of a list of metadata alone."""
    return METADATA_LIST if metadata_only else "application/json"
