"""Folders in the format of agentskills.io become manifests, or all their errors are printed."""

from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from tarsy.cli.main import app
from tarsy.cli.objects.skills_import import MAX_SKILL_FILE, read_skill_folders
from tarsy.resources.parse import parse_object

MINIMAL = "---\nname: pods\ndescription: Explains pods.\n---\n# Pods\n\nRead the log.\n"
WHOLE = """---
name: pods
description: >-
  Explains pods. Use it
  for crash loops.
license: Apache-2.0
compatibility: Kubernetes 1.30 or newer
metadata:
  version: "1.2"
allowed-tools: mcp__kubernetes__get_pods kubernetes.get_* prometheus.query
---
Read the log.
"""


def write(top: Path, text: str, name: str = "pods") -> Path:
    folder = top / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "SKILL.md").write_text(text, encoding="utf-8")
    return folder


def read(top: Path, **options: Any) -> Any:
    return read_skill_folders(top, **{"namespace": None, "without_tools": False, **options})


def field(**changes: str) -> str:
    parts = {"name": "pods", "description": "d", **{key.replace("_", "-"): value for key, value in changes.items()}}
    return "---\n" + "".join(f"{key}: {value}\n" for key, value in parts.items()) + "---\ntext\n"


@pytest.mark.parametrize("text", [MINIMAL, MINIMAL.replace("\n", "\r\n"), "\ufeff" + MINIMAL])
def test_a_minimal_skill_becomes_a_manifest(tmp_path: Path, text: str) -> None:
    (tmp_path / "pods").mkdir()
    (tmp_path / "pods" / "SKILL.md").write_bytes(text.encode())

    found = read(tmp_path)

    assert found.errors == []
    spec = {"description": "Explains pods.", "body": "# Pods\n\nRead the log.\n"}
    assert found.manifests["pods"]["spec"] == spec
    assert "namespace" not in found.manifests["pods"]["metadata"]


def test_every_field_of_the_format_is_kept(tmp_path: Path) -> None:
    folder = write(tmp_path, WHOLE)

    found = read(folder, namespace="shop")

    manifest = found.manifests["pods"]
    assert manifest["metadata"] == {"name": "pods", "namespace": "shop"}
    assert manifest["spec"] == {
        "description": "Explains pods. Use it for crash loops.",
        "license": "Apache-2.0",
        "compatibility": "Kubernetes 1.30 or newer",
        "metadata": {"version": "1.2"},
        "allowedTools": ["kubernetes.get_pods", "kubernetes.get_*", "prometheus.query"],
        "body": "Read the log.\n",
    }
    assert parse_object(manifest).metadata.name == "pods"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("# Pods\n", "line 1: must begin with frontmatter"),
        ("---\nname: pods\n", "line 1: must begin with frontmatter"),
        ("---\n- a\n---\nx\n", "line 1: the frontmatter must be fields"),
        ("---\nname: [a\n---\nx\n", "line 3: "),
        ("---\nname: a\nname: b\n---\nx\n", "key name occurs twice"),
        ("---\nname: &a pods\ndescription: *a\n---\nx\n", "aliases are not read"),
        (field(name="nodes"), "name: is nodes, and the folder pods; give both the same name"),
        ("---\ndescription: d\n---\nx\n", "name: must be a text; add `name: pods`"),
        ("---\nname: pods\n---\nx\n", "description: is missing"),
        (field(description='""'), "description: "),
        (field(description="d" * 1025), "description: "),
        (field(compatibility="c" * 501), "compatibility: "),
        (field(model="big"), "model: is no field of the format; remove it, or move it under metadata"),
        (field(allowed_tools="Bash(git:*) kubernetes.get"), "allowed-tools: Bash(git:*) is no tool of an MCPServer"),
        (field(allowed_tools="3"), "allowed-tools: must be names of tools"),
        ("---\nname: pods\ndescription: d\n---\n \n", "body must not be empty"),
        ("---\nname: pods\ndescription: d\n---\n" + "x" * 65_537, "body must have at most 65536 bytes"),
        ("x" * (MAX_SKILL_FILE + 1), f"has more than {MAX_SKILL_FILE:,} bytes"),
    ],
)
def test_an_error_names_file_field_and_remedy(tmp_path: Path, text: str, said: str) -> None:
    folder = write(tmp_path, text)

    (error, *_) = read(tmp_path).errors

    assert error.startswith(f"{folder / 'SKILL.md'}: ") and said in error


@pytest.mark.parametrize(("length", "good"), [(63, True), (64, True), (65, False)])
def test_the_length_of_a_name_is_bounded(tmp_path: Path, length: int, good: bool) -> None:
    write(tmp_path, field(name="a" * length), "a" * length)

    assert (read(tmp_path).errors == []) is good


def test_all_errors_of_all_folders_come_at_once_and_nothing_is_written(tmp_path: Path) -> None:
    write(tmp_path, MINIMAL)
    write(tmp_path, field(name="Nodes", model="x", allowed_tools="Read"), "nodes")
    write(tmp_path, "no frontmatter", "other")

    result = CliRunner().invoke(app, ["skills", "import", str(tmp_path)])

    assert result.exit_code == 1 and result.stdout == ""
    lines = result.stderr.splitlines()
    assert [line.rpartition("SKILL.md: ")[2].partition(":")[0] for line in lines] == [
        "model",
        "name",
        "allowed-tools",
        "line 1",
    ]


def test_manifests_on_standard_output_are_read_back_whole(tmp_path: Path) -> None:
    write(tmp_path, WHOLE)
    write(tmp_path, MINIMAL.replace("pods", "nodes"), "more/nodes")
    (tmp_path / "pods" / "scripts").mkdir()
    (tmp_path / "pods" / "scripts" / "run.sh").write_text("rm -rf /")

    result = CliRunner().invoke(app, ["skills", "import", str(tmp_path), "-n", "shop"])

    assert result.exit_code == 0
    found = [parse_object(one) for one in yaml.safe_load_all(result.stdout)]
    assert [(one.metadata.namespace, one.metadata.name) for one in found] == [("shop", "nodes"), ("shop", "pods")]
    assert "1 other files are not imported" in result.stderr and "rm -rf" not in result.stdout


def test_allowed_tools_may_be_left_out(tmp_path: Path) -> None:
    write(tmp_path, field(allowed_tools="Read Write"))

    assert "allowedTools" not in read(tmp_path, without_tools=True).manifests["pods"]["spec"]


def test_links_are_not_followed(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(MINIMAL)
    folder = tmp_path / "skills" / "pods"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").symlink_to(secret)

    assert "it must be a file, and no link" in read(tmp_path / "skills").errors[0]


def test_a_folder_without_skills_or_that_is_missing_is_an_error(tmp_path: Path) -> None:
    assert "holds no SKILL.md" in read(tmp_path).errors[0]
    assert "name a folder" in read(tmp_path / "nowhere").errors[0]


def test_two_folders_with_one_name_are_an_error(tmp_path: Path) -> None:
    write(tmp_path, MINIMAL, "a/pods")
    write(tmp_path, MINIMAL, "b/pods")

    assert "another folder has a skill pods too" in read(tmp_path).errors[0]
