"""Reads and validates the cases from YAML files, so that a typing error is not a difference.

The cases of one file share a namespace, `drift-FILE`, and run in order: one makes what the next one reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "cases"
_DETAILS = ("values", "shape", "status")
_ID = re.compile(r"[a-z0-9-]+")


class CaseError(Exception):
    """A case cannot be read as written; the message names it."""


@dataclass(frozen=True)
class Case:
    """One question.

    Args:
        id: FILE/NAME, for the explanations and the report.
        kubectl: arguments, split at spaces outside of single quotes. With `stdin` they get `-f -`.
        call: METHOD PATH. `$NS` and saved words are filled in, here and in everything else.
        stdin: an object, or several, for kubectl.
        body: what a call sends as JSON; `raw` is text to send as it is.
        headers: of a call, over the usual ones.
        user: asks as this one instead of the administrator, by certificate.
        save: words for later cases: name to dotted path in the answer's JSON, or `.` for all of the output.
        until: repeat until the output matches this, for what happens a moment later.
        detail: compare all values, only keys and types (`shape`), or only exit code or status and reason (`status`).
        forget: dotted paths (prefixes) that are not compared.
        managed: compare managedFields too, which otherwise would say the same thing again in every answer.
    """

    id: str
    kubectl: str = ""
    call: str = ""
    stdin: Any = None
    body: Any = None
    raw: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    save: Mapping[str, str] = field(default_factory=dict)
    until: str = ""
    detail: str = "values"
    forget: Sequence[str] = ()
    managed: bool = False

    @property
    def group(self) -> str:
        """The file that it is from."""
        return self.id.partition("/")[0]


def load(folder: Path = FOLDER) -> list[Case]:
    """All cases, files in the order of their names.

    Raises:
        CaseError: an unknown field, a name used twice, a case that asks nothing or two things.
    """
    cases = [case for path in sorted(folder.glob("*.yaml")) for case in _read(path)]
    seen: set[str] = set()
    for case in cases:
        if case.id in seen:
            raise CaseError(f"{case.id}: this name is used twice")
        seen.add(case.id)
    return cases


def _read(path: Path) -> Iterator[Case]:
    known = {each.name for each in fields(Case)}
    document = yaml.safe_load(path.read_text())
    for written in document["cases"]:
        where = f"{path.stem}/{written.get('id', '')}"
        if unknown := set(written) - known:
            raise CaseError(f"{where}: unknown field {', '.join(sorted(unknown))}")
        if not _ID.fullmatch(written.get("id", "")):
            raise CaseError(f"{where}: id must be small letters, digits and hyphens")
        case = Case(**{**written, "id": where})
        if bool(case.kubectl) == bool(case.call):
            raise CaseError(f"{where}: give either kubectl or call")
        if case.detail not in _DETAILS:
            raise CaseError(f"{where}: detail must be one of {', '.join(_DETAILS)}")
        yield case
