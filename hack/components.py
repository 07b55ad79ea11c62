"""Lists the third-party packages of the image from the lock files: Python packages and parts of the web UI.

Decision: names, versions and hashes are the lock's, licences and dependencies what the installed packages say of
themselves; nothing is asked of a registry, so the same lock gives the same list anywhere. Packages that Linux never
gets (the lock is for every platform) are left out. Debian's packages of the base image are not in here: they are the
base image's own to list.
"""

import base64
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CHECKOUT: Final = Path(__file__).parents[1]
PYTHON_LOCK: Final = CHECKOUT / "requirements-run.lock"
PAGE_LOCK: Final = CHECKOUT / "operator" / "page" / "package-lock.json"
PROJECT: Final = "tarsy-operator"
EXTRAS: Final = frozenset({"", "all"})
# What markers are asked about: the image's interpreter, on the processors that it is built for.
IMAGE: Final = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "python_full_version": "3.13.0",
    "python_version": "3.13",
    "sys_platform": "linux",
}
_PINNED: Final = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^ ;\\]+)(?: ; (?P<marker>[^\\]+?))? *\\?$")
_HASH: Final = re.compile(r"--hash=(sha256):([0-9a-f]{64})")
# What people write for the same licence, as SPDX calls it.
_SPDX: Final = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "isc license": "ISC",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
}
_EXPRESSION: Final = re.compile(r"^[A-Za-z0-9.()+-]+( (AND|OR|WITH) [A-Za-z0-9.()+-]+)*$")
UNSURE: Final = frozenset({"BSD", "BSD License"})
"""Said by packages that do not say which; no SPDX expression."""


class LockError(ValueError):
    """A lock that cannot be read, or does not fit what is installed; the message names the file and the remedy."""


@dataclass(frozen=True)
class Component:
    """One package, as it is locked.

    `hashes` are those of its files that the lock allows: algorithm (as CycloneDX writes it) and hexadecimal digest.
    `licence` is an SPDX expression where the package says one, else its own words; `needs` are purls.
    """

    ecosystem: str
    name: str
    version: str
    licence: str
    hashes: tuple[tuple[str, str], ...] = ()
    needs: tuple[str, ...] = field(default=(), compare=False)

    @property
    def purl(self) -> str:
        """The package's URL (purl)."""
        return f"pkg:{self.ecosystem}/{self.name.replace('@', '%40')}@{self.version}"

    @property
    def spdx(self) -> bool:
        """Whether the licence is an SPDX expression."""
        return bool(_EXPRESSION.match(self.licence)) and self.licence not in UNSURE


def pinned(lock: str) -> Iterator[tuple[str, str, tuple[tuple[str, str], ...]]]:
    """Name, version and hashes of each package of a requirements lock that the image gets.

    Raises:
        LockError: a line is neither a pinned package nor its hash, or a package has no hash.
    """
    for entry in re.sub(r"\\\n\s+(?=--hash)", "", lock).splitlines():
        if not entry.strip() or entry.lstrip().startswith("#"):
            continue
        found = _PINNED.match(entry.split("--hash", 1)[0].strip())
        hashes = tuple(("SHA-256", digest) for _, digest in _HASH.findall(entry))
        if not found or not hashes:
            raise LockError(f"{entry[:80]!r} is no package with version and hashes; make the lock anew: make lock")
        if found["marker"] is None or Marker(found["marker"]).evaluate(dict(IMAGE)):
            yield canonicalize_name(found["name"]), found["version"], hashes


def python_components(lock: str) -> tuple[Component, ...]:
    """The Python packages of a lock, sorted by name.

    Raises:
        LockError: a package is not installed in the version of the lock.
    """
    versions = {name: (version, hashes) for name, version, hashes in pinned(lock)}
    installed = {name: _installed(name, version) for name, (version, _) in versions.items()}
    edges = _edges(installed)
    return tuple(
        Component(
            "pypi",
            name,
            version,
            licence_of(installed[name]),
            hashes,
            tuple(f"pkg:pypi/{other}@{versions[other][0]}" for other in sorted(edges.get(name, ()))),
        )
        for name, (version, hashes) in sorted(versions.items())
    )


def page_components(lock: str) -> tuple[Component, ...]:
    """The npm packages that the built page is made of, out of a package-lock.json: not what only builds or tests it."""
    packages: Mapping[str, Mapping[str, object]] = json.loads(lock)["packages"]
    found: dict[str, Component] = {}
    for path, entry in packages.items():
        if not path or entry.get("dev") or entry.get("optional") or entry.get("link"):
            continue
        algorithm, _, digest = str(entry.get("integrity", "")).partition("-")
        if algorithm != "sha512":
            raise LockError(f"{path} has no sha512 integrity in package-lock.json; make the lock anew")
        hashes = (("SHA-512", base64.b64decode(digest).hex()),)
        licence = str(entry.get("license") or "not said")
        one = Component("npm", path.rpartition("node_modules/")[2], str(entry["version"]), licence, hashes)
        found[one.purl] = one
    return tuple(found[purl] for purl in sorted(found))


def components() -> tuple[Component, ...]:
    """All of both locks of this checkout."""
    page = page_components(PAGE_LOCK.read_text(encoding="utf-8")) if PAGE_LOCK.exists() else ()
    return (*python_components(PYTHON_LOCK.read_text(encoding="utf-8")), *page)


def direct(found: tuple[Component, ...]) -> tuple[str, ...]:
    """The purls of what the project itself asks for."""
    edges = _edges({one.name: _installed(one.name, one.version) for one in found if one.ecosystem == "pypi"})
    return tuple(one.purl for one in found if one.ecosystem == "npm" or one.name in edges[PROJECT])


def licence_of(package: Distribution) -> str:
    """What a package says of its licence, as SPDX says it where that is clear."""
    meta = package.metadata
    if "License-Expression" in meta:
        return meta["License-Expression"]
    told = (meta.get_all("License") or [""])[0].strip().split("\n")[0].strip()
    classifiers = [c.rpartition("::")[2].strip() for c in meta.get_all("Classifier") or () if c.startswith("License")]
    words = [word for word in (told, *classifiers) if word]
    as_spdx = [_SPDX.get(word.lower(), word) for word in words]
    sure = (word for word in as_spdx if _EXPRESSION.match(word) and word not in UNSURE)
    return next(sure, as_spdx[0] if as_spdx else "not said")


def _installed(name: str, version: str) -> Distribution:
    try:
        found = distribution(name)
    except PackageNotFoundError:
        raise LockError(f"{name} of the lock is not installed; run make setup") from None
    if found.version != version:
        raise LockError(f"{name} is installed as {found.version}, locked as {version}; run make setup")
    return found


def _edges(installed: Mapping[str, Distribution]) -> dict[str, set[str]]:
    """Who needs whom, of the packages in `installed` and the project itself, with the extras that are asked for."""
    edges: dict[str, set[str]] = {PROJECT: set()}
    asked = [(PROJECT, extra) for extra in EXTRAS]
    seen = set(asked)
    while asked:
        name, extra = asked.pop()
        for text in _own_needs(extra) if name == PROJECT else installed[name].requires or ():
            wanted = Requirement(text)
            if wanted.marker is not None and not wanted.marker.evaluate({**IMAGE, "extra": extra}):
                continue
            other = canonicalize_name(wanted.name)
            if other != PROJECT and other not in installed:
                raise LockError(f"{name} needs {other}, which the lock has not; make the lock anew: make lock")
            if other != name:
                edges.setdefault(name, set()).add(other)
            new = {(other, part) for part in ("", *wanted.extras)} - seen
            seen |= new
            asked.extend(new)
    return edges


def _own_needs(extra: str) -> tuple[str, ...]:
    """What the project asks for, out of pyproject.toml: what is installed may be of an older one."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return tuple(project["optional-dependencies"][extra] if extra else project["dependencies"])
