"""Issues and verifies service account tokens: signed JWTs bound to an audience, a time and objects.

Claims as the real API writes them (kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin).
"""

from __future__ import annotations

import base64
import binascii
import json
import time
from dataclasses import dataclass
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature

from embedded_kubeapi.call import AUTHENTICATED, Caller
from embedded_kubeapi.errors import FieldError, invalid, wrong
from embedded_kubeapi.objects import Obj, new_uid
from embedded_kubeapi.store import Store

ISSUER = "https://kubernetes.default.svc.cluster.local"
_DEFAULT_SECONDS, _LEAST_SECONDS, _MOST_SECONDS = 3600, 600, 2**32
_HALF = 32
_SKEW = 10.0
_BOUND = {"Pod": ("pod", "pods"), "Secret": ("secret", "secrets"), "Node": ("node", "nodes")}


@dataclass(frozen=True)
class Verified:
    """The identity and audiences of a valid token."""

    caller: Caller
    audiences: tuple[str, ...]


class TokenIssuer:
    """Issues and verifies tokens with a key that lives as long as this process."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._key = ec.generate_private_key(ec.SECP256R1())

    def issue(self, account: Obj, request: Obj) -> Obj:
        """Answers a TokenRequest for a ServiceAccount.

        Raises:
            ApiError: 422, the time is too short or too long, or the bound object is not there.
        """
        spec = dict(request.get("spec") or {})
        seconds = spec.get("expirationSeconds") or _DEFAULT_SECONDS
        path, errors = "spec.expirationSeconds", list[FieldError]()
        if seconds < _LEAST_SECONDS:
            errors.append(wrong(path, seconds, "may not specify a duration less than 10 minutes"))
        if seconds > _MOST_SECONDS:
            errors.append(wrong(path, seconds, "may not specify a duration larger than 2^32 seconds"))
        name, namespace = account["metadata"]["name"], account["metadata"]["namespace"]
        bound, private = spec.get("boundObjectRef"), {"namespace": namespace}
        private_claims: dict[str, Any] = {**private, "serviceaccount": _reference(account)}
        if bound:
            claim, plural = _BOUND.get(bound.get("kind", ""), ("", ""))
            found = self._store.get(("", plural), None if plural == "nodes" else namespace, bound.get("name", ""))
            if found is None or (bound.get("uid") and bound["uid"] != found["metadata"]["uid"]):
                errors.append(wrong("spec.boundObjectRef", bound, "cannot bind token to an object that is not there"))
            else:
                private_claims[claim] = _reference(found)
        if errors:
            raise invalid("authentication.k8s.io", "TokenRequest", name, errors)
        issued = int(time.time())
        audiences = spec.get("audiences") or [ISSUER]
        claims = {"aud": audiences, "exp": issued + seconds, "iat": issued, "iss": ISSUER, "jti": new_uid(),
                  "kubernetes.io": private_claims, "nbf": issued,
                  "sub": f"system:serviceaccount:{namespace}:{name}"}  # fmt: skip
        expires = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(issued + seconds))
        return {
            **request,
            "kind": "TokenRequest",
            "apiVersion": "authentication.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace},
            "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
            "status": {"token": self._sign(claims), "expirationTimestamp": expires},
        }

    def verify(self, token: str, audiences: tuple[str, ...] = (ISSUER,)) -> Verified | None:
        """Returns the identity of a token, or None (foreign, expired, wrong audience, or its bound object is gone)."""
        claims = self._claims(token)
        present = time.time()
        if claims is None or claims["exp"] <= present or claims["nbf"] > present + _SKEW:
            return None
        shared = tuple(audience for audience in claims["aud"] if audience in audiences)
        if not shared or not self._all_there(claims["kubernetes.io"]):
            return None
        private = claims["kubernetes.io"]
        namespace, account = private["namespace"], private["serviceaccount"]
        groups = ("system:serviceaccounts", f"system:serviceaccounts:{namespace}", AUTHENTICATED)
        prefix = "authentication.kubernetes.io/"
        extra = {prefix + "credential-id": (f"JTI={claims['jti']}",)}
        if pod := private.get("pod"):
            extra |= {prefix + "pod-name": (pod["name"],), prefix + "pod-uid": (pod["uid"],)}
        return Verified(Caller(claims["sub"], groups, account["uid"], extra), shared)

    def _all_there(self, private: dict[str, Any]) -> bool:
        places = {"serviceaccount": "serviceaccounts"} | dict(_BOUND.values())
        for claim, plural in places.items():
            if claim in private:
                namespace = None if plural == "nodes" else private["namespace"]
                found = self._store.get(("", plural), namespace, private[claim]["name"])
                if found is None or found["metadata"]["uid"] != private[claim]["uid"]:
                    return False
        return True

    def _sign(self, claims: dict[str, Any]) -> str:
        text = f"{_encode({'alg': 'ES256', 'typ': 'JWT', 'kid': 'local'})}.{_encode(claims)}"
        r, s = decode_dss_signature(self._key.sign(text.encode(), ec.ECDSA(hashes.SHA256())))
        return f"{text}.{_base64(r.to_bytes(_HALF, 'big') + s.to_bytes(_HALF, 'big'))}"

    def _claims(self, token: str) -> dict[str, Any] | None:
        text, _, signature = token.rpartition(".")
        try:
            raw = _bytes(signature)
            both = encode_dss_signature(int.from_bytes(raw[:_HALF], "big"), int.from_bytes(raw[_HALF:], "big"))
            self._key.public_key().verify(both, text.encode(), ec.ECDSA(hashes.SHA256()))
            claims: dict[str, Any] = json.loads(_bytes(text.partition(".")[2]))
        except (ValueError, binascii.Error, InvalidSignature):
            return None
        return claims


def _reference(obj: Obj) -> dict[str, str]:
    return {"name": obj["metadata"]["name"], "uid": obj["metadata"]["uid"]}


def _base64(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).decode().rstrip("=")


def _encode(claims: dict[str, Any]) -> str:
    return _base64(json.dumps(claims, separators=(",", ":")).encode())


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
