"""Reads a suite of cases from a folder (`tarsy eval run --suite DIR`), with all errors at once.

| file | contents |
|---|---|
| `NAME.jsonl.gz`, `NAME.jsonl` | cassette of the case NAME |
| `NAME.yaml` | its expectation (`expect`, `coverageMin`) and `labels`; without it the known cause is expected |
| `suite.yaml` | settings of the suite (`samples`, `parallelism`, `budget`, `gate`, `judge`); optional |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import yaml
from pydantic import ValidationError

from tarsy.app.strict_yaml import StrictLoader
from tarsy.evals.cases import unknown_questions
from tarsy.evals.cassette import MAX_FILE_BYTES, CassetteError, read_cassette
from tarsy.evals.expectations import COVERAGE_MIN, invalid_facts
from tarsy.evals.suite import CaseFile, Suite, SuiteCase, SuiteFile, expectation_of
from tarsy.resources.schema import Model

SETTINGS = "suite.yaml"
_CASSETTES = (".jsonl.gz", ".jsonl")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_File = TypeVar("_File", bound=Model)


@dataclass(slots=True)
class ReadSuite:
    """The cases that could be read, the settings, and a sentence for each error."""

    suite: Suite
    problems: list[str] = field(default_factory=list)


def read_suite(folder: Path) -> ReadSuite:
    """Reads the cases of a folder.

    Args:
        folder: with cassettes.
    """
    if not folder.is_dir():
        return ReadSuite(Suite(()), [f"{folder}: there is no such folder; name one with cassettes (*.jsonl.gz)"])
    problems: list[str] = []
    settings = SuiteFile()
    if (file := folder / SETTINGS).exists():
        settings = _yaml(file, SuiteFile, problems) or settings
    files = sorted(path for path in folder.iterdir() if path.name.endswith(_CASSETTES))
    cases = [case for path in files if (case := _case(path, problems)) is not None]
    problems += [
        f"{folder / case.name}.yaml: labels: no question of judge.checklist in {SETTINGS} is named {question}; add it, "
        "or correct the label"
        for case in cases
        for question in unknown_questions(settings.judge, case.labels)
    ]
    names = [case.name for case in cases]
    problems += [f"{folder}: {name} has two cassettes; remove one" for name in sorted(_doubled(names))]
    known = {f"{_name(path)}.yaml" for path in files} | {SETTINGS}
    problems += [
        f"{path}: there is no cassette {path.stem}.jsonl.gz beside it; add it, or remove this file"
        for path in sorted(folder.glob("*.yaml"))
        if path.name not in known
    ]
    return ReadSuite(Suite(tuple(cases), settings), problems)


def _case(path: Path, problems: list[str]) -> SuiteCase | None:
    name = _name(path)
    if not _NAME.fullmatch(name):
        problems.append(f"{path}: {name!r} is no name of a case; use at most 63 of a-z, 0-9 and -")
        return None
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise CassetteError(f"{path}: has more than {MAX_FILE_BYTES:,} bytes; record a shorter investigation")
        cassette = read_cassette(path.read_bytes(), str(path))
    except CassetteError as error:
        problems.append(str(error))
        return None
    except OSError as error:
        problems.append(f"{path}: cannot be read: {error.strerror}")
        return None
    beside = path.with_name(f"{name}.yaml")
    if beside.exists():
        found = _yaml(beside, CaseFile, problems)
        if found is None:
            return None
        faults = invalid_facts(found.expect)
        problems += [f"{beside}: expect.facts[{index}].expression: {why}" for index, why in faults]
        least = COVERAGE_MIN if found.coverage_min is None else found.coverage_min
        return None if faults else SuiteCase(name, cassette, found.expect, least, found.labels)
    if cassette.header.truth is None:
        problems.append(f"{path}: has no known cause; write its expectation into {beside.name}")
        return None
    try:
        return SuiteCase(name, cassette, expectation_of(cassette.header.truth))
    except ValidationError as error:
        problems.append(f"{path}: truth: {_first(error)}; write the expectation into {beside.name}")
    except ValueError as error:
        problems.append(f"{path}: {error}; write the expectation into {beside.name}")
    return None


def _yaml(path: Path, model: type[_File], problems: list[str]) -> _File | None:
    try:
        return model.model_validate(yaml.load(path.read_text(encoding="utf-8"), StrictLoader) or {})
    except ValidationError as error:
        problems += [f"{path}: {_where(one['loc'])}: {one['msg']}" for one in error.errors(include_url=False)]
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}: " if mark is not None else ""
        problems.append(f"{path}: {where}{getattr(error, 'problem', None) or 'it cannot be read as YAML'}")
    except OSError as error:
        problems.append(f"{path}: cannot be read: {error.strerror}")
    return None


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    return f"{_where(first['loc'])}: {first['msg']}"


def _where(location: tuple[int | str, ...]) -> str:
    return ".".join(str(part) for part in location) or "the document"


def _name(path: Path) -> str:
    return next(path.name.removesuffix(end) for end in _CASSETTES if path.name.endswith(end))


def _doubled(names: Sequence[str]) -> set[str]:
    return {name for name in names if names.count(name) > 1}
