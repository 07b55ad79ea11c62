"""Encodes OpenAPI v2 as protobuf, the only form that kubectl before 1.27 reads (apply, explain, dry run).

A mechanical mapping of the JSON by field numbers, those of `Document` and below in OpenAPIv2.proto of
github.com/google/gnostic-models. What a reader of Kubernetes' definitions never looks at is left out.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from embedded_kubeapi.objects import Obj, dumps

_BYTES, _FIXED64 = 2, 1
_STRINGS = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}
_DOUBLES = {"multipleOf": 6, "maximum": 7, "minimum": 9}
_NUMBERS = {"exclusiveMaximum": 8, "exclusiveMinimum": 10, "maxLength": 11, "minLength": 12, "maxItems": 14,
            "minItems": 15, "uniqueItems": 16, "maxProperties": 17, "minProperties": 18}  # fmt: skip
_OPERATIONS = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}


def encode_v2(document: Obj) -> bytes:
    """Encodes a document of `document_v2`."""
    info = document["info"]
    return b"".join((
        _text(1, document["swagger"]),
        _message(2, _text(1, info["title"]) + _text(2, info["version"])),
        _message(8, _named(2, document["paths"], _path)),
        _message(9, _named(1, document["definitions"], _schema)),
    ))  # fmt: skip


def _schema(schema: Obj) -> bytes:
    out = bytearray()
    for name, value in schema.items():
        if name in _STRINGS:
            out += _text(_STRINGS[name], value)
        elif name in _DOUBLES:
            out += _key(_DOUBLES[name], _FIXED64) + struct.pack("<d", value)
        elif name in _NUMBERS:
            out += _number(_NUMBERS[name], int(value))
        elif name.startswith("x-"):
            out += _extension(31, name, value)
        else:
            out += _part(name, value)
    return bytes(out)


def _part(name: str, value: Any) -> bytes:
    match name:
        case "default":
            return _message(5, _any(value))
        case "required":
            return b"".join(_text(19, item) for item in value)
        case "enum":
            return b"".join(_message(20, _any(item)) for item in value)
        case "additionalProperties":
            inside = _number(2, int(value)) if isinstance(value, bool) else _message(1, _schema(value))
            return _message(21, inside)
        case "type":
            return _message(22, _text(1, value))
        case "items":
            return _message(23, _message(1, _schema(value)))
        case "allOf":
            return b"".join(_message(24, _schema(item)) for item in value)
        case "properties":
            return _message(25, _named(1, value, _schema))
        case _:
            return b""


def _path(path: Obj) -> bytes:
    return b"".join(_message(_OPERATIONS[name], _operation(path[name])) for name in path if name in _OPERATIONS)


def _operation(operation: Obj) -> bytes:
    out = _text(5, operation["operationId"])
    for parameter in operation["parameters"]:
        query = _text(2, parameter["in"]) + _text(4, parameter["name"]) + _text(6, parameter["type"])
        out += _message(8, _message(1, _message(2, _message(3, query))))
    out += _message(9, _named(1, operation["responses"], lambda answer: _message(1, _text(1, answer["description"]))))
    return out + b"".join(_extension(13, name, part) for name, part in operation.items() if name.startswith("x-"))


def _named(field: int, parts: Mapping[str, Any], encode: Callable[[Any], bytes]) -> bytes:
    return b"".join(_message(field, _text(1, name) + _message(2, encode(part))) for name, part in parts.items())


def _extension(field: int, name: str, value: Any) -> bytes:
    return _message(field, _text(1, name) + _message(2, _any(value)))


def _any(value: Any) -> bytes:
    return _text(2, dumps(value).decode())  # it is read as YAML, which JSON is


def _text(field: int, text: str) -> bytes:
    return _message(field, text.encode())


def _message(field: int, body: bytes) -> bytes:
    return _key(field, _BYTES) + _varint(len(body)) + body


def _number(field: int, value: int) -> bytes:
    return _key(field, 0) + _varint(value)


def _key(field: int, kind: int) -> bytes:
    return _varint(field << 3 | kind)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
