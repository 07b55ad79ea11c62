"""The archive of the Headlamp plugin, and what Artifact Hub lists of it."""

import hashlib
import json
import tarfile
import tomllib
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hack.components import CHECKOUT
from hack.headlamp import PLUGIN, listing, packed

MOMENT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    """A built plugin."""
    folder = tmp_path / "plugin"
    (folder / "dist").mkdir(parents=True)
    (folder / "dist" / "main.js").write_text("program")
    (folder / "package.json").write_text((PLUGIN / "package.json").read_text("utf-8"))
    return folder


def test_the_archive_has_one_folder_of_the_plugins_name(plugin: Path, tmp_path: Path) -> None:
    archive = packed(plugin, tmp_path / "out")
    with tarfile.open(archive) as found:
        assert sorted(found.getnames()) == ["tarsy/main.js", "tarsy/package.json"]
    first = archive.read_bytes()
    assert packed(plugin, tmp_path / "out").read_bytes() == first


def test_artifact_hub_gets_address_and_sum_of_the_archive(plugin: Path, tmp_path: Path) -> None:
    archive = packed(plugin, tmp_path / "out")
    found = listing(plugin, archive, "https://example.com/tarsy.tar.gz", MOMENT)
    needed = {"version", "name", "displayName", "createdAt", "description", "license", "category", "provider"}
    assert set(found) == needed | {"annotations"} and all(found.values())
    assert found["createdAt"] == "2026-01-02T03:04:05Z"
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    assert found["annotations"]["headlamp/plugin/archive-checksum"] == f"SHA256:{digest}"
    with pytest.raises(ValueError, match="--url=http://"):
        listing(plugin, archive, "http://example.com/tarsy.tar.gz", MOMENT)


def test_a_plugin_that_is_not_built_is_not_packed(tmp_path: Path, plugin: Path) -> None:
    (plugin / "dist" / "main.js").unlink()
    with pytest.raises(FileNotFoundError, match=r"main\.js"):
        packed(plugin, tmp_path / "out")


def test_the_plugin_has_the_version_of_the_product_and_its_lock_is_its_own() -> None:
    product = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    about = json.loads((PLUGIN / "package.json").read_text("utf-8"))
    lock = json.loads((PLUGIN / "package-lock.json").read_text("utf-8"))
    assert about["version"] == lock["version"] == product
    assert lock["packages"][""]["devDependencies"] == about["devDependencies"]
    assert not [name for name, one in lock["packages"].items() if "resolved" in one]
    assert not [
        name for name, one in lock["packages"].items() if name and "integrity" not in one and not one.get("inBundle")
    ]


def test_nothing_of_the_plugin_makes_markup_of_texts() -> None:
    sources = [*(PLUGIN / "src").iterdir(), *(PLUGIN / "host").iterdir()]
    texts = {path.name: path.read_text("utf-8") for path in sources}
    assert len(texts) >= 9
    for word in ("dangerouslySetInnerHTML", "innerHTML", "eval(", "Markdown"):
        assert not [name for name, text in texts.items() if word in text]
