"""Opens the client that the options of a command describe."""

import contextlib
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tarsy.client.aggregated import AggregatedClient
from tarsy.client.direct import DirectClient
from tarsy.client.errors import ApiUseError
from tarsy.client.kubeconfig import ChosenContext, choose_context
from tarsy.kube.client import KubeClient

TOKEN_VARIABLE = "TARSY_TOKEN"


@dataclass(frozen=True, slots=True)
class ConnectionOptions:
    """Options of a connection to the API; None where an option is not given."""

    kubeconfig: str | None = None
    context: str | None = None
    namespace: str | None = None
    server: str | None = None
    token_file: Path | None = None
    certificate_authority: str | None = None


@contextlib.asynccontextmanager
async def open_client(
    access: ConnectionOptions, environ: Mapping[str, str] = os.environ
) -> AsyncIterator[AggregatedClient | DirectClient]:
    """Opens a client of the HTTP API if a server is named, else of the Kubernetes API.

    Args:
        access: the options of the connection.
        environ: the environment, for KUBECONFIG, HOME and TARSY_TOKEN.

    Raises:
        ApiUseError: there are no credentials, or they cannot be read.
        ApiError: the kubeconfig cannot be used.
    """
    if access.server is None:
        chosen = choose_context(access.kubeconfig, access.context, access.namespace, environ)
        async with await KubeClient.load(chosen.files, chosen.context) as client:
            yield AggregatedClient(client, chosen)
        return
    chosen_if_any = _chosen(access, environ)
    token = environ.get(TOKEN_VARIABLE, "").strip() or _read(access.token_file)
    if not token and chosen_if_any is not None:
        token = await (await KubeClient.load(chosen_if_any.files, chosen_if_any.context)).token() or ""
    if not token:
        raise ApiUseError(
            f"--server needs a bearer token: set {TOKEN_VARIABLE} or name a file with --token-file "
            "(`kubectl create token` creates one for a ServiceAccount); the kubeconfig has none"
        )
    namespace = access.namespace or (chosen_if_any.namespace if chosen_if_any else "default")
    async with DirectClient(access.server, token, namespace, access.certificate_authority) as client:
        yield client


@contextlib.asynccontextmanager
async def open_cluster(
    access: ConnectionOptions, environ: Mapping[str, str] = os.environ
) -> AsyncIterator[tuple[KubeClient, str]]:
    """Opens the Kubernetes API as the user, and chooses the namespace; a server of the HTTP API is not asked.

    Args:
        access: the options of the connection.
        environ: the environment, for KUBECONFIG and HOME.

    Raises:
        ApiUseError: there is no kubeconfig.
        ApiError: the kubeconfig cannot be used.
    """
    chosen = choose_context(access.kubeconfig, access.context, access.namespace, environ)
    async with await KubeClient.load(chosen.files, chosen.context) as client:
        yield client, chosen.namespace


def _chosen(access: ConnectionOptions, environ: Mapping[str, str]) -> ChosenContext | None:
    """Returns the context that provides namespace and token for the HTTP API; None without one, unless it is named."""
    try:
        return choose_context(access.kubeconfig, access.context, access.namespace, environ)
    except ApiUseError:
        if access.kubeconfig or access.context:
            raise
        return None


def _read(path: Path | None) -> str:
    try:
        return path.read_text().strip() if path is not None else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ApiUseError(f"--token-file {path} cannot be read: {error}") from None
