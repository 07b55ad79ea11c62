"""Checks and builds a release (`make release`): `python -m hack.release check|build`.

Decision: it pushes nothing and signs nothing: it makes files, and their sums. Who may publish them is decided where
they are published.

With IMAGE=registry/name@sha256:... in the environment the rendered manifests name that image, by its digest; without,
they name the image as the tree does, and the closing line says so. With RELEASE_URL=https://... the manifest for krew
names the archive of the kubectl plugin there; without, krew needs `--archive`.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from hack import krew
from hack.chart.packing import pack
from hack.components import CHECKOUT, components, direct
from hack.sbom import LICENCES, sbom, version

OWN_IMAGE: Final = "tarsy-operator"
_IMAGE: Final = re.compile(r"^[a-z0-9][a-z0-9./:_-]*@sha256:[0-9a-f]{64}$")
_NAMED: Final = re.compile(rf"(\bimage: ){OWN_IMAGE}(:\S+)?$", re.MULTILINE)


def problems(root: Path, wanted: str, image: str | None, changed: Sequence[str], tags: Sequence[str]) -> list[str]:
    """Why `root` cannot be released as version `wanted`, one sentence each, with the remedy; nothing when it can.

    Args:
        root: the checkout.
        wanted: the version, as pyproject.toml has it.
        image: what IMAGE is set to; None or empty when it is not.
        changed: files of the tree that are not as they were committed.
        tags: those of the commit.
    """
    return [
        *_of_git(wanted, changed, tags),
        *_of_versions(root, wanted),
        *(
            [f"IMAGE={image} names no digest; set it to registry/name@sha256:..., as `docker push` prints it"]
            if image and not _IMAGE.match(image)
            else []
        ),
    ]


def with_image(manifest: str, image: str | None) -> str:
    """A rendered manifest whose containers of this project are of `image`; as it was when that is None or empty."""
    return _NAMED.sub(lambda found: found[1] + image, manifest) if image else manifest


def sums(files: Iterable[Path]) -> str:
    """The lines of SHA256SUMS, as `sha256sum --check` reads them, sorted by name."""
    by_name = sorted(files, key=lambda path: path.name)
    return "".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in by_name)


def versions(lock: str) -> str:
    """Returns the pins of a lock file without their hashes."""
    return "".join(f"{pin}\n" for pin in re.findall(r"^([\w.-]+==[^\s;\\]+)", lock, re.MULTILINE))


def build(out: Path, image: str | None) -> None:
    """Makes everything in `out`, which is emptied first; those of manifests, charts and bundle must have been made."""
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    epoch = _git(CHECKOUT, "log", "-1", "--format=%ct")
    # The formats are not chosen, so the wheel is made from the sdist, and setuptools is the one that is locked.
    # Its version only: with hashes in a constraint pip refuses `setuptools>=77` of pyproject.toml, which is no pin.
    with tempfile.TemporaryDirectory() as folder:
        pins = Path(folder, "constraints.txt")
        pins.write_text(versions((CHECKOUT / "requirements-build.lock").read_text("utf-8")), encoding="utf-8")
        environment = {**os.environ, "SOURCE_DATE_EPOCH": epoch, "PIP_CONSTRAINT": str(pins)}
        command = [sys.executable, "-m", "build", "--outdir", str(out), str(CHECKOUT)]
        subprocess.run(command, check=True, env=environment)
    for path in sorted((CHECKOUT / "build" / "manifests").glob("*.yaml")):
        (out / path.name).write_text(with_image(path.read_text(encoding="utf-8"), image), encoding="utf-8")
    for path in sorted((CHECKOUT / "build" / "charts").glob("*.tgz")):
        shutil.copy(path, out / path.name)
    pack(CHECKOUT / "build" / "bundle", out / f"tarsy-olm-bundle-{version()}.tgz")
    (wheel,) = out.glob("*.whl")
    plugin = krew.pack_plugin(wheel, version(), out / f"tarsy-kubectl-plugin-{version()}.tar.gz")
    krew.write(plugin, version(), os.environ.get("RELEASE_URL"), out / f"{krew.NAME}.yaml")
    found = components()
    bill = sbom(found, version(), direct(found), int(epoch))
    (out / "sbom.cdx.json").write_text(json.dumps(bill, indent=2) + "\n", encoding="utf-8")
    for path in (CHECKOUT / "LICENSE", LICENCES):
        shutil.copy(path, out / path.name)
    (out / "SHA256SUMS").write_text(sums(out.iterdir()), encoding="utf-8")


def _of_git(wanted: str, changed: Sequence[str], tags: Sequence[str]) -> list[str]:
    found = []
    if changed:
        found.append(f"the tree is not clean: commit or remove {', '.join(changed[:5])}")
    if f"v{wanted}" not in tags:
        here = ", ".join(tags) or "no tag"
        found.append(f"this commit has {here}, not v{wanted}; tag it (git tag v{wanted}), or change the version")
    return found


def _of_versions(root: Path, wanted: str) -> list[str]:
    found = []
    if f"ARG VERSION={wanted}\n" not in (root / "Dockerfile").read_text(encoding="utf-8"):
        found.append(f"Dockerfile: ARG VERSION is not {wanted}; set it")
    if not re.search(
        rf"^## \[{re.escape(wanted)}\]", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE
    ):
        found.append(f"CHANGELOG.md has no heading ## [{wanted}]; give what is under [Unreleased] that one")
    for path in sorted((root / "manifests").rglob("*.yaml")):
        others = {tag for _, tag in _NAMED.findall(path.read_text(encoding="utf-8"))} - {f":{wanted}"}
        found += [f"{path.relative_to(root)}: image {OWN_IMAGE}{tag} is not of version {wanted}" for tag in others]
    return found


def _git(root: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.rstrip()


def main(arguments: Sequence[str]) -> int:
    """`check` or `build`; the exit status."""
    image, wanted = os.environ.get("IMAGE"), version()
    match list(arguments):
        case ["check"]:
            changed = [line[3:] for line in _git(CHECKOUT, "status", "--porcelain").splitlines()]
            tags = _git(CHECKOUT, "tag", "--points-at", "HEAD").split()
            found = problems(CHECKOUT, wanted, image, changed, tags)
            for sentence in found:
                print(f"release: {sentence}", file=sys.stderr)
            return 1 if found else 0
        case ["build"]:
            out = CHECKOUT / "build" / "release"
            build(out, image)
            print(f"{out.relative_to(CHECKOUT)} has release {wanted}:\n{(out / 'SHA256SUMS').read_text()}", end="")
            if not image:
                print(
                    f"Its manifests name the image {OWN_IMAGE}:{wanted}; with IMAGE=registry/name@sha256:... that one."
                )
            return 0
        case _:
            print("usage: python -m hack.release check|build", file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
