"""Builds the parts of an imported case: tool definitions, its time, and an expectation out of names and words."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import JsonValue

from tarsy.evals.cassette import Cassette, Header, RecordedCall, ServerRecord, ToolRecord
from tarsy.record.messages import Access
from tarsy.resources.v1alpha1.expectation import ENTITY, MAX_ENTITIES, MAX_EXPRESSION, MAX_FACTS

UNDATED = datetime(2025, 1, 1, tzinfo=UTC)
"""Time of a case whose texts tell none."""
_MOST_TOLD = 1_000
_MOST_SEARCHED = 1 << 20
_TIME = re.compile(r"\b(20\d\d-[01]\d-[0-3]\d)T([0-2]\d:[0-5]\d:[0-5]\d)(?:\.\d+)?(?:Z|\+00:?00)")
_CHANGING = re.compile(r"(?:^|[_.-])(?:apply|create|delete|patch|scale|restart|exec|run|bash|write|update)(?:$|[_.-])")
_TYPES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def recorded_world(header: Header, server: str, calls: Sequence[RecordedCall], title: str) -> Cassette:
    """Returns a cassette with definitions of the tools that are called in it.

    A benchmark has no definitions, so the parameters of a tool are those that its recorded calls give.

    Args:
        header: without servers.
        server: name of the tool server.
        calls: the recorded calls.
        title: of the benchmark.
    """
    names = sorted({call.tool for call in calls})
    tools = tuple(_tool(name, [call for call in calls if call.tool == name], title) for name in names)
    return Cassette(header.model_copy(update={"servers": {server: ServerRecord(tools=tools)}}), tuple(calls))


def _tool(name: str, calls: Sequence[RecordedCall], title: str) -> ToolRecord:
    properties: dict[str, JsonValue] = {}
    for call in calls:
        for key, value in call.arguments.items() if isinstance(call.arguments, dict) else ():
            properties[key] = {"type": _TYPES.get(type(value), "string")}
    schema: dict[str, JsonValue] = {"type": "object", "properties": dict(sorted(properties.items()))}
    access = Access.UNKNOWN if _CHANGING.search(name) else Access.READ_ONLY
    told = f"Tool of {title}, answered from its recording."
    return ToolRecord(name=name, description=told, parameters_schema=schema, access=access)


def time_of(texts: Iterable[str]) -> datetime:
    """Returns the latest time of the day that the texts name most often, else `UNDATED`.

    A certificate that expires in ten years, or a node that is a year old, is not the time of the incident.

    Args:
        texts: alert and results.
    """
    days: Counter[str] = Counter()
    latest: dict[str, str] = {}
    for text in texts:
        for day, clock in _TIME.findall(text[:_MOST_SEARCHED]):
            days[day] += 1
            latest[day] = max(clock, latest.get(day, ""))
    for day, _ in sorted(days.items(), key=lambda one: (-one[1], one[0])):
        try:
            return datetime.fromisoformat(f"{day}T{latest[day]}").replace(tzinfo=UTC)
        except ValueError:
            continue
    return UNDATED


def entities_of(names: Iterable[str]) -> tuple[list[str], list[str]]:
    """Returns names as an expectation writes them, and those that it cannot write.

    Args:
        names: as KIND/NAME or NAME; a pod of a workload begins with its name, so each stands for longer ones too.
    """
    found: list[str] = []
    strange: list[str] = []
    for name in names:
        kind, slash, rest = name.strip().rpartition("/")
        text = f"{kind}{slash}{rest.lower()}" + ("" if rest.endswith("*") else "*")
        fits = re.fullmatch(ENTITY, text) is not None and len(text) <= 253 and len(found) < MAX_ENTITIES
        (found if fits and text not in found else strange).append(text if fits else name)
    return found, [name for name in strange if name not in found]


def words_in(words: Iterable[str], *, summary: bool) -> list[dict[str, str]]:
    """Returns facts that hold if a supported claim contains each word, whatever its case.

    Args:
        words: of the benchmark.
        summary: whether the summary of the finding counts too.
    """
    facts: list[dict[str, str]] = []
    for word in dict.fromkeys(word.strip() for word in words if word.strip()):
        literal = json.dumps(word.lower(), ensure_ascii=False)
        text = f"claims.exists(c, c.text.lowerAscii().contains({literal}))"
        if summary:
            text += f" || finding.summary.lowerAscii().contains({literal})"
        if len(text) <= MAX_EXPRESSION and len(facts) < MAX_FACTS:
            facts.append({"expression": text, "message": f"The finding does not say: {word}"[:256]})
    return facts


def to_be_written(prose: str) -> dict[str, str]:
    """Returns a fact that never holds: a case that nobody completes must not pass unseen.

    Args:
        prose: what the benchmark expects.
    """
    return {"expression": "false", "message": f"Write what this case expects; its benchmark says: {prose}"[:256]}


def one_line_of(value: object) -> str:
    """Returns a value of a foreign file as one short line."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return " ".join(text.split())[:_MOST_TOLD]


def texts_in(value: Any) -> list[str]:
    """Returns the texts of a list, or the one that stands for a list; other values are left out."""
    if isinstance(value, str):
        return [value]
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
