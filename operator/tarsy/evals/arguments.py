"""Normalises the arguments of a tool call, so that equivalent calls are recognised.

These differences mean nothing: the order of keys; a null, an empty text or list; a value that is the default in the
parameters' schema; a number or a boolean as text; white space around a text; singular, plural, short name or case of a
Kubernetes kind.
"""

import json
from collections.abc import Mapping
from typing import Final

import orjson

from tarsy.mcp.arguments.cascade import parse_arguments

KIND_KEYS: Final = frozenset({"kind", "resource", "resourcekind", "resourcetype", "resourcetypes", "objectkind"})
_SHORT_NAMES: Final = {
    "cm": "configmap",
    "cj": "cronjob",
    "crd": "customresourcedefinition",
    "deploy": "deployment",
    "ds": "daemonset",
    "ep": "endpoint",
    "endpoints": "endpoint",
    "ev": "event",
    "hpa": "horizontalpodautoscaler",
    "ing": "ingress",
    "ingresses": "ingress",
    "limits": "limitrange",
    "netpol": "networkpolicy",
    "networkpolicies": "networkpolicy",
    "no": "node",
    "ns": "namespace",
    "pdb": "poddisruptionbudget",
    "po": "pod",
    "priorityclasses": "priorityclass",
    "pv": "persistentvolume",
    "pvc": "persistentvolumeclaim",
    "quota": "resourcequota",
    "rs": "replicaset",
    "sa": "serviceaccount",
    "sc": "storageclass",
    "storageclasses": "storageclass",
    "ingressclasses": "ingressclass",
    "runtimeclasses": "runtimeclass",
    "sts": "statefulset",
    "svc": "service",
}
_CONSTANTS: Final[Mapping[str, bool]] = {"true": True, "false": False}
_MOST_DIGITS = 15
_DEEPEST = 100


def normalised_arguments(arguments: str, schema: Mapping[str, object]) -> str:
    """Returns what arguments mean, as canonical JSON; text of another form is read as tool calls read it.

    Args:
        arguments: as JSON, or the text that a model wrote.
        schema: JSON schema of the tool's parameters; empty: not known.
    """
    found: Mapping[str, object] = parse_arguments(arguments, dict(schema))
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    kept: dict[str, object] = {}
    for key, value in found.items():
        meaning = _kind(value) if _plain(key) in KIND_KEYS else _value(value, _DEEPEST)
        if _is_empty(meaning):
            continue
        declared = known.get(key)
        if isinstance(declared, dict) and "default" in declared and meaning == _value(declared["default"], _DEEPEST):
            continue
        kept[key] = meaning
    return _dumped(kept)


def singular_kind(kind: str) -> str:
    """Returns a kind of Kubernetes objects in lower case and singular: `Pods`, `po` and `pods` are `pod`."""
    plain = kind.strip().lower().partition(".")[0]
    if plain in _SHORT_NAMES:
        return _SHORT_NAMES[plain]
    if plain.endswith("ies"):
        return plain.removesuffix("ies") + "y"
    if plain.endswith("s") and not plain.endswith(("ss", "us")):
        return plain.removesuffix("s")
    return plain


def _dumped(value: object) -> str:
    """Returns canonical JSON; numbers beyond 64 bits and half surrogates as text."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    except orjson.JSONEncodeError:
        return json.dumps(value, sort_keys=True)


def _plain(key: str) -> str:
    return key.replace("_", "").replace("-", "").lower()


def _kind(value: object) -> object:
    return singular_kind(value) if isinstance(value, str) else _value(value, _DEEPEST)


def _is_empty(value: object) -> bool:
    return value is None or value in ("", [], {})


def _value(value: object, depth: int) -> object:
    """Returns a value without differences that mean nothing."""
    match value:
        case str():
            return _text(value.strip())
        case bool() | int():
            return value
        case float():
            return int(value) if value.is_integer() else value
        case list() if depth:
            return [_value(item, depth - 1) for item in value]
        case dict() if depth:
            inner = {str(key): _value(item, depth - 1) for key, item in value.items()}
            return {key: item for key, item in inner.items() if not _is_empty(item)}
        case _:
            return value


def _text(text: str) -> object:
    """Returns the number or boolean that a text is, else the text."""
    if text.lower() in _CONSTANTS:
        return _CONSTANTS[text.lower()]
    digits = text.removeprefix("-")
    is_number = digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS
    return int(text) if is_number and (digits == "0" or not digits.startswith("0")) else text
