"""Reads from the HTTP API of Prometheus, or of anything that speaks it, with errors that a model understands."""

import asyncio
import json
import os
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2

from tarsy.kubernetes_tools.lazy_client import LazyClient

SECONDS = 20.0
"""For a query, in Prometheus and on the way."""
MOST_BYTES = 8 * 1024 * 1024
_LONGEST_MESSAGE = 500


class PrometheusError(Exception):
    """Prometheus refused the request, or was not reached; the text is for the model."""


class ResponseTooLarge(PrometheusError):
    """The response is larger than MOST_BYTES and was not read to its end."""


@dataclass(frozen=True, slots=True)
class PrometheusAccess:
    """URL and credentials of a Prometheus. The token is read at every request, so that a rotated one applies."""

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None
    tenant: str | None = None

    @staticmethod
    def of(environ: Mapping[str, str]) -> "PrometheusAccess":
        """Returns the access by PROMETHEUS_URL, PROMETHEUS_TOKEN_FILE, PROMETHEUS_CA_FILE and PROMETHEUS_TENANT.

        Raises PrometheusError: there is no URL, or it is none.
        """
        url = environ.get("PROMETHEUS_URL", "").rstrip("/")
        if not url.startswith(("http://", "https://")):
            raise PrometheusError("PROMETHEUS_URL is not set to an http or https URL: set it for this tool server")
        token, authority = environ.get("PROMETHEUS_TOKEN_FILE"), environ.get("PROMETHEUS_CA_FILE")
        return PrometheusAccess(
            url,
            Path(token) if token else None,
            Path(authority) if authority else None,
            environ.get("PROMETHEUS_TENANT") or None,
        )

    def headers(self) -> dict[str, str]:
        """Returns the headers that say who asks. Raises PrometheusError: the token's file cannot be read."""
        found = {"X-Scope-OrgID": self.tenant} if self.tenant else {}
        if self.token_file is not None:
            try:
                found["Authorization"] = f"Bearer {self.token_file.read_text(encoding='utf-8').strip()}"
            except OSError as error:
                raise PrometheusError(f"the token file {self.token_file} cannot be read: {error.strerror}") from error
        return found

    def tls(self) -> ssl.SSLContext:
        """Returns whom to trust. Raises PrometheusError: the CA's file cannot be used."""
        try:
            return ssl.create_default_context(cafile=str(self.ca_file) if self.ca_file else None)
        except (OSError, ssl.SSLError) as error:
            raise PrometheusError(f"PROMETHEUS_CA_FILE {self.ca_file} cannot be used: {error}") from error


class PrometheusReader(LazyClient[PrometheusAccess]):
    """One Prometheus; the connection is made at the first request. It may be entered again after its end.

    Args:
        environ: the variables that say where it is.
        seconds: how long it may say nothing; an answer may take five seconds more.
    """

    def __init__(self, environ: Mapping[str, str] = os.environ, *, seconds: float = SECONDS) -> None:
        super().__init__(lambda: PrometheusAccess.of(environ), seconds)
        self._seconds = seconds

    async def get(self, path: str, parameters: Sequence[tuple[str, str]], *, doing: str) -> tuple[Any, list[str]]:
        """Returns `data` and the warnings of a response.

        Args:
            path: path below /api/v1, such as `query`.
            parameters: query parameters.
            doing: what it is for, for errors.

        Raises:
            ResponseTooLarge: the response is too large.
            PrometheusError: refused, not reached, too slow, or no answer of Prometheus.
        """
        try:
            access, client = await self.connection()
            async with asyncio.timeout(self._seconds + 5):
                status, text = await _read(client, access, path, parameters)
        except ResponseTooLarge as error:
            raise ResponseTooLarge(f"cannot {doing}: {error}") from error
        except (TimeoutError, httpx2.ReadTimeout) as error:
            raise PrometheusError(
                f"cannot {doing}: Prometheus did not answer within {self._seconds:g} s; ask for less"
            ) from error
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise PrometheusError(f"cannot {doing}: Prometheus was not reached ({type(error).__name__})") from error
        try:
            answer = json.loads(text)
            if status == 200 and answer["status"] == "success":
                return answer["data"], [str(word)[:_LONGEST_MESSAGE] for word in answer.get("warnings") or ()]
            said = str(answer["error"])[:_LONGEST_MESSAGE]
        except (ValueError, KeyError, TypeError):
            said = f"status {status}, and no answer in the form of Prometheus"
        if status in (401, 403):
            said = f"it does not accept this tool server's credentials ({status})"
        raise PrometheusError(f"cannot {doing}: Prometheus says: {said}")


async def _read(
    client: httpx2.AsyncClient, access: PrometheusAccess, path: str, parameters: Sequence[tuple[str, str]]
) -> tuple[int, bytes]:
    """Reads a response and stops at MOST_BYTES, whatever its headers say."""
    parts, size = [], 0
    request = client.build_request(
        "GET", f"{access.url}/api/v1/{path}", params=list(parameters), headers=access.headers()
    )
    response = await client.send(request, stream=True)
    try:
        async for part in response.aiter_bytes():
            parts.append(part)
            size += len(part)
            if size > MOST_BYTES:
                raise ResponseTooLarge(f"the result is larger than {MOST_BYTES // 2**20} MiB")
    finally:
        await response.aclose()
    return response.status_code, b"".join(parts)
