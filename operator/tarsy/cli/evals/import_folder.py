"""Reads the files of a folder that someone else wrote, within bounds (`tarsy eval import FORMAT DIR`).

A benchmark is outside text, as a cassette is. Its files are bounded before they are read, symbolic links are refused
because they lead out of the folder, aliases in YAML because they unfold to any size.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import yaml

from tarsy.app.strict_yaml import StrictLoader
from tarsy.evals.cassette import is_nested_deeper
from tarsy.evals.imports.source import ImportProblem

MAX_JSON: Final = 64 << 20
"""Maximum size of a JSON file in bytes."""
MAX_YAML: Final = 1 << 20
MAX_TEXT: Final = 4 << 20
MAX_TABLE: Final = 1 << 30
"""Maximum size of a file of tab-separated values, which is read row by row."""
MAX_ROW: Final = 4 << 20
MAX_FILES: Final = 100_000
"""Maximum number of files that are looked at."""
MAX_DEPTH: Final = 8
"""Maximum depth of folders."""
_DEEPEST_JSON = 100
_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,200}")


class TooDeep(ValueError):
    """Data that is nested deeper than anything that is read."""


@dataclass(frozen=True)
class ForeignFolder:
    """A folder within the imported one (`tarsy.evals.imports.source.CaseFolder`)."""

    top: Path
    path: Path

    @cached_property
    def names(self) -> Sequence[str]:
        """Names of its files; those one folder below with that folder's name (`alerts/alerts_1.json`)."""
        found: list[str] = []
        for entry in _entries(self.path):
            if entry.is_file(follow_symlinks=False):
                found.append(entry.name)
            elif entry.is_dir(follow_symlinks=False):
                found += [f"{entry.name}/{one.name}" for one in _entries(Path(entry.path)) if one.is_file()]
            if len(found) > MAX_FILES:
                raise ImportProblem(f"{self.path}: has more than {MAX_FILES:,} files; import a part of it")
        return sorted(found)

    def text(self, name: str) -> str:
        """Returns a file as text; bytes that are no UTF-8 are replaced."""
        return self._bytes(name, MAX_TEXT).decode("utf-8", errors="replace")

    def json(self, name: str) -> Mapping[str, Any]:
        """Returns a file that is a JSON object."""
        data = self._bytes(name, MAX_JSON)
        try:
            found = json.loads(data, parse_constant=_no_number)
            _check_depth(found)
        except TooDeep as error:
            raise ImportProblem(f"{self.path / name}: {error}; make it flatter") from None
        except (ValueError, RecursionError):
            raise ImportProblem(f"{self.path / name}: is no JSON; copy the file again") from None
        return self._mapping(name, found)

    def yaml(self, name: str) -> Mapping[str, Any]:
        """Returns a file that is a YAML mapping."""
        data = self._bytes(name, MAX_YAML)
        try:
            found = yaml.load(data.decode("utf-8"), _PlainLoader)
            _check_depth(found)
        except (yaml.YAMLError, RecursionError, ValueError) as error:
            mark, why = getattr(error, "problem_mark", None), getattr(error, "problem", None)
            where = f"line {mark.line + 1}: " if mark is not None else ""
            raise ImportProblem(
                f"{self.path / name}: {where}{why or 'it cannot be read as YAML'}; correct the file"
            ) from None
        return self._mapping(name, found)

    def rows(self, name: str) -> Iterator[Mapping[str, str]]:
        """Yields the rows of tab-separated values; quotes around a value are removed, a line break ends a row."""
        path = self._checked(name, MAX_TABLE)
        with path.open("rb") as file:
            columns: list[str] = []
            number = 0
            while line := file.readline(MAX_ROW + 1):
                number += 1
                if len(line) > MAX_ROW:
                    raise ImportProblem(f"{path}, line {number}: has more than {MAX_ROW:,} bytes; shorten it")
                cells = [_cell(cell) for cell in line.decode("utf-8", errors="replace").rstrip("\r\n").split("\t")]
                if not columns:
                    columns = cells
                elif len(cells) == len(columns):
                    yield dict(zip(columns, cells, strict=True))

    def beside(self, name: str) -> ForeignFolder:
        """Returns a folder beside this one."""
        found = self.path.parent / name
        inside = self.path != self.top and _FOLDER.fullmatch(name) is not None
        if not inside or found.is_symlink() or not found.is_dir():
            raise ImportProblem(
                f"{self.path}: the folder {name[:100]!r} that it names is not beside it in {self.top}; import the "
                "folder that contains both"
            )
        return ForeignFolder(self.top, found)

    def wrong(self, name: str, field: str, remedy: str) -> ImportProblem:
        """Returns the error of a field of a file."""
        return ImportProblem(f"{self.path / name}: {field}: {remedy}")

    def _bytes(self, name: str, most: int) -> bytes:
        path = self._checked(name, most)
        try:
            return path.read_bytes()
        except OSError as error:
            raise ImportProblem(f"{path}: cannot be read: {error.strerror}") from None

    def _checked(self, name: str, most: int) -> Path:
        if name not in self.names:
            raise ImportProblem(f"{self.path / name}: there is no such file; copy the case (links are not followed)")
        path = self.path / name
        size = path.stat().st_size
        if size > most:
            raise ImportProblem(f"{path}: has {size:,} bytes; at most {most:,} are read. Leave this case out")
        return path

    def _mapping(self, name: str, found: object) -> Mapping[str, Any]:
        if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
            raise ImportProblem(f"{self.path / name}: must be a mapping with texts as keys; copy the file again")
        return found


def marked_folders(top: Path, pattern: str) -> Iterator[tuple[ForeignFolder, str]]:
    """Yields the folders of cases, with the file that makes each one.

    Args:
        top: the imported folder.
        pattern: of the file.

    Raises:
        ImportProblem: there are too many files.
    """
    seen = 0
    for folder, below, files in os.walk(top):
        path = Path(folder)
        seen += len(files)
        if seen > MAX_FILES:
            raise ImportProblem(f"{top}: has more than {MAX_FILES:,} files; import a part of it")
        deep = len(path.relative_to(top).parts) >= MAX_DEPTH
        below[:] = [] if deep else sorted(one for one in below if not one.startswith("."))
        for file in sorted(files):
            if Path(file).match(pattern):
                yield ForeignFolder(top, path), file


def _entries(path: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(path) as found:
            return [entry for entry in found if not entry.is_symlink()]
    except OSError as error:
        raise ImportProblem(f"{path}: cannot be read: {error.strerror}") from None


def _cell(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] == '"'
    return text[1:-1].replace('""', '"') if quoted else text


def _no_number(text: str) -> None:
    raise ValueError(text)


def _check_depth(value: object) -> None:
    if is_nested_deeper(value, _DEEPEST_JSON):
        raise TooDeep(f"is nested deeper than {_DEEPEST_JSON} levels")


class _PlainLoader(StrictLoader):
    """A loader that refuses aliases."""

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.constructor.ConstructorError(None, None, "aliases are not read; write the value out", mark)
        return super().compose_node(parent, index)
