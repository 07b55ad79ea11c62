"""manifests/README.md is true: what it names is there, and its YAML is what it says."""

import re

import pytest
import yaml

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


@pytest.mark.parametrize("path", PATHS)
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
    rendered = dict(re.findall(r"kubectl kustomize (\S+) >build/manifests/(\S+)", recipe))
    assert set(rendered.values()) == set(
        re.findall(r"\b[a-z-]+\.yaml", TEXT.partition("`make manifests`")[2].partition("Your own image")[0])
    )
    assert all((ROOT / folder / "kustomization.yaml").is_file() for folder in rendered)
