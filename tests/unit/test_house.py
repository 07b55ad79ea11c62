"""The rules of the house that no linter of ours checks (DESIGN section 2, STYLE)."""

import ast
import tokenize
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
TARSY = CHECKOUT / "operator" / "tarsy"
LONGEST = 500


def _own_files() -> list[Path]:
    """The Python files of the product; what a link leads to is found at its own place."""
    return sorted(p for root in ("operator", "controllers") for p in (CHECKOUT / root).rglob("*.py"))


def _packages() -> list[Path]:
    linked = [path for path in TARSY.iterdir() if path.is_symlink()]
    folders = [TARSY, *(path for root in (TARSY, *linked) for path in root.rglob("*") if path.is_dir())]
    return sorted({folder for folder in folders if any(folder.glob("*.py"))} | {TARSY / "controllers"})


def _docstring(path: Path) -> str:
    """What a module opens with, where that is a string. By tokens: parsing a whole tree nests as deep as its code."""
    beside = (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING)
    with path.open("rb") as file:
        first = next(token for token in tokenize.tokenize(file.readline) if token.type not in beside)
    return str(ast.literal_eval(first.string)).strip() if first.type == tokenize.STRING else ""


def _name(path: Path) -> str:
    return str(path.relative_to(CHECKOUT))


def test_operator_folder_is_no_package_so_it_never_shadows_the_standard_library() -> None:
    assert not (CHECKOUT / "operator" / "__init__.py").exists()


def test_links_into_the_package_lead_to_the_top_level_folders() -> None:
    links = {path.name: str(path.readlink()) for path in TARSY.iterdir() if path.is_symlink()}
    assert links == {"controllers": "../../controllers", "manifests": "../../manifests"}


@pytest.mark.parametrize("package", _packages(), ids=_name)
def test_package_says_what_it_is_for(package: Path) -> None:
    init = package / "__init__.py"
    assert init.exists(), f"{_name(package)} has modules and no __init__.py"
    assert _docstring(init), f"{_name(init)} has no docstring"


@pytest.mark.parametrize("path", [p for p in _own_files() if p.name != "__init__.py"], ids=_name)
def test_module_says_what_it_is_for(path: Path) -> None:
    assert _docstring(path), f"{_name(path)} has no docstring"


def test_no_file_is_too_long_to_be_read() -> None:
    lengths = {_name(path): len(path.read_text().splitlines()) for path in _own_files()}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST} == {}


def test_lock_holds_no_address_and_a_hash_for_every_package() -> None:
    lines = (CHECKOUT / "requirements.lock").read_text().splitlines()
    assert [line for line in lines if "://" in line or line.lstrip().startswith(("-i", "--index", "--find"))] == []
    packages = [number for number, line in enumerate(lines) if line and not line.startswith((" ", "#"))]
    assert packages
    assert [lines[n] for n in packages if "--hash=sha256:" not in lines[n] + lines[n + 1]] == []
