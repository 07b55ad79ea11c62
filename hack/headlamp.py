"""Packs the Headlamp plugin: `python -m hack.headlamp [--url URL]`; `make headlamp` builds it first.

With the URL that the archive is published at, it also writes the file by which Artifact Hub lists a plugin.
"""

import argparse
import hashlib
import json
import shutil
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml
from hack.chart.packing import pack
from hack.components import CHECKOUT

PLUGIN: Final = CHECKOUT / "operator" / "headlamp"
OUT: Final = CHECKOUT / "build" / "headlamp"


def packed(plugin: Path, out: Path) -> Path:
    """Packs a built plugin as Headlamp expects it: a folder of the plugin's name with its program and package.json.

    Args:
        plugin: folder of the plugin.
        out: folder of the archive.

    Raises:
        FileNotFoundError: the plugin is not built.
    """
    about = json.loads((plugin / "package.json").read_text(encoding="utf-8"))
    folder = out / about["name"]
    shutil.rmtree(out, ignore_errors=True)
    folder.mkdir(parents=True)
    for path in (plugin / "dist" / "main.js", plugin / "package.json"):
        shutil.copy(path, folder / path.name)
    return pack(folder, out / f"{about['name']}-{about['version']}.tar.gz")


def listing(plugin: Path, archive: Path, url: str, moment: datetime) -> dict[str, Any]:
    """Returns what Artifact Hub lists of the plugin.

    Args:
        plugin: folder of the plugin.
        archive: the packed plugin.
        url: that the archive is published at.
        moment: of the release.
    """
    if not url.startswith("https://"):
        raise ValueError(f"--url={url}: give an https address")
    about = json.loads((plugin / "package.json").read_text(encoding="utf-8"))
    return {
        "version": about["version"],
        "name": f"headlamp_{about['name']}",
        "displayName": "TARSy",
        "createdAt": moment.isoformat(timespec="seconds").replace("+00:00", "Z"),
        "description": about["description"],
        "license": about["license"],
        "category": "monitoring-logging",
        "provider": {"name": "TARSy operator authors"},
        "annotations": {
            "headlamp/plugin/archive-url": url,
            "headlamp/plugin/archive-checksum": f"SHA256:{hashlib.sha256(archive.read_bytes()).hexdigest()}",
            "headlamp/plugin/distro-compat": "in-cluster,web,desktop",
        },
    }


def main() -> None:
    """Packs the plugin."""
    parser = argparse.ArgumentParser(prog="python -m hack.headlamp", description=__doc__)
    parser.add_argument("--url", default="", help="https address that the archive is published at")
    options = parser.parse_args()
    archive = packed(PLUGIN, OUT)
    print(archive.relative_to(CHECKOUT))
    if options.url:
        try:
            found = listing(PLUGIN, archive, options.url, datetime.now(UTC))
        except ValueError as error:
            parser.error(str(error))
        path = OUT / "artifacthub-pkg.yml"
        path.write_text(yaml.safe_dump(found, sort_keys=False, width=10_000), encoding="utf-8")
        print(path.relative_to(CHECKOUT))


if __name__ == "__main__":
    main()
