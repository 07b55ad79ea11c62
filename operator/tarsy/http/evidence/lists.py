"""Reads lists of the Kubernetes API as the identity of a client; loads no server, so the plugin uses it too."""

from collections.abc import Mapping
from typing import Any

from tarsy.evidence.reading import CannotRead, List
from tarsy.kube.client import ApiError, KubeClient

_METADATA = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"


def with_token(client: KubeClient) -> List:
    """Returns the function that reads lists as the identity of a client."""

    async def get(path: str, query: Mapping[str, str], metadata_only: bool) -> Mapping[str, Any]:
        try:
            return await client.request("GET", path, query=query, accept=accepted(metadata_only))
        except ApiError as error:
            raise CannotRead(error.status, error.message) from error

    return get


def accepted(metadata_only: bool) -> str:
    """Returns the media type of a list, or of a list of metadata alone."""
    return _METADATA if metadata_only else "application/json"
