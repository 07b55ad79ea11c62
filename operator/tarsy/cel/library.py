"""Implements the functions of the language, with those that Kubernetes adds.

Documented at kubernetes.io/docs/reference/using-api/cel: strings, regular expressions, lists, URLs, quantities, sets,
math, optionals. Not here: IP addresses and CIDRs, semver, format, JSON patch types.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qs, urlsplit

from .errors import CelError
from .operators import TYPES, Optional, Quantity, TypeValue, contains, equal, fits, kind
from .patterns import BadPattern, Pattern, pattern

_DURATION = re.compile(r"([-+]?)((?:\d+(?:\.\d*)?(?:h|ms|us|µs|ns|m|s))+|0)")
_UNITS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
_QUANTITY = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(Ki|Mi|Gi|Ti|Pi|Ei|m|k|M|G|T|P|E|n|u|[eE][+-]?\d+)?")
_BINARY_UNITS = {unit: Decimal(1024) ** power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
_DECIMAL_UNITS = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}


def _size(value: Any) -> int:
    if isinstance(value, (str, bytes, list, dict)):
        return len(value)
    raise CelError(f"no such overload: size({kind(value)})")


def _to_string(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case bytes():
            return value.decode()
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case timedelta():
            return f"{value.total_seconds():g}s"
        case float():
            return f"{value:g}" if value == int(value) else repr(value)
        case str() | int():
            return str(value)
    raise CelError(f"no such overload: string({kind(value)})")


def _to_int(value: Any) -> int:
    if isinstance(value, datetime):
        return int(value.timestamp())
    try:
        return int(fits(int(value)))
    except (ValueError, TypeError):
        raise CelError(f"type conversion error from {kind(value)} to int") from None


def _to_double(value: Any) -> float:
    try:
        return float(value)
    except (ValueError, TypeError):
        raise CelError(f"type conversion error from {kind(value)} to double") from None


def _to_bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    texts = {"true": True, "True": True, "TRUE": True, "t": True, "1": True}
    texts |= {"false": False, "False": False, "FALSE": False, "f": False, "0": False}
    if isinstance(value, str) and value in texts:
        return texts[value]
    raise CelError(f"type conversion error from {kind(value)} to bool")


def to_timestamp(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        found = datetime.fromisoformat(str(value).replace("Z", "+00:00"))
    except ValueError:
        raise CelError(f"invalid timestamp {value!r}") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def to_duration(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        return value
    match = _DURATION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise CelError(f"invalid duration {value!r}")
    parts = re.findall(r"(\d+(?:\.\d*)?)(h|ms|us|µs|ns|m|s)", match[2])
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    return timedelta(seconds=-seconds if match[1] == "-" else seconds)


def _to_bytes(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, bytes):
        return value
    raise CelError(f"no such overload: bytes({kind(value)})")


def _search(text: Any) -> Pattern:
    try:
        return pattern(_text(text))
    except BadPattern as error:
        raise CelError(str(error)) from None


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise CelError(f"no such overload: expected string, found {kind(value)}")


def _quantity(text: Any) -> Quantity:
    match = _QUANTITY.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise CelError("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")
    number, unit = Decimal(match[1]), match[2] or ""
    if unit in _BINARY_UNITS:
        return Quantity(number * _BINARY_UNITS[unit])
    if unit in _DECIMAL_UNITS:
        return Quantity(number.scaleb(_DECIMAL_UNITS[unit]))
    return Quantity(number.scaleb(int(unit[1:])) if unit else number)


def _works(function: Callable[[Any], Any]) -> Callable[[Any], bool]:
    def works(value: Any) -> bool:
        try:
            function(value)
        except (CelError, InvalidOperation):
            return False
        return True

    return works


def _url(text: Any) -> dict[str, Any]:
    parts = urlsplit(_text(text))
    if not (parts.scheme and (parts.netloc or parts.path)) and not text.startswith("/"):
        raise CelError(f"URL parse error during conversion from string: {text!r}")
    try:
        port = str(parts.port or "")
    except ValueError:
        raise CelError(f"URL parse error: {text!r}") from None
    query = parse_qs(parts.query, keep_blank_values=True)
    return {"scheme": parts.scheme, "host": parts.netloc.rpartition("@")[2], "hostname": parts.hostname or "",
            "port": port, "path": parts.path, "query": query}  # fmt: skip


def _subset(a: list[Any], b: list[Any]) -> bool:
    return all(contains(item, b) for item in a)


def _distinct(items: Iterable[Any]) -> list[Any]:
    found: list[Any] = []
    for item in items:
        if not contains(item, found):
            found.append(item)
    return found


def _substring(text: str, start: int, end: int | None = None) -> str:
    if not 0 <= start <= (len(text) if end is None else end) <= len(text):
        raise CelError(f"index out of range: {start}")
    return text[start:end]


def _index_of(value: Any, item: Any, start: int = 0) -> int:
    if isinstance(value, list):
        return next((at for at, other in enumerate(value) if equal(item, other)), -1)
    return _text(value).find(_text(item), start)


def _last_index_of(value: Any, item: Any) -> int:
    if isinstance(value, list):
        return next((at for at in range(len(value) - 1, -1, -1) if equal(item, value[at])), -1)
    return _text(value).rfind(_text(item))


def _extreme(pick: Callable[[Any], Any]) -> Callable[..., Any]:
    def extreme(*values: Any) -> Any:
        items = values[0] if len(values) == 1 and isinstance(values[0], list) else values
        if not items:
            raise CelError("min and max need at least one item")
        return pick(items)

    return extreme


def _value(optional: Optional) -> Any:
    if not optional.present:
        raise CelError("optional.none() dereference")
    return optional.content


def _limit(text: str, limit: int) -> int:
    return len(text) if limit < 0 else limit


def _host_method(name: str) -> Callable[..., Any]:
    def call(host: Any, *arguments: Any) -> Any:
        if hasattr(host, "cel_call"):
            return host.cel_call(name, arguments)
        raise CelError(f"no such overload: {kind(host)}.{name}()")

    return call


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "size": _size, "string": _to_string, "int": _to_int, "uint": _to_int, "double": _to_double, "bool": _to_bool,
    "bytes": _to_bytes, "timestamp": to_timestamp, "duration": to_duration, "dyn": lambda value: value,
    "type": lambda value: TYPES.get(kind(value), TypeValue(kind(value))),
    "matches": lambda text, pattern: _search(pattern).is_in(_text(text)),
    "quantity": _quantity, "isQuantity": _works(_quantity), "url": _url, "isURL": _works(_url),
    "math.greatest": _extreme(max), "math.least": _extreme(min), "math.abs": abs, "math.ceil": math.ceil,
    "math.floor": math.floor, "math.round": round,
    "sets.contains": lambda a, b: _subset(b, a), "sets.intersects": lambda a, b: any(contains(x, b) for x in a),
    "sets.equivalent": lambda a, b: _subset(a, b) and _subset(b, a),
    "optional.of": lambda value: Optional(True, value), "optional.none": lambda: Optional(False),
    "optional.ofNonZeroValue": lambda value: Optional(bool(value), value),
    "lists.range": lambda count: list(range(count)), "base64.encode": lambda b: base64.b64encode(b).decode(),
    "base64.decode": base64.b64decode,
}  # fmt: skip

METHODS: dict[str, Callable[..., Any]] = {
    "size": _size, "matches": FUNCTIONS["matches"],
    "startsWith": lambda text, part: _text(text).startswith(_text(part)),
    "endsWith": lambda text, part: _text(text).endswith(_text(part)),
    "contains": lambda text, part: _text(part) in _text(text),
    "lowerAscii": lambda text: _text(text).lower(), "upperAscii": lambda text: _text(text).upper(),
    "trim": lambda text: _text(text).strip(), "reverse": lambda value: value[::-1],
    "split": lambda text, by, limit=-1: _text(text).split(by, _limit(text, limit - 1)) if by else list(text),
    "join": lambda items, by="": by.join(items), "substring": _substring,
    "charAt": lambda text, at: _substring(text, at, at + 1),
    "replace": lambda text, old, new, limit=-1: _text(text).replace(old, new, limit),
    "indexOf": _index_of, "lastIndexOf": _last_index_of,
    "find": lambda text, pattern: next(_search(pattern).every(_text(text)), ""),
    "findAll": lambda text, pattern, limit=-1: [*_search(pattern).every(_text(text))][: limit if limit >= 0 else None],
    "isSorted": lambda items: all(a <= b for a, b in pairwise(items)),
    "sum": lambda items: sum(items[1:], items[0]) if items else 0, "min": _extreme(min), "max": _extreme(max),
    "distinct": _distinct, "slice": lambda items, start, end: items[start:end], "sort": sorted,
    "flatten": lambda items: [x for item in items for x in (item if isinstance(item, list) else [item])],
    "getScheme": lambda url: url["scheme"], "getHost": lambda url: url["host"], "getPort": lambda url: url["port"],
    "getHostname": lambda url: url["hostname"], "getEscapedPath": lambda url: url["path"],
    "getQuery": lambda url: url["query"],
    "isGreaterThan": lambda a, b: a > b, "isLessThan": lambda a, b: a < b,
    "compareTo": lambda a, b: (a > b) - (a < b), "asInteger": lambda q: int(q.value),
    "isInteger": lambda q: q.value == int(q.value), "asApproximateFloat": lambda q: float(q.value),
    "sign": lambda q: (q.value > 0) - (q.value < 0),
    "hasValue": lambda optional: optional.present, "value": _value,
    "getFullYear": lambda t: t.year, "getMonth": lambda t: t.month - 1, "getDate": lambda t: t.day,
    "getDayOfMonth": lambda t: t.day - 1, "getDayOfWeek": lambda t: (t.weekday() + 1) % 7,
    "getDayOfYear": lambda t: t.timetuple().tm_yday - 1,
    "getHours": lambda t: t.hour if isinstance(t, datetime) else int(t.total_seconds() // 3600),
    "getMinutes": lambda t: t.minute if isinstance(t, datetime) else int(t.total_seconds() // 60),
    "getSeconds": lambda t: t.second if isinstance(t, datetime) else int(t.total_seconds()),
    "getMilliseconds": lambda t: t.microsecond // 1000 if isinstance(t, datetime) else int(t.total_seconds() * 1000),
    # The authorizer of admission policies: objects of the host that know these words.
    **{
        name: _host_method(name)
        for name in ("group", "resource", "subresource", "namespace", "name", "check", "path", "serviceAccount",
                     "allowed", "reason", "errored", "error", "fieldSelector", "labelSelector")
    },
}  # fmt: skip
