"""Reads from the Kubernetes API, with errors that a model understands."""

import json
import os
from collections.abc import Mapping
from typing import Any

import httpx2

from tarsy.kubernetes_tools.access import AccessError, ClusterAccess, find_access
from tarsy.kubernetes_tools.lazy_client import LazyClient

TIMEOUT = 20.0


class ClusterError(Exception):
    """The API refused the request; `status` is 0 if it was not reached."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class ClusterReader(LazyClient[ClusterAccess]):
    """A Kubernetes API; the connection is made at the first request. It may be entered again after its end."""

    def __init__(self, environ: Mapping[str, str] = os.environ) -> None:
        super().__init__(lambda: find_access(environ), TIMEOUT)

    async def read(self, path: str, parameters: Mapping[str, str | None], *, doing: str) -> str:
        """Returns the response text of a path; `doing` is "verb resource where", for errors.

        Raises ClusterError: the API refused, or was not reached; its text is for the model.
        """
        try:
            access, client = await self.connection()
            answer = await client.get(
                access.url + path,
                params={key: value for key, value in parameters.items() if value is not None},
                headers=access.headers(),
            )
        except AccessError as error:
            raise ClusterError(0, f"cannot {doing}: {error}") from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise ClusterError(
                0, f"cannot {doing}: the Kubernetes API was not reached ({type(error).__name__})"
            ) from error
        if answer.status_code == 200:
            return answer.text
        said = _message(answer.text)
        match answer.status_code:
            case 401:
                text = f"cannot {doing}: the API server does not accept this tool server's credentials"
            case 403:
                text = f"forbidden: this tool server's account may not {doing}. The API server says: {said}"
            case 404:
                text = f"not found: cannot {doing}. The API server says: {said}"
            case status:
                text = f"cannot {doing}: the API server answered {status}: {said}"
        raise ClusterError(answer.status_code, text)

    async def get(self, path: str, parameters: Mapping[str, str | None], *, doing: str) -> dict[str, Any]:
        """Returns the object of a path.

        Args:
            path: URL path of the object or list.
            parameters: query parameters; those that are None are not sent.
            doing: the request as "verb resource where", for errors (`describe_failure`).

        Raises:
            ClusterError: the API refused, was not reached, or returned no JSON; its text is for the model.
        """
        try:
            return dict(json.loads(await self.read(path, parameters, doing=doing)))
        except ValueError as error:
            raise ClusterError(0, f"cannot {doing}: the API server's answer is not JSON") from error


def describe_failure(verb: str, resource: str, namespace: str | None, name: str | None = None) -> str:
    """Describes a request for an error message: `get pods "a" in namespace shop`.

    Args:
        verb: verb of the API, such as `list`.
        resource: plural name of the resource, with a subresource if any: `pods/log`.
        namespace: namespace of the request; None: the whole cluster.
        name: name of the object; None: no single object.
    """
    which = f' "{name}"' if name else ""
    return f"{verb} {resource}{which} {f'in namespace {namespace}' if namespace else 'in the whole cluster'}"


def _message(text: str) -> str:
    """The message of a Status object, or the beginning of what came instead."""
    try:
        return str(json.loads(text)["message"])[:500]
    except (ValueError, KeyError, TypeError):
        return text[:200].strip()
