"""Turns folders in the format of agentskills.io into manifests (`tarsy skills import DIR`).

The files are outside text: they are bounded before they are read, symbolic links are refused, and nothing in them is
run. Decision: either all folders become manifests, or none does and every error is printed, so that a pipe into
`kubectl apply` applies no half of them.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from tarsy.app.strict_yaml import StrictLoader
from tarsy.resources.meta import API_VERSION
from tarsy.resources.parse import InvalidResource, parse_object
from tarsy.resources.v1alpha1.skill import SKILL_TOOL

SKILL_FILE: Final = "SKILL.md"
MAX_SKILL_FILE: Final = 131_072
"""Maximum bytes of a SKILL.md: its text may have 64 KiB."""

MOST_FOLDERS: Final = 1_000
DEEPEST_FOLDER: Final = 6
_KEYS: Final = {
    "name": "name",
    "description": "description",
    "license": "license",
    "compatibility": "compatibility",
    "metadata": "metadata",
    "allowed-tools": "allowedTools",
}
_FRONTMATTER = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_TOOL = re.compile(r"[^\s,()]+(?:\([^)]*\))?")
_MCP = re.compile(r"mcp__([a-z0-9-]+)__(.+)")


class SkillProblem(Exception):
    """A sentence about a SKILL.md: where, what, and what to do."""


class _Plain(StrictLoader):
    """A loader without aliases, which unfold to any size."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.events.AliasEvent):
            raise yaml.constructor.ConstructorError(
                None,
                None,
                "aliases are not read; write the value out",
                self.peek_event().start_mark,  # type: ignore[no-untyped-call]
            )
        return super().compose_node(parent, index)


class _Manifest(yaml.SafeDumper):
    """Writes texts of several lines as blocks."""


def _block(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Manifest.add_representer(str, _block)


@dataclass(slots=True)
class ImportedSkills:
    """Manifests by name, the errors of files, and notes on what was left out."""

    manifests: dict[str, dict[str, Any]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def import_skills(top: Path, *, namespace: str | None, without_tools: bool) -> int:
    """Prints the manifests of all skills below a folder; returns the exit status.

    Args:
        top: a folder with SKILL.md, or with such folders.
        namespace: of the manifests; None: they have none.
        without_tools: whether allowed-tools is left out.

    Returns:
        0: all were written. 1: none was, and the errors are on standard error.
    """
    found = read_skill_folders(top, namespace=namespace, without_tools=without_tools)
    for line in found.errors or found.notes:
        print(line, file=sys.stderr)
    if found.errors:
        return 1
    documents = [found.manifests[name] for name in sorted(found.manifests)]
    yaml.dump_all(
        documents, sys.stdout, Dumper=_Manifest, sort_keys=False, allow_unicode=True, width=120, explicit_start=True
    )
    return 0


def read_skill_folders(top: Path, *, namespace: str | None, without_tools: bool) -> ImportedSkills:
    """Reads all skills below a folder.

    Args:
        top: as for `import_skills`.
        namespace: as for `import_skills`.
        without_tools: as for `import_skills`.
    """
    found = ImportedSkills()
    try:
        folders = list(_folders(top, 0))
    except SkillProblem as problem:
        found.errors.append(str(problem))
        return found
    if not folders:
        found.errors.append(f"{top}: holds no {SKILL_FILE}; name a folder of a skill, or one with such folders")
    for folder in folders:
        try:
            name, spec = _spec(folder, without_tools=without_tools)
        except SkillProblem as problem:
            found.errors += str(problem).splitlines()
            continue
        if name in found.manifests:
            found.errors.append(f"{folder / SKILL_FILE}: name: another folder has a skill {name} too; rename one")
            continue
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        found.manifests[name] = {"apiVersion": API_VERSION, "kind": "Skill", "metadata": metadata, "spec": spec}
        found.errors += _faults(folder, found.manifests[name])
        others = sum(len(files) for _, _, files in os.walk(folder)) - 1
        if others:
            found.notes.append(f"{folder}: {others} other files are not imported; agents cannot read or run them")
    return found


def _folders(path: Path, depth: int) -> Iterator[Path]:
    try:
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError as error:
        raise SkillProblem(f"{path}: cannot be read ({error.strerror}); name a folder") from None
    if any(entry.name == SKILL_FILE for entry in entries):
        yield path
        return
    if depth == DEEPEST_FOLDER:
        return
    count = 0
    for entry in entries:
        if not entry.is_dir(follow_symlinks=False) or entry.name.startswith("."):
            continue
        for one in _folders(Path(entry.path), depth + 1):
            count += 1
            if count > MOST_FOLDERS:
                raise SkillProblem(f"{path}: has more than {MOST_FOLDERS:,} skills; import a part of them")
            yield one


def _spec(folder: Path, *, without_tools: bool) -> tuple[str, dict[str, Any]]:
    """Returns name and spec of the skill in a folder.

    Raises:
        SkillProblem: it cannot be read; one line for each error.
    """
    file = folder / SKILL_FILE
    head, body = _parts(file, _text(file))
    unknown = [key for key in head if key not in _KEYS]
    errors = [f"{file}: {key}: is no field of the format; remove it, or move it under metadata" for key in unknown]
    name = head.get("name")
    if not isinstance(name, str):
        errors.append(f"{file}: name: must be a text; add `name: {folder.resolve().name}`")
    elif name != folder.resolve().name:
        errors.append(f"{file}: name: is {name}, and the folder {folder.resolve().name}; give both the same name")
    if "description" not in head:
        errors.append(f"{file}: description: is missing; say what the skill does, and when to use it")
    spec = {_KEYS[key]: value for key, value in head.items() if key in _KEYS and key not in ("name", "allowed-tools")}
    if "allowed-tools" in head and not without_tools:
        tools, wrong = _tools(head["allowed-tools"])
        errors += [f"{file}: allowed-tools: {sentence}" for sentence in wrong]
        spec["allowedTools"] = tools
    if errors:
        raise SkillProblem("\n".join(errors))
    return str(name), {**spec, "body": body}


def _text(file: Path) -> str:
    try:
        with os.fdopen(os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as opened:
            data = opened.read(MAX_SKILL_FILE + 1)
    except OSError as error:
        raise SkillProblem(f"{file}: cannot be read ({error.strerror}); it must be a file, and no link") from None
    if len(data) > MAX_SKILL_FILE:
        raise SkillProblem(f"{file}: has more than {MAX_SKILL_FILE:,} bytes; split it into several skills")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise SkillProblem(f"{file}: byte {error.start} is no UTF-8; save it as UTF-8") from None


def _parts(file: Path, text: str) -> tuple[Mapping[str, Any], str]:
    found = _FRONTMATTER.match(text)
    if found is None:
        raise SkillProblem(f"{file}: line 1: must begin with frontmatter: a line ---, name and description, a line ---")
    try:
        head = yaml.load(found[1], _Plain)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark, why = getattr(error, "problem_mark", None), getattr(error, "problem", None)
        where = f"line {mark.line + 2}: " if mark is not None else ""
        raise SkillProblem(f"{file}: {where}{why or 'the frontmatter is no YAML'}; correct it") from None
    if not isinstance(head, dict) or not all(isinstance(key, str) for key in head):
        raise SkillProblem(f"{file}: line 1: the frontmatter must be fields, such as `name: x`; correct it")
    return head, text[found.end() :].strip() + "\n"


def _tools(value: Any) -> tuple[list[str], list[str]]:
    """Returns the tools of a list as `SERVER.TOOL`, and a sentence for each that is none."""
    if isinstance(value, str):
        listed = _TOOL.findall(value)
    elif isinstance(value, list) and all(isinstance(one, str) for one in value):
        listed = value
    else:
        return [], ["must be names of tools with blanks between them"]
    tools, wrong = [], []
    for name in listed:
        found = _MCP.fullmatch(name)
        tool = f"{found[1]}.{found[2]}" if found else name
        if re.fullmatch(SKILL_TOOL, tool):
            tools.append(tool)
        else:
            wrong.append(
                f"{name[:100]} is no tool of an MCPServer; write SERVER.TOOL, remove it, or import with "
                "--without-allowed-tools"
            )
    return list(dict.fromkeys(tools)), wrong


def _faults(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Returns what the kind says of a manifest, with the fields of the format."""
    try:
        parse_object(manifest)
    except InvalidResource as invalid:
        return [f"{folder / SKILL_FILE}: {_of_format(str(error))}" for error in invalid.errors]
    return []


def _of_format(error: str) -> str:
    for ours, theirs in (("spec.allowedTools", "allowed-tools"), ("metadata.name", "name"), ("spec.", "")):
        if error.startswith(ours):
            return theirs + error[len(ours) :]
    return error
