"""Validates arguments against the JSON schema of a tool, with errors that a model can act on.

The schema is untrusted, so the validator is restricted: references stay within the document, their number is bounded,
and keywords with regular expressions are left to the server (a hostile pattern takes exponential time). An unusable
schema validates nothing: the server checks its arguments anyway.
"""

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import orjson
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from jsonschema.exceptions import ValidationError  # type: ignore[import-untyped]
from jsonschema.validators import extend  # type: ignore[import-untyped]
from referencing import Registry

KEPT = 256
"""Compiled schemas that are kept for other runs."""

LARGEST_KEPT = 32 * 1024
"""Bytes of the largest schema that is kept, so that hostile servers fill at most a few MiB."""

_REFERENCES = 500
_SHOWN = 5
_LONGEST = 300
_LEFT_TO_THE_SERVER = (
    "pattern",
    "patternProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
    "$dynamicRef",
)


class _TooComplex(Exception):
    pass


class ArgumentSchema:
    """A compiled input schema (compiling takes milliseconds, validating microseconds).

    Args:
        schema: The schema, as received.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        self._followed = 0
        changed: dict[str, Any] = dict.fromkeys(_LEFT_TO_THE_SERVER, _unchecked)
        changed |= {"$ref": self._reference, "additionalProperties": _additional_properties}
        self._validator = extend(Draft202012Validator, changed)(schema, registry=Registry())

    def faults(self, arguments: dict[str, Any]) -> list[str]:
        """Returns at most five errors of the arguments; none if they are valid, or the schema is unusable.

        Args:
            arguments: The parsed arguments.
        """
        found: dict[str, None] = {}
        self._followed = 0
        try:
            for error in self._validator.iter_errors(arguments):
                where = ".".join(str(part) for part in error.absolute_path)
                text = error.message if len(error.message) <= _LONGEST else error.message[:_LONGEST] + "..."
                found[f"{where}: {text}" if where else text] = None
                if len(found) == _SHOWN:
                    break
        except Exception:  # an untrusted schema may make the library raise anything
            return []
        return list(found)

    def _reference(self, validator: Any, ref: Any, instance: Any, within: Any) -> Iterator[ValidationError]:
        self._followed += 1
        if self._followed > _REFERENCES:
            raise _TooComplex
        yield from Draft202012Validator.VALIDATORS["$ref"](validator, ref, instance, within) or ()


def compiled(schema: dict[str, Any]) -> ArgumentSchema:
    """Compiles a schema, or returns the one that another run compiled.

    Args:
        schema: The schema, as received.
    """
    document = orjson.dumps(schema)
    return _kept(document) if len(document) <= LARGEST_KEPT else ArgumentSchema(schema)


@lru_cache(maxsize=KEPT)
def _kept(document: bytes) -> ArgumentSchema:
    return ArgumentSchema(orjson.loads(document))


def _additional_properties(validator: Any, allowed: Any, instance: Any, within: Any) -> Iterator[ValidationError]:
    if "patternProperties" not in within:
        yield from Draft202012Validator.VALIDATORS["additionalProperties"](validator, allowed, instance, within) or ()


def _unchecked(_validator: Any, _value: Any, _instance: Any, _schema: Any) -> tuple[ValidationError, ...]:
    return ()
