"""Reads the values that a model took from a result, and keeps those that are what they are declared to be.

Decision: a value that does not fit is left out, never repaired. All but those of an enumeration must occur in the
result, so that each can be quoted from it, and an extractor that obeys the text adds nothing.
"""

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import Any

from tarsy.engine.prompts.fence import readable
from tarsy.engine.provenance.readings import occurs_whole, plain_reading
from tarsy.plan.model import ExtractedFieldPlan
from tarsy.record.text import clean

_LONGEST_TIME = 40
_TRIES = 4
"""Items of a field that are looked at, as a multiple of those that may be kept."""
_LONGEST_NUMBER = 32
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@#+-]*")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class ExtractedValues:
    """Values by field, in the order in which the fields are declared; `left_out` counts those that did not fit."""

    values: tuple[tuple[str, tuple[str, ...]], ...]
    left_out: int = 0

    def told(self) -> str:
        """Returns one line a field; texts of the result stand in quotation marks."""
        lines = [f"- {name}: {', '.join(found) if found else 'not found'}" for name, found in self.values]
        if self.left_out:
            lines.append(f"{self.left_out} more were left out, because they do not fit or are not in the text.")
        return "\n".join(lines)


class _Source:
    """The result that values are taken from, in the forms in which they are looked for."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def plain(self) -> str:
        return plain_reading(self.text)

    @cached_property
    def flat(self) -> str:
        return _flat(self.text)

    @cached_property
    def numbers(self) -> frozenset[float]:
        found = (one[0] for one in _NUMBER.finditer(self.text))
        return frozenset(float(one) for one in found if len(one) <= _LONGEST_NUMBER)


def read_extracted(answer: str, fields: Sequence[ExtractedFieldPlan], text: str) -> ExtractedValues | None:
    """Returns the values in a model's answer; None: it is no JSON object, or contains none that fits.

    Args:
        answer: of the extracting model.
        fields: as declared.
        text: the result that the values are taken from.
    """
    found = _json_object(answer)
    if found is None:
        return None
    values, left_out, source = [], 0, _Source(text)
    for field in fields:
        given = found.get(field.name)
        items = given if isinstance(given, list) else [] if given is None else [given]
        tried = [_fitting(item, field, source) for item in items[: _TRIES * field.max_items]]
        kept = tuple(dict.fromkeys(one for one in tried if one is not None))[: field.max_items]
        left_out += len(items) - len(kept)
        values.append((field.name, kept))
    if not any(kept for _, kept in values):
        return None
    return ExtractedValues(tuple(values), left_out)


def _fitting(item: Any, field: ExtractedFieldPlan, source: _Source) -> str | None:
    """Returns a value as agents are told it; None: it does not fit."""
    if isinstance(item, bool) or not isinstance(item, str | int | float):
        return None
    value = str(item).strip()
    match field.type:
        case "Number":
            is_number = len(value) <= _LONGEST_NUMBER and _NUMBER.fullmatch(value) and math.isfinite(float(value))
            return value if is_number and float(value) in source.numbers else None
        case "Time":
            return value if len(value) <= _LONGEST_TIME and _is_time(value) and value in source.text else None
        case "Enum":
            return next((one for one in field.values if one.lower() == value.lower()), None)
        case "Identifier":
            fits = len(value) <= field.longest and _IDENTIFIER.fullmatch(value)
            return value if fits and occurs_whole(plain_reading(value), source.plain) else None
        case "Quote":
            words = _flat(value)
            there = 0 < len(words) <= field.longest and words in source.flat
            return json.dumps(words, ensure_ascii=False) if there else None


def _flat(text: str) -> str:
    return readable(clean(" ".join(text.split())))


def _is_time(value: str) -> bool:
    if not any(char.isdigit() for char in value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        try:
            parsedate_to_datetime(value)
        except (ValueError, TypeError, IndexError):
            return False
    return True


def _json_object(answer: str) -> dict[str, Any] | None:
    """Returns the JSON object of an answer, also in a block of code; None: there is none."""
    start, end = answer.find("{"), answer.rfind("}")
    if start < 0 or end < start:
        return None
    try:
        found = json.loads(answer[start : end + 1])
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
