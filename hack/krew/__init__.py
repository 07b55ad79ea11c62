"""Packs the kubectl plugin for krew, and writes its manifest.

The archive has the wheel of the release, the locked requirements and a launcher, which makes an environment for them at
its first use: the plugin is Python, so one archive serves Linux and macOS on every processor.
"""

import gzip
import hashlib
import io
import re
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from hack.components import CHECKOUT

NAME: Final = "tarsy"
PROGRAM: Final = "kubectl-tarsy"
_HERE: Final = Path(__file__).parent
_SEMVER: Final = re.compile(r"^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$")
_SELECTABLE: Final = {"os", "arch"}


def pack_plugin(wheel: Path, version: str, out: Path) -> Path:
    """Writes the archive of the plugin; equal wheels give equal bytes.

    Args:
        wheel: of the release.
        version: of the release.
        out: the archive, a .tar.gz.
    """
    files = {
        PROGRAM: ((_HERE / PROGRAM).read_bytes(), 0o755),
        "LICENSE": ((CHECKOUT / "LICENSE").read_bytes(), 0o644),
        "VERSION": (f"{version}\n".encode(), 0o644),
        "requirements.lock": ((CHECKOUT / "requirements-run.lock").read_bytes(), 0o644),
        wheel.name: (wheel.read_bytes(), 0o644),
    }
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, (data, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(data), mode
            archive.addfile(entry, io.BytesIO(data))
    out.write_bytes(gzip.compress(packed.getvalue(), mtime=0))
    return out


def manifest(archive: Path, version: str, base_url: str | None) -> dict[str, Any]:
    """Returns the manifest of the plugin.

    Args:
        archive: of the plugin.
        version: of the release.
        base_url: where the files of the release are published; None or empty: the manifest is for `--archive`.
    """
    uri = f"{base_url.rstrip('/')}/{archive.name}" if base_url else archive.name
    return {
        "apiVersion": "krew.googlecontainertools.github.com/v1alpha2",
        "kind": "Plugin",
        "metadata": {"name": NAME},
        "spec": {
            "version": f"v{version}",
            "shortDescription": "Investigate alerts with AI agents",
            "description": "Submits alerts, follows investigations, asks about them and shows their evidence.\n"
            "The cluster needs the TARSy operator.\n",
            "caveats": "Needs Python 3.11 or newer. The first call installs the plugin's packages.\n",
            "platforms": [
                {
                    "selector": {"matchExpressions": [{"key": "os", "operator": "In", "values": ["darwin", "linux"]}]},
                    "uri": uri,
                    "sha256": hashlib.sha256(archive.read_bytes()).hexdigest(),
                    "files": [{"from": "*", "to": "."}],
                    "bin": PROGRAM,
                }
            ],
        },
    }


def problems(found: Mapping[str, Any]) -> Iterator[str]:
    """Yields what krew would refuse in a manifest, a sentence each."""
    spec, name = found.get("spec") or {}, (found.get("metadata") or {}).get("name") or ""
    if found.get("apiVersion") != "krew.googlecontainertools.github.com/v1alpha2":
        yield "apiVersion: must be krew.googlecontainertools.github.com/v1alpha2"
    if found.get("kind") != "Plugin":
        yield "kind: must be Plugin"
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]*", name) or name.startswith("kubectl-"):
        yield "metadata.name: must be lower-case letters, digits and hyphens, without kubectl- in front"
    if not _SEMVER.match(spec.get("version") or ""):
        yield "spec.version: must be a semantic version with v in front"
    short = spec.get("shortDescription") or ""
    if not 0 < len(short) <= 50 or "\n" in short:
        yield "spec.shortDescription: must be one line of at most 50 characters"
    platforms = spec.get("platforms") or []
    if not platforms:
        yield "spec.platforms: must name at least one"
    for place, platform in enumerate(platforms):
        yield from (f"spec.platforms[{place}].{problem}" for problem in _problems_of_platform(platform))


def _problems_of_platform(platform: Mapping[str, Any]) -> Iterator[str]:
    if not str(platform.get("uri") or "").endswith((".tar.gz", ".zip")):
        yield "uri: must be a .tar.gz or a .zip"
    if not re.fullmatch(r"[0-9a-f]{64}", platform.get("sha256") or ""):
        yield "sha256: must be 64 lower-case hexadecimal digits"
    program = platform.get("bin") or ""
    if not program or program.startswith("/") or ".." in program.split("/"):
        yield "bin: must be a path within the archive"
    files = platform.get("files")
    if files is not None and (not files or not all(one.get("from") and one.get("to") for one in files)):
        yield "files: must have from and to, or be left out"
    selector = platform.get("selector") or {}
    keys = set(selector.get("matchLabels") or {}) | {one["key"] for one in selector.get("matchExpressions") or ()}
    if not keys or not keys <= _SELECTABLE:
        yield "selector: must select by os and arch"


def write(archive: Path, version: str, base_url: str | None, out: Path) -> None:
    """Writes the manifest, in the form in which krew reads it.

    Raises:
        ValueError: krew would refuse it.
    """
    made = manifest(archive, version, base_url)
    if found := list(problems(made)):
        raise ValueError("; ".join(found))
    out.write_text(yaml.safe_dump(made, sort_keys=False), encoding="utf-8")
