"""Authenticates callers by the front proxy of the Kubernetes API, as the cluster publishes it.

Decision: the settings come from the ConfigMap that every kube-apiserver writes
(kube-system/extension-apiserver-authentication), not from options: they are always correct, and follow changes of the
certificates of the cluster.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from multidict import MultiMapping

from tarsy.http.authentication.identity import Caller
from tarsy.http.errors import Unauthorized
from tarsy.kube.client import KubeClient

NAMESPACE, NAME = "kube-system", "extension-apiserver-authentication"


class NoFrontProxy(Exception):
    """The cluster does not publish its front proxy; the message says what is missing."""


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """The front proxy of a cluster.

    Args:
        authority: PEM of the CA of its client certificate.
        names: permitted common names; empty: any certificate of `authority`.
        user_headers, uid_headers, group_headers: headers that name the caller; the first one present counts.
        extra_prefixes: prefixes of headers with extra values, in lower case.
    """

    authority: str
    names: tuple[str, ...]
    user_headers: tuple[str, ...]
    uid_headers: tuple[str, ...]
    group_headers: tuple[str, ...]
    extra_prefixes: tuple[str, ...]

    def is_named(self, peer: Mapping[str, Any] | None) -> bool:
        """Returns whether a verified certificate (in the format of `ssl`) is that of the front proxy."""
        return is_named(peer, self.names)

    def caller(self, headers: MultiMapping[str]) -> Caller:
        """Reads the caller from the headers of the front proxy.

        Raises:
            Unauthorized: the headers name no user.
        """
        username = _first(headers, self.user_headers)
        if not username:
            raise Unauthorized("the Kubernetes API sent no user name", challenge="X-Remote-User")
        groups = tuple(group for name in self.group_headers for group in headers.getall(name, ()))
        extra: dict[str, tuple[str, ...]] = {}
        for name in dict.fromkeys(key.lower() for key in headers):
            for prefix in self.extra_prefixes:
                if name.startswith(prefix) and len(name) > len(prefix):
                    extra[unquote(name.removeprefix(prefix))] = tuple(headers.getall(name))
        return Caller(username, _first(headers, self.uid_headers), groups, extra)


def is_named(peer: Mapping[str, Any] | None, names: Sequence[str]) -> bool:
    """Returns whether a verified certificate (in the format of `ssl`) has one of the common names.

    Args:
        peer: the certificate; None: the client sent none.
        names: permitted common names; empty: any.
    """
    if not peer:
        return False
    its = [value for part in peer.get("subject", ()) for key, value in part if key == "commonName"]
    return not names or any(name in names for name in its)


async def read_front_proxy(client: KubeClient) -> FrontProxy:
    """Reads the current front proxy of the cluster.

    Raises:
        NoFrontProxy: the cluster has none, or publishes it in an unknown format.
        ApiError: the Kubernetes API refused or is unavailable.
    """
    where = f"the ConfigMap {NAMESPACE}/{NAME}"
    found = await client.find("ConfigMap", NAMESPACE, NAME)
    if found is None:
        raise NoFrontProxy(f"{where} does not exist: the API server of the cluster has no aggregation layer")
    return parse_front_proxy(found.get("data") or {}, where)


def parse_front_proxy(data: Mapping[str, str], where: str) -> FrontProxy:
    """Parses the front proxy from the data of the ConfigMap.

    Args:
        data: the data.
        where: name of the ConfigMap, for errors.

    Raises:
        NoFrontProxy: a required key is missing or malformed; a CA or a user header is never assumed.
    """
    authority = data.get("requestheader-client-ca-file", "")
    if "BEGIN CERTIFICATE" not in authority:
        raise NoFrontProxy(f"{where} has no requestheader-client-ca-file: the aggregation layer is off")
    users = _names(data, "requestheader-username-headers", where)
    if not users:
        raise NoFrontProxy(f"{where} has no requestheader-username-headers")
    return FrontProxy(
        authority,
        _names(data, "requestheader-allowed-names", where),
        users,
        _names(data, "requestheader-uid-headers", where),
        _names(data, "requestheader-group-headers", where),
        tuple(prefix.lower() for prefix in _names(data, "requestheader-extra-headers-prefix", where)),
    )


def _names(data: Mapping[str, str], key: str, where: str) -> tuple[str, ...]:
    try:
        found = json.loads(data.get(key) or "[]")
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(name, str) and name for name in found):
        raise NoFrontProxy(f"{where}: {key} is not a JSON list of names")
    return tuple(found)


def _first(headers: MultiMapping[str], names: Sequence[str]) -> str:
    return next((headers[name] for name in names if name in headers), "")
