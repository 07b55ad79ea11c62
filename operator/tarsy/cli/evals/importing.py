"""Writes the cases of a public benchmark as a suite (`tarsy eval import FORMAT DIR --out DIR`).

Each case becomes a cassette and its expectation, as `tarsy eval run --suite` takes them. A case that cannot be imported
is reported and left out; the others are written.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection
from pathlib import Path

import yaml
from pydantic import ValidationError

from tarsy.cli.evals.import_folder import ForeignFolder, marked_folders
from tarsy.cli.output import printer
from tarsy.evals.cassette import CassetteError, write_cassette
from tarsy.evals.expectations import invalid_facts
from tarsy.evals.imports.formats import FORMATS
from tarsy.evals.imports.source import CaseFormat, ForeignCase, ImportProblem
from tarsy.record.text import clean

MOST_CASES = 5_000
"""Maximum number of cases of one import."""
_NAME_CHARACTERS = 63
_SHOWN = 20


def import_cases(name: str, folder: Path, out: Path, server: str | None = None) -> int:
    """Imports the cases of a folder; returns the exit status: 0 all were written, 1 some or none.

    Args:
        name: of the format.
        folder: with the cases.
        out: folder of the suite; it must be empty or missing.
        server: name of the tool server that the calls belong to; None: that of the format.
    """
    found = FORMATS.get(name)
    if found is None:
        return _refused(f"{name!r} is no format; use {', '.join(FORMATS)}")
    if not folder.is_dir():
        return _refused(f"{folder}: there is no such folder; name one with cases of {found.title}")
    try:
        out.mkdir(parents=True, exist_ok=True)
        if any(out.iterdir()):
            return _refused(f"{out}: is not empty; name another folder for the suite")
        return _import(found, folder, out, server or found.server)
    except ImportProblem as error:
        return _refused(str(error))
    except OSError as error:
        return _refused(f"{error.filename or out}: {error.strerror}")


def _import(found: CaseFormat, folder: Path, out: Path, server: str) -> int:
    written: dict[str, ForeignCase] = {}
    problems: list[str] = []
    for place, file in marked_folders(folder, found.marker):
        if len(written) == MOST_CASES:
            problems.append(f"{folder}: has more than {MOST_CASES:,} cases; import a part of it")
            break
        try:
            case = found.read(place, file, server)
            if case is None:
                continue
            name = _named(place, file, found, written.keys())
            _write(out, name, case, f"{found.title}, {place.path.relative_to(folder) / file}")
            written[name] = case
        except ImportProblem as error:
            problems.append(str(error))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            problems.append(f"{place.path / file}: the case cannot be written: {where}: {first['msg']}; leave it out")
        except (CassetteError, TypeError, UnicodeError) as error:
            why = str(error) if isinstance(error, CassetteError) else "a text has characters that are no Unicode"
            problems.append(f"{place.path / file}: the case cannot be written: {why}; leave it out")
    for problem in problems[:_SHOWN]:
        sys.stderr.write(f"{clean(problem)}\n")
    if len(problems) > _SHOWN:
        sys.stderr.write(f"{len(problems) - _SHOWN} more cases could not be imported.\n")
    if not written and not problems:
        return _refused(f"{folder}: has no case of {found.title} ({found.marker}); name the folder that contains them")
    calls = sum(len(case.cassette.calls) for case in written.values())
    unwritten = sum(any(fact.expression == "false" for fact in case.expect.facts) for case in written.values())
    out_line = f"{out}: {len(written):,} cases of {found.title} with {calls:,} tool calls; {len(problems):,} left out"
    console = printer()
    console.print(clean(out_line), markup=False, soft_wrap=True)
    if unwritten:
        told = "of them fail until you write their expectations: the benchmark has only prose, which cannot be checked"
        console.print(f"{unwritten:,} {told}", markup=False, soft_wrap=True)
    named = f"The tools belong to the MCPServer {server}: name it in the Agent that is measured."
    console.print(clean(named), markup=False, soft_wrap=True)
    return 1 if problems else 0


def _named(place: ForeignFolder, file: str, found: CaseFormat, taken: Collection[str]) -> str:
    parts = place.path.relative_to(place.top).parts
    if "*" in found.marker:
        parts = (*parts, Path(file).stem)
    words = "-".join(parts or (place.top.name,)).lower()
    name = re.sub(r"[^a-z0-9]+", "-", words).strip("-")[-_NAME_CHARACTERS:].strip("-") or "case"
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name[: _NAME_CHARACTERS - 5].rstrip('-')}-{number}"
    return free


def _write(out: Path, name: str, case: ForeignCase, source: str) -> None:
    faults = invalid_facts(case.expect)
    if faults:
        index, why = faults[0]
        raise ImportProblem(f"{source}: its fact {index + 1} cannot be checked: {why}; leave the case out")
    data = write_cassette(case.cassette)
    lines = [f"From {source}", *case.remarks]
    comments = "".join(f"# {' '.join(clean(line).split())}\n" for line in lines)
    expected = case.expect.model_dump(mode="json", by_alias=True, exclude_defaults=True)
    text = yaml.safe_dump({"expect": expected}, sort_keys=False, allow_unicode=True, width=120)
    (out / f"{name}.jsonl.gz").write_bytes(data)
    (out / f"{name}.yaml").write_text(comments + text, encoding="utf-8")


def _refused(sentence: str) -> int:
    sys.stderr.write(f"tarsy: {clean(sentence)}\n")
    return 1
