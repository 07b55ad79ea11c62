"""Checks manifests/README.md: the paths it names exist, and its YAML leads to objects that exist."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from for_each import for_each
from unit.manifests.shipped import MANIFESTS, ROOT

TEXT = (MANIFESTS / "README.md").read_text("utf-8")
PATHS = sorted(
    {
        f"manifests/{path}"
        for path in re.findall(r"`((?:base|components|gitops|library|overlays|samples)(?:/[\w./-]+)?)`", TEXT)
    }
    | set(re.findall(r"\b(?:manifests|hack)/[\w./-]*\w", TEXT.replace("build/manifests", "")))
)
SNIPPETS = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


def test_every_folder_is_told_about() -> None:
    folders = {path.parent.relative_to(ROOT) for path in MANIFESTS.glob("**/kustomization.yaml")}
    assert {str(folder) for folder in folders} <= set(PATHS)


@for_each("path", PATHS)
def test_what_is_named_exists(path: str) -> None:
    assert (ROOT / path).exists()


@pytest.mark.parametrize("text", SNIPPETS, ids=lambda text: text.split("kind: ")[1].split()[0])
def test_a_snippet_is_an_object_that_leads_to_what_exists(text: str) -> None:
    obj = yaml.safe_load(text)
    assert {"apiVersion", "kind"} <= set(obj)
    for path in [*obj.get("resources", ()), *obj.get("components", ())]:
        assert (ROOT / path / "kustomization.yaml").is_file()


def test_what_make_renders_is_what_is_promised() -> None:
    recipe = (ROOT / "Makefile").read_text().partition("\nmanifests:")[2].partition("\n\n")[0]
    rendered = dict(re.findall(r"kubectl kustomize (\S+) >\$\(RENDERED\)/(\S+)", recipe))
    assert set(rendered.values()) == set(
        re.findall(r"\b[a-z-]+\.yaml", TEXT.partition("`make manifests` renders")[2].partition("Your own image")[0])
    )
    assert all((ROOT / folder / "kustomization.yaml").is_file() for folder in rendered)


def _commands(text: str) -> str:
    """The block of commands that pushes an image or names one that was pushed."""
    return next(block for block in text.split("```") if "make manifests IMAGE=" in block and "kubectl apply" in block)


@pytest.mark.parametrize("page", ["README.md", "manifests/README.md"])
def test_what_is_applied_to_a_cluster_was_rendered_with_the_image_that_was_pushed(page: str) -> None:
    commands = _commands((ROOT / page).read_text("utf-8"))
    (image,) = re.findall(r"make manifests IMAGE=(\S+)", commands)
    assert set(re.findall(r"docker push (\S+)", commands)) <= {image}
    assert "apply -k" not in commands and "-k manifests" not in commands
    recipe = (ROOT / "Makefile").read_text()
    for file in re.findall(r"build/manifests/(\S+)", commands):
        assert f">$(RENDERED)/{file.rstrip(':')}" in recipe


@pytest.mark.parametrize(
    "image",
    [
        "registry.example.com:5000/team/tarsy-operator:dev",
        pytest.param(f"r/t@sha256:{'0' * 64}", marks=pytest.mark.heavy("an image by its tag is beside it")),
    ],
)
def test_make_manifests_names_the_image_everywhere(image: str, tmp_path: Path) -> None:
    if shutil.which("kubectl") is None or shutil.which("make") is None:
        pytest.skip("kubectl renders them")
    subprocess.run(
        ["make", "manifests", f"RENDERED={tmp_path}", f"IMAGE={image}"], cwd=ROOT, check=True, capture_output=True
    )
    rendered = [(tmp_path / name).read_text("utf-8") for name in ("install-ha.yaml", "library.yaml")]
    named = [re.findall(r"^ +(?:- )?image: (\S+)$", text, re.MULTILINE) for text in rendered]
    assert named == [[image, image], [image]], "operator and workers; tools"
