"""Bill of materials, licences, release: made of the locks alone, and refusing what does not fit."""

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hack import release
from hack.components import PYTHON_LOCK, Component, LockError, components, direct, page_components, pinned
from hack.sbom import LICENCES, licences, sbom, version

DIGEST = "a" * 64


@pytest.fixture(scope="module")
def found() -> tuple[Component, ...]:
    return components()


@pytest.fixture(scope="module")
def document(found: tuple[Component, ...]) -> dict[str, Any]:
    return sbom(found, version(), direct(found))


def test_every_package_that_linux_gets_is_in_the_bill_with_its_hashes(document: dict[str, Any]) -> None:
    wanted = {(name, version) for name, version, _ in pinned(PYTHON_LOCK.read_text(encoding="utf-8"))}
    listed = {(c["name"], c["version"]) for c in document["components"] if c["purl"].startswith("pkg:pypi/")}
    assert listed == wanted
    assert all(c["hashes"] and c["licenses"] and c["bom-ref"] == c["purl"] for c in document["components"])


def test_nothing_is_in_the_bill_that_nothing_needs(document: dict[str, Any]) -> None:
    needs = {entry["ref"]: entry["dependsOn"] for entry in document["dependencies"]}
    seen = {document["metadata"]["component"]["bom-ref"]}
    todo = list(seen)
    while todo:
        new = set(needs[todo.pop()]) - seen
        seen |= new
        todo.extend(new)
    assert {c["bom-ref"] for c in document["components"]} - seen == set()


def test_the_bill_is_the_same_for_the_same_locks(found: tuple[Component, ...], document: dict[str, Any]) -> None:
    assert sbom(found, version(), direct(found)) == document
    assert sbom(found, "9.9.9", direct(found))["serialNumber"] != document["serialNumber"]
    assert sbom(found, version(), (), epoch=0)["metadata"]["timestamp"] == "1970-01-01T00:00:00Z"


def test_listed_licences_are_those_of_the_locks(found: tuple[Component, ...]) -> None:
    stale = LICENCES.read_text(encoding="utf-8") != licences(found)
    assert not stale, "THIRD_PARTY_LICENSES.md is stale: run make sbom"


def test_every_package_says_a_licence(found: tuple[Component, ...]) -> None:
    assert [one.name for one in found if one.licence == "not said"] == []


@pytest.mark.parametrize(
    ("lock", "names"),
    [
        (f"one==1.0 \\\n    --hash=sha256:{DIGEST}\n", ["one"]),
        (f"Two_Words==2 ; sys_platform != 'win32' \\\n    --hash=sha256:{DIGEST}\n", ["two-words"]),
        (f"three==3 ; sys_platform == 'win32' \\\n    --hash=sha256:{DIGEST}\n", []),
        ("# a comment\n\n", []),
    ],
)
def test_a_lock_is_read_as_linux_installs_it(lock: str, names: list[str]) -> None:
    assert [name for name, _, _ in pinned(lock)] == names


@pytest.mark.parametrize("line", ["one==1.0\n", "one>=1.0 --hash=sha256:" + DIGEST + "\n", "-e .\n"])
def test_a_line_without_version_or_hash_is_refused(line: str) -> None:
    with pytest.raises(LockError, match="make the lock anew"):
        list(pinned(line))


def _page_lock(**entry: Any) -> str:
    integrity = "sha512-" + base64.b64encode(b"\x01" * 64).decode()
    package = {"version": "19.2.0", "license": "MIT", "integrity": integrity, **entry}
    return json.dumps({"packages": {"": {"name": "page"}, "node_modules/@scope/react": package}})


def test_what_the_page_is_made_of_is_listed_and_what_builds_it_is_not() -> None:
    (one,) = page_components(_page_lock())
    assert (one.purl, one.licence) == ("pkg:npm/%40scope/react@19.2.0", "MIT")
    assert one.hashes == (("SHA-512", "01" * 64),)
    assert page_components(_page_lock(dev=True)) == ()


def test_a_package_of_the_page_without_integrity_is_refused() -> None:
    with pytest.raises(LockError, match="integrity"):
        page_components(_page_lock(integrity=""))


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A tree that may be released as 1.2.3."""
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "deployment.yaml").write_text("  image: tarsy-operator:1.2.3\n")
    (tmp_path / "Dockerfile").write_text("ARG VERSION=1.2.3\n")
    (tmp_path / "CHANGELOG.md").write_text("## [Unreleased]\n\n## [1.2.3] - 2026-11-22\n")
    return tmp_path


def test_a_tagged_clean_tree_of_one_version_may_be_released(checkout: Path) -> None:
    assert release.problems(checkout, "1.2.3", None, [], ["v1.2.3"]) == []
    image = f"registry.example.com:5000/tarsy@sha256:{DIGEST}"
    assert release.problems(checkout, "1.2.3", image, [], ["latest", "v1.2.3"]) == []


def test_a_tree_of_another_version_is_told_all_that_does_not_fit(checkout: Path) -> None:
    told = "\n".join(release.problems(checkout, "1.2.4", "tarsy:1.2.4", [], ["v1.2.3"]))
    for words in ("not v1.2.4", "Dockerfile", "## [1.2.4]", "manifests/deployment.yaml", "names no digest"):
        assert words in told


def test_a_tree_that_is_not_clean_is_refused(checkout: Path) -> None:
    (problem,) = release.problems(checkout, "1.2.3", None, ["Dockerfile"], ["v1.2.3"])
    assert "commit or remove Dockerfile" in problem


def test_manifests_name_the_image_that_was_given_and_no_other() -> None:
    rendered = "image: tarsy-operator:0.1.0\n- image: postgres:17\nname: tarsy-operator\n"
    image = f"r.example.com/t@sha256:{DIGEST}"
    assert release.with_image(rendered, image) == f"image: {image}\n- image: postgres:17\nname: tarsy-operator\n"
    assert release.with_image(rendered, None) == rendered


def test_a_build_is_held_to_the_versions_of_a_lock_without_hashes_which_pip_refuses_in_a_constraint() -> None:
    lock = "one==1.2.3 \\\n    --hash=sha256:aa\ntwo-x==4 ; python_version > '3.11' \\\n    --hash=sha256:bb\n"
    assert release.versions(lock) == "one==1.2.3\ntwo-x==4\n"


def test_sums_are_those_that_sha256sum_checks(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"two")
    (tmp_path / "a").write_bytes(b"one")
    lines = [f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in (("a", b"one"), ("b", b"two"))]
    assert release.sums(tmp_path.iterdir()) == "".join(lines)
