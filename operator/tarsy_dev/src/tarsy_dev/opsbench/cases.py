"""Reads the cases of a folder: the recorded answers as a snapshot, and the truth."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from tarsy.evidence.snapshot import Snapshot
from tarsy_dev.opsbench.describe import MOST_CHARACTERS, parse_description, parse_table
from tarsy_dev.opsbench.objects import CLUSTER, KINDS, described, named

ANSWERS, TRUTH = "tool_cache.json", "metadata.json"
MOST_BYTES = 64 * 1024 * 1024
"""Maximum size of a file."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class NoCases(Exception):
    """The folder is missing or has no cases; the text says what to do."""


class Unreadable(Exception):
    """A case cannot be read; the text says why."""


@dataclass(frozen=True, slots=True)
class Case:
    """A case and its truth.

    Attributes:
        name: its folder below the one that was given.
        category: of the fault.
        cause: of the fault, by the words of the data set.
        object: that is faulty, as `app/NAME`, `node/NAME` or `namespace/NAME`.
        snapshot: what the recorded answers show.
    """

    name: str
    category: str
    cause: str
    object: str
    snapshot: Snapshot


def find_cases(folder: Path) -> Sequence[Path]:
    """Returns the folders of the cases below a folder.

    Raises:
        NoCases: there is no such folder, or no case in it.
    """
    if not folder.is_dir():
        raise NoCases(f"there is no folder {folder}; give the folder of a checkout of Cloud-OpsBench")
    found = sorted(path.parent for path in folder.rglob(ANSWERS))
    if not found:
        raise NoCases(f"no {ANSWERS} is below {folder}; give the folder of a checkout of Cloud-OpsBench")
    return found


def read_case(folder: Path, top: Path) -> Case:
    """Reads a case.

    Args:
        folder: of the case.
        top: the folder that was given.

    Raises:
        Unreadable: a file is missing, too large, no JSON, or of another form.
    """
    name = str(folder.relative_to(top))
    metadata, answers = _json(folder / TRUTH), _json(folder / ANSWERS)
    truth = metadata.get("result")
    fields = ("fault_taxonomy", "root_cause", "fault_object")
    if not isinstance(truth, Mapping) or not all(isinstance(truth.get(one), str) for one in fields):
        raise Unreadable(f"{TRUTH} has no result with {', '.join(fields)}")
    category = truth["fault_taxonomy"].lower().removesuffix("_fault")
    namespace = str(metadata.get("namespace") or "default")
    return Case(name, category, truth["root_cause"], truth["fault_object"], _snapshot(answers, namespace))


def _json(path: Path) -> Mapping[str, Any]:
    try:
        if path.stat().st_size > MOST_BYTES:
            raise Unreadable(f"{path.name} is larger than {MOST_BYTES // 1024 // 1024} MiB")
        found = json.loads(path.read_bytes())
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise Unreadable(f"{path.name} is no JSON") from None
    if not isinstance(found, dict):
        raise Unreadable(f"{path.name} is no JSON object")
    return found


def _snapshot(answers: Mapping[str, Any], namespace: str) -> Snapshot:
    read_at = _read_at(answers)
    listed: set[tuple[str, str]] = set()
    of_tables: list[Mapping[str, Any]] = []
    of_texts: list[Mapping[str, Any]] = []
    for tool, arguments, text in _calls(answers):
        kind, name = KINDS.get(str(arguments.get("resource_type")), ""), str(arguments.get("name") or "")
        place = str(arguments.get("namespace") or namespace)
        if tool == "GetAppYAML":
            of_tables += [one for one in _documents(text) if one.get("kind") in KINDS.values()]
        elif tool == "GetResources" and kind and not name and not text.startswith("Error"):
            listed.add((kind, "" if kind in CLUSTER else place))
            of_tables += [named(kind, place, row["NAME"]) for row in parse_table(text) if "NAME" in row]
        elif tool == "DescribeResource" and kind and name and text.startswith("Name:"):
            of_texts += described(kind, place, name, parse_description(text), read_at)
    return Snapshot(read_at, [*of_tables, *of_texts], frozenset(listed))


def _read_at(answers: Mapping[str, Any]) -> datetime:
    try:
        return datetime.fromisoformat(str(answers.get("collection_timestamp"))).replace(tzinfo=UTC)
    except ValueError:
        return datetime(2000, 1, 1, tzinfo=UTC)  # ages of Events are counted from it, so any time will do


def _calls(answers: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any], str]]:
    for key, text in answers.items():
        tool, colon, given = key.partition(":")
        if not colon or not isinstance(text, str):
            continue
        try:
            arguments = json.loads(given)
        except ValueError:
            continue
        if isinstance(arguments, dict):
            yield tool, arguments, text


def _documents(text: str) -> Iterator[Mapping[str, Any]]:
    try:
        found = list(yaml.load_all(text[:MOST_CHARACTERS], _Loader))
    except (yaml.YAMLError, ValueError, RecursionError):
        return
    yield from (one for one in found if isinstance(one, dict) and isinstance(one.get("metadata"), dict))
