"""Decodes the protobuf bodies of kubectl's typed commands (`create secret`, `create token`, `auth can-i`, ...).

Clients offer JSON as an answer but do not fall back to it for what they send, so bodies must be read. The field numbers
are those of generated.proto in k8s.io/api; a kind that is not listed gets 415.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

from embedded_kubeapi.errors import bad_request, unsupported_media

MAGIC = b"k8s\x00"
JSON_TYPES = ("application/json", "application/yaml")
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

S, I, B = "string", "int", "bool"  # noqa: E741
STRINGS, BYTE_MAP, QUANTITIES, INT_OR_STRING = "map", "bytes map", "quantity map", "int or string"
LIST_OF_S = [S]
_OWNER = {1: ("kind", S), 3: ("name", S), 4: ("uid", S), 5: ("apiVersion", S), 6: ("controller", B),
          7: ("blockOwnerDeletion", B)}  # fmt: skip
META = {1: ("name", S), 2: ("generateName", S), 3: ("namespace", S), 5: ("uid", S), 6: ("resourceVersion", S),
        11: ("labels", STRINGS), 12: ("annotations", STRINGS), 13: ("ownerReferences", [_OWNER]),
        14: ("finalizers", LIST_OF_S)}  # fmt: skip
_M = {1: ("metadata", META)}
_SELECTOR = {1: ("matchLabels", STRINGS),
             2: ("matchExpressions", [{1: ("key", S), 2: ("operator", S), 3: ("values", LIST_OF_S)}])}  # fmt: skip
_CONTAINER = {1: ("name", S), 2: ("image", S), 3: ("command", LIST_OF_S), 4: ("args", LIST_OF_S), 5: ("workingDir", S),
              6: ("ports", [{1: ("name", S), 2: ("hostPort", I), 3: ("containerPort", I), 4: ("protocol", S)}]),
              7: ("env", [{1: ("name", S), 2: ("value", S)}]),
              8: ("resources", {1: ("limits", QUANTITIES), 2: ("requests", QUANTITIES)}),
              14: ("imagePullPolicy", S)}  # fmt: skip
_POD = {2: ("containers", [_CONTAINER]), 3: ("restartPolicy", S), 4: ("terminationGracePeriodSeconds", I),
        5: ("activeDeadlineSeconds", I), 6: ("dnsPolicy", S), 7: ("nodeSelector", STRINGS),
        8: ("serviceAccountName", S)}  # fmt: skip
_TEMPLATE = {**_M, 2: ("spec", _POD)}
_JOB = {1: ("parallelism", I), 2: ("completions", I), 3: ("activeDeadlineSeconds", I), 4: ("selector", _SELECTOR),
        6: ("template", _TEMPLATE), 7: ("backoffLimit", I), 8: ("ttlSecondsAfterFinished", I)}  # fmt: skip
_RULES = {1: ("verbs", LIST_OF_S), 2: ("apiGroups", LIST_OF_S), 3: ("resources", LIST_OF_S),
          4: ("resourceNames", LIST_OF_S), 5: ("nonResourceURLs", LIST_OF_S)}  # fmt: skip
_ROLE = {**_M, 2: ("rules", [_RULES]), 3: ("aggregationRule", {1: ("clusterRoleSelectors", [_SELECTOR])})}
_BINDING = {**_M, 2: ("subjects", [{1: ("kind", S), 2: ("apiGroup", S), 3: ("name", S), 4: ("namespace", S)}]),
            3: ("roleRef", {1: ("apiGroup", S), 2: ("kind", S), 3: ("name", S)})}  # fmt: skip
_ACCESS = {1: ("resourceAttributes", {1: ("namespace", S), 2: ("verb", S), 3: ("group", S), 4: ("version", S),
                                      5: ("resource", S), 6: ("subresource", S), 7: ("name", S)}),
           2: ("nonResourceAttributes", {1: ("path", S), 2: ("verb", S)})}  # fmt: skip
_WHO = {**_ACCESS, 3: ("user", S), 4: ("groups", LIST_OF_S), 6: ("uid", S)}
_BACKEND = {4: ("service", {1: ("name", S), 2: ("port", {1: ("name", S), 2: ("number", I)})})}
_PATHS = [{1: ("path", S), 3: ("pathType", S), 2: ("backend", _BACKEND)}]
_PORT = {1: ("name", S), 2: ("protocol", S), 3: ("port", I), 4: ("targetPort", INT_OR_STRING), 5: ("nodePort", I)}
MESSAGES: dict[str, Any] = {
    "Namespace": _M,
    "SelfSubjectReview": _M,
    "ServiceAccount": {**_M, 3: ("imagePullSecrets", [{1: ("name", S)}]), 4: ("automountServiceAccountToken", B)},
    "Secret": {**_M, 2: ("data", BYTE_MAP), 3: ("type", S), 4: ("stringData", STRINGS), 5: ("immutable", B)},
    "ConfigMap": {**_M, 2: ("data", STRINGS), 3: ("binaryData", BYTE_MAP), 4: ("immutable", B)},
    "Role": _ROLE,
    "ClusterRole": _ROLE,
    "RoleBinding": _BINDING,
    "ClusterRoleBinding": _BINDING,
    "Service": {**_M, 2: ("spec", {1: ("ports", [_PORT]), 2: ("selector", STRINGS), 3: ("clusterIP", S), 4: ("type", S),
                                   5: ("externalIPs", LIST_OF_S), 7: ("sessionAffinity", S), 10: ("externalName", S)})},
    "Pod": _TEMPLATE,
    "Deployment": {**_M, 2: ("spec", {1: ("replicas", I), 2: ("selector", _SELECTOR), 3: ("template", _TEMPLATE)})},
    "Job": {**_M, 2: ("spec", _JOB)},
    "CronJob": {**_M, 2: ("spec", {1: ("schedule", S), 3: ("concurrencyPolicy", S), 4: ("suspend", B),
                                   5: ("jobTemplate", {**_M, 2: ("spec", _JOB)}), 8: ("timeZone", S)})},
    "PodDisruptionBudget": {**_M, 2: ("spec", {1: ("minAvailable", INT_OR_STRING), 2: ("selector", _SELECTOR),
                                               3: ("maxUnavailable", INT_OR_STRING)})},
    "PriorityClass": {**_M, 2: ("value", I), 3: ("globalDefault", B), 4: ("description", S),
                      5: ("preemptionPolicy", S)},
    "ResourceQuota": {**_M, 2: ("spec", {1: ("hard", QUANTITIES), 2: ("scopes", LIST_OF_S)})},
    "Ingress": {**_M, 2: ("spec", {1: ("defaultBackend", _BACKEND), 4: ("ingressClassName", S),
                                   2: ("tls", [{1: ("hosts", LIST_OF_S), 2: ("secretName", S)}]),
                                   3: ("rules", [{1: ("host", S), 2: ("", {1: ("http", {1: ("paths", _PATHS)})})}])})},
    "TokenRequest": {**_M, 2: ("spec", {1: ("audiences", LIST_OF_S), 4: ("expirationSeconds", I),
                                        3: ("boundObjectRef", {1: ("kind", S), 2: ("apiVersion", S), 3: ("name", S),
                                                               4: ("uid", S)})})},
    "TokenReview": {**_M, 2: ("spec", {1: ("token", S), 2: ("audiences", LIST_OF_S)})},
    "SelfSubjectAccessReview": {**_M, 2: ("spec", _ACCESS)},
    "SubjectAccessReview": {**_M, 2: ("spec", _WHO)},
    "LocalSubjectAccessReview": {**_M, 2: ("spec", _WHO)},
    "SelfSubjectRulesReview": {**_M, 2: ("spec", {1: ("namespace", S)})},
    "DeleteOptions": {1: ("gracePeriodSeconds", I), 2: ("preconditions", {1: ("uid", S), 2: ("resourceVersion", S)}),
                      4: ("propagationPolicy", S), 5: ("dryRun", LIST_OF_S)},
    "Eviction": {**_M, 2: ("deleteOptions", {1: ("gracePeriodSeconds", I)})},
}  # fmt: skip


def decode(body: bytes) -> dict[str, Any]:
    """Decodes the object in a protobuf body.

    Raises:
        ApiError: 415 for a kind that is not known here, 400 for what is no protobuf.
    """
    try:
        envelope = dict(_wire(body[len(MAGIC) :]))
        about = dict(_wire(_bytes(envelope[1])))
        api_version, kind = _text(about.get(1, b"")), _text(about.get(2, b""))
        message = MESSAGES.get(kind)
        if message is None:
            raise unsupported_media(JSON_TYPES)
        return {"apiVersion": api_version, "kind": kind, **_message(message, _bytes(envelope.get(2, b"")))}
    except (IndexError, KeyError, TypeError, UnicodeDecodeError) as error:
        raise bad_request(f"the body is no valid protobuf object: {error}") from None


def _wire(body: bytes) -> Iterator[tuple[int, int | bytes]]:
    at = 0
    while at < len(body):
        key, at = _varint(body, at)
        field, kind = key >> 3, key & 7
        value: int | bytes
        if kind == _VARINT:
            value, at = _varint(body, at)
        elif kind in (_FIXED64, _FIXED32):
            size = 8 if kind == _FIXED64 else 4
            value, at = body[at : at + size], at + size
        elif kind == _BYTES:
            size, at = _varint(body, at)
            if at + size > len(body):
                raise IndexError("a field is longer than the body")
            value, at = body[at : at + size], at + size
        else:
            raise TypeError(f"wire type {kind}")
        yield field, value


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _message(message: dict[int, Any], body: bytes) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field, value in _wire(body):
        if field not in message:
            continue
        name, kind = message[field]
        if isinstance(kind, list):
            item = _message(kind[0], _bytes(value)) if isinstance(kind[0], dict) else _text(value)
            found.setdefault(name, []).append(item)
        elif isinstance(kind, dict):
            part = _message(kind, _bytes(value))
            if name:
                found[name] = part
            else:
                found.update(part)  # a message that JSON shows inline
        elif kind in (STRINGS, BYTE_MAP, QUANTITIES):
            pair = dict(_wire(_bytes(value)))
            found.setdefault(name, {})[_text(pair.get(1, b""))] = _map_value(kind, pair.get(2, b""))
        elif (scalar := _scalar(kind, value)) not in ("", None):
            found[name] = scalar
    return found


def _map_value(kind: str, value: int | bytes) -> str:
    if kind == BYTE_MAP:
        return base64.b64encode(_bytes(value)).decode()
    return _text(dict(_wire(_bytes(value))).get(1, b"")) if kind == QUANTITIES else _text(value)


def _scalar(kind: str, value: int | bytes) -> Any:
    if kind == S:
        return _text(value)
    if kind == INT_OR_STRING:
        parts = dict(_wire(_bytes(value)))
        return _text(parts.get(3, b"")) if parts.get(1) else _signed(parts.get(2, 0))
    return bool(value) if kind == B else _signed(value)


def _signed(value: int | bytes) -> int:
    if isinstance(value, bytes):
        raise TypeError("bytes where a number belongs")
    return value - (1 << 64) if value >= 1 << 63 else value


def _bytes(value: int | bytes) -> bytes:
    if isinstance(value, int):
        raise TypeError("a number where bytes belong")
    return value


def _text(value: int | bytes) -> str:
    return _bytes(value).decode()
