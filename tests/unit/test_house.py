"""Checks the rules of the repository that no linter checks: its layout, the length of files, names, the lock file."""

import ast
from collections import defaultdict
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
TARSY = CHECKOUT / "operator" / "tarsy"
LONGEST = 430
"""Lines of a file. Longer ones are split by subject."""

SHARED_NAMES_PERCENT = 4
"""Public names that two modules may define, of all. Readers search for a name and must find one thing."""


def _own_files() -> list[Path]:
    """The Python files of the product; what a link leads to is found at its own place."""
    return sorted(p for root in ("operator", "controllers") for p in (CHECKOUT / root).rglob("*.py"))


def _name(path: Path) -> str:
    return str(path.relative_to(CHECKOUT))


def _definitions(path: Path) -> set[str]:
    """The public classes, functions and constants that a module defines at its top level."""
    found: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.AnnAssign(target=ast.Name(id=name)):
                found.add(name)
            case ast.Assign(targets=targets):
                found.update(target.id for target in targets if isinstance(target, ast.Name))
    return {name for name in found if not name.startswith("_")}


def test_operator_folder_is_no_package_so_it_never_shadows_the_standard_library() -> None:
    assert not (CHECKOUT / "operator" / "__init__.py").exists()


def test_links_into_the_package_lead_to_the_top_level_folders() -> None:
    links = {path.name: str(path.readlink()) for path in TARSY.iterdir() if path.is_symlink()}
    assert links == {"controllers": "../../controllers", "manifests": "../../manifests"}


def test_no_file_is_too_long_to_be_read() -> None:
    lengths = {_name(path): len(path.read_text().splitlines()) for path in _own_files()}
    assert {name: lines for name, lines in lengths.items() if lines > LONGEST} == {}


def test_few_public_names_are_defined_in_two_modules() -> None:
    product = [p for p in _own_files() if p.is_relative_to(TARSY) or p.is_relative_to(CHECKOUT / "controllers")]
    modules: defaultdict[str, list[str]] = defaultdict(list)
    for path in product:
        for name in _definitions(path):
            modules[name].append(_name(path))
    shared = {name: paths for name, paths in sorted(modules.items()) if len(paths) > 1}
    percent = 100 * len(shared) / len(modules)
    told = "\n".join(f"{name}: {', '.join(paths)}" for name, paths in shared.items())
    assert len(modules) > 1000, "the product is not where this test looks"
    assert percent < SHARED_NAMES_PERCENT, f"{percent:.1f} % of {len(modules)} public names:\n{told}"


def test_lock_holds_no_address_and_a_hash_for_every_package() -> None:
    lines = (CHECKOUT / "requirements.lock").read_text().splitlines()
    assert [line for line in lines if "://" in line or line.lstrip().startswith(("-i", "--index", "--find"))] == []
    packages = [number for number, line in enumerate(lines) if line and not line.startswith((" ", "#"))]
    assert packages
    assert [lines[n] for n in packages if "--hash=sha256:" not in lines[n] + lines[n + 1]] == []
