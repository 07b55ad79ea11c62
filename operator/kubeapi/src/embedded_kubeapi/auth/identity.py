"""Determines the caller of a request: client certificate, token or anonymous, and impersonation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Protocol
from urllib.parse import unquote

from embedded_kubeapi.auth.tokens import TokenIssuer
from embedded_kubeapi.call import ANONYMOUS, AUTHENTICATED, UNAUTHENTICATED, Attributes, Authorizer, Caller
from embedded_kubeapi.errors import ApiError, forbidden, unauthorized

_BEARER = "bearer "
_EXTRA = "impersonate-extra-"
_ACCOUNT = "system:serviceaccount:"


class Headers(Protocol):
    """Request headers; returns one value or all values of a name."""

    def get(self, name: str, default: str = "") -> str: ...
    def getall(self, name: str, default: list[str]) -> list[str]: ...
    def __iter__(self) -> Iterator[str]: ...


def authenticate(peer: Mapping[str, Any] | None, authorization: str, tokens: TokenIssuer) -> Caller:
    """Returns the caller: by `peer` (the client certificate as `ssl` describes it), else by the `authorization` header.

    Raises:
        ApiError: 401, the token is not good.
    """
    if peer and peer.get("subject"):
        fields = [pair for part in peer["subject"] for pair in part]
        name = next((value for key, value in fields if key == "commonName"), "")
        groups = tuple(value for key, value in fields if key == "organizationName")
        if name:
            return Caller(name, (*groups, AUTHENTICATED))
    if authorization[: len(_BEARER)].lower() == _BEARER:
        verified = tokens.verify(authorization[len(_BEARER) :].strip())
        if verified is None:
            raise unauthorized()
        return verified.caller
    if authorization:
        raise unauthorized()
    return Caller(ANONYMOUS, (UNAUTHENTICATED,))


def impersonated(caller: Caller, headers: Headers, authorizer: Authorizer) -> Caller:
    """Returns the identity that the caller impersonates, or None.

    Raises:
        ApiError: 403, the caller may not; 500, as the real API has it, groups without a user.
    """
    user = headers.get("Impersonate-User", "")
    if not user:
        if "Impersonate-Group" in headers:
            raise ApiError(500, "InternalError", "groups were requested without impersonating a user")
        return caller
    wanted = [Attributes("impersonate", resource="users", name=user)]
    groups: list[str] = headers.getall("Impersonate-Group", [])
    if user.startswith(_ACCOUNT) and user.count(":") == 3:
        namespace, name = user.removeprefix(_ACCOUNT).split(":")
        wanted = [Attributes("impersonate", resource="serviceaccounts", namespace=namespace, name=name)]
        groups = groups or ["system:serviceaccounts", f"system:serviceaccounts:{namespace}"]
    wanted += [Attributes("impersonate", resource="groups", name=group) for group in groups]
    extra: dict[str, tuple[str, ...]] = {}
    for key in headers:
        if key.lower().startswith(_EXTRA):
            field = unquote(key[len(_EXTRA) :].lower())
            extra[field] = tuple(headers.getall(key, []))
            group = "authentication.k8s.io"
            wanted += [
                Attributes("impersonate", group, "v1", "userextras", field, name=value) for value in extra[field]
            ]
    uid = headers.get("Impersonate-Uid", "")
    if uid:
        wanted.append(Attributes("impersonate", "authentication.k8s.io", "v1", "uids", name=uid))
    for attributes in wanted:
        decision = authorizer.decide(caller, attributes)
        if not decision.allowed:
            why = f'User "{caller.name}" cannot impersonate resource "{attributes.resource}" in API group '
            scope = f'in the namespace "{attributes.namespace}"' if attributes.namespace else "at the cluster scope"
            raise forbidden(
                attributes.group, attributes.resource, attributes.name, f'{why}"{attributes.group}" {scope}'
            )
    if user != ANONYMOUS and AUTHENTICATED not in groups:
        groups = [*groups, AUTHENTICATED]
    return replace(caller, name=user, groups=tuple(groups), uid=uid, extra=extra)
