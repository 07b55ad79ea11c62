"""Implements values and operators: types, equality, arithmetic, order, membership, fields and indices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from .errors import CelError

_INT_MIN, _INT_MAX = -(2**63), 2**63 - 1
_NUMBERS = (int, float)


@dataclass(frozen=True)
class TypeValue:
    """The value of `type(x)`."""

    name: str


TYPES = {name: TypeValue(name) for name in ("bool", "int", "uint", "double", "string", "bytes", "list", "map", "type")}
TYPES["null_type"] = TypeValue("null_type")


@dataclass(frozen=True)
class Optional:
    """A value that may be absent."""

    present: bool
    content: Any = None

    @staticmethod
    def select(value: Any, key: Any) -> Optional:
        if isinstance(value, Optional):
            if not value.present:
                return value
            value = value.content
        if isinstance(value, dict):
            return Optional(True, value[key]) if key in value else Optional(False)
        if isinstance(value, list) and isinstance(key, int):
            return Optional(True, value[key]) if 0 <= key < len(value) else Optional(False)
        raise CelError(f"no such overload: {kind(value)}[?{kind(key)}]")


@dataclass(frozen=True, order=True)
class Quantity:
    """An amount such as 1.5Gi."""

    value: Decimal


def kind(value: Any) -> str:
    """Returns the name of a value's type."""
    if value is None:
        return "null_type"
    for kinds, name in (
        (bool, "bool"), (int, "int"), (float, "double"), (str, "string"), (bytes, "bytes"), (list, "list"),
        (dict, "map"), (datetime, "google.protobuf.Timestamp"), (timedelta, "google.protobuf.Duration"),
    ):  # fmt: skip
        if isinstance(value, kinds):
            return name
    return type(value).__name__.lower()


def boolean(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise CelError(f"no such overload: expected bool, found {kind(value)}")


def equal(a: Any, b: Any) -> bool:
    """Deep equality: numbers by value, and true is not 1."""
    if isinstance(a, bool) or isinstance(b, bool):
        return a is b
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(equal(value, b[key]) for key, value in a.items())
    return bool(a == b)


def _add(a: Any, b: Any) -> Any:
    if _same_number(a, b):
        return fits(a + b)
    if type(a) is type(b) and isinstance(a, (str, bytes, list, timedelta)):
        return a + b
    if isinstance(a, (datetime, timedelta)) and isinstance(b, (datetime, timedelta)) and type(a) is not type(b):
        return a + b if isinstance(a, datetime) else b + a  # type: ignore[operator]
    raise _overload(a, "+", b)


def _subtract(a: Any, b: Any) -> Any:
    if _same_number(a, b):
        return fits(a - b)
    if isinstance(a, (datetime, timedelta)) and isinstance(b, (datetime, timedelta)):
        return a - b  # type: ignore[operator]
    raise _overload(a, "-", b)


def _multiply(a: Any, b: Any) -> Any:
    if _same_number(a, b):
        return fits(a * b)
    raise _overload(a, "*", b)


def _divide(a: Any, b: Any) -> Any:
    if not _same_number(a, b):
        raise _overload(a, "/", b)
    if isinstance(a, float):
        return a / b if b else math.copysign(math.inf, a) if a else math.nan
    if b == 0:
        raise CelError("division by zero")
    return fits(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))


def _remainder(a: Any, b: Any) -> Any:
    if not _same_number(a, b) or isinstance(a, float):
        raise _overload(a, "%", b)
    if b == 0:
        raise CelError("modulus by zero")
    return int(math.fmod(a, b)) if max(abs(a), abs(b)) < 2**53 else a - b * int(Decimal(a) / Decimal(b))


def negate(a: Any) -> Any:
    if isinstance(a, _NUMBERS) and not isinstance(a, bool):
        return fits(-a)
    raise CelError(f"no such overload: -{kind(a)}")


def fits(value: Any) -> Any:
    if isinstance(value, int) and not _INT_MIN <= value <= _INT_MAX:
        raise CelError("return error for overflow: integer overflow")
    return value


def _same_number(a: Any, b: Any) -> bool:
    return type(a) is type(b) and type(a) in (int, float)


def _overload(a: Any, op: str, b: Any) -> CelError:
    return CelError(f"no such overload: {kind(a)} {op} {kind(b)}")


def _compare(op: str, test: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def compare(a: Any, b: Any) -> bool:
        numbers = isinstance(a, _NUMBERS) and isinstance(b, _NUMBERS) and isinstance(a, bool) == isinstance(b, bool)
        if numbers or (type(a) is type(b) and isinstance(a, (str, bytes, datetime, timedelta, Quantity))):
            return test(a, b)
        raise _overload(a, op, b)

    return compare


def contains(item: Any, container: Any) -> bool:
    if isinstance(container, dict):
        return isinstance(item, (str, int, float, bool)) and item in container
    if isinstance(container, list):
        return any(equal(item, other) for other in container)
    raise _overload(item, "in", container)


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": _add, "-": _subtract, "*": _multiply, "/": _divide, "%": _remainder, "in": contains,
    "<": _compare("<", lambda a, b: bool(a < b)), ">": _compare(">", lambda a, b: bool(a > b)),
    "<=": _compare("<=", lambda a, b: bool(a <= b)), ">=": _compare(">=", lambda a, b: bool(a >= b)),
}  # fmt: skip


def attribute(value: Any, field: str, missing: bool | None = None) -> Any:
    """Selects a field of a value that is not a map; host objects, such as requests, may define `cel_select`."""
    if hasattr(value, "cel_select"):
        return value.cel_select(field, missing)
    if missing is not None:
        return missing
    raise CelError(f"no such key: {field}" if isinstance(value, dict) else f"no such overload: {kind(value)}.{field}")


def index(value: Any, key: Any) -> Any:
    """`value[key]`."""
    if isinstance(value, dict):
        if key in value:
            return value[key]
        raise CelError(f"no such key: {key}")
    if isinstance(value, list) and isinstance(key, _NUMBERS) and not isinstance(key, bool) and key == int(key):
        if 0 <= key < len(value):
            return value[int(key)]
        raise CelError(f"index out of bounds: {key}")
    raise CelError(f"no such overload: {kind(value)}[{kind(key)}]")
