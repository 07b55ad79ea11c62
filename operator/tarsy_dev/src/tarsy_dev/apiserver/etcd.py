"""Compacts etcd through the JSON gateway that it serves next to gRPC.

The gateway's path changed between versions (`/v3beta` in 3.3, which Debian has, `/v3` from 3.4), so both are tried.
"""

from __future__ import annotations

import http.client
import json
import ssl
from http import HTTPStatus
from typing import Any

from tarsy_dev.apiserver.errors import LocalKubernetesError

_SECONDS = 30.0
_COMPACTED_ALREADY = 11
_ANY_KEY = {"key": "AA==", "limit": 1}


def compact(port: int, tls: ssl.SSLContext) -> None:
    """Forget all but the newest revision.

    Args:
        port: etcd's, for clients, on 127.0.0.1.
        tls: with a client certificate that etcd trusts.

    Raises:
        LocalKubernetesError: etcd refused, or could not be reached.
    """
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=_SECONDS, context=tls)
    try:
        prefix = "/v3"
        status, answer = _post(connection, f"{prefix}/kv/range", _ANY_KEY)
        if status == HTTPStatus.NOT_FOUND:
            prefix = "/v3beta"
            status, answer = _post(connection, f"{prefix}/kv/range", _ANY_KEY)
        if status == HTTPStatus.OK:
            order = {"revision": answer["header"]["revision"], "physical": True}
            status, answer = _post(connection, f"{prefix}/kv/compaction", order)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise LocalKubernetesError(f"etcd could not be asked to compact: {error}") from error
    finally:
        connection.close()
    if status != HTTPStatus.OK and answer.get("code") != _COMPACTED_ALREADY:
        raise LocalKubernetesError(f"etcd did not compact: HTTP status {status}, {answer}")


def _post(connection: http.client.HTTPSConnection, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    found = json.loads(content) if answer.status != HTTPStatus.NOT_FOUND else {}
    return answer.status, found
