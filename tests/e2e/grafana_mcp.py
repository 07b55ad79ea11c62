"""The PyPI package `mcp-grafana`: Grafana's own tool server, as a program of this machine.

Its wheel holds one static Go program. It is fetched once and kept in the user's cache, where it appears by one rename.
It is used only when it is what this file says it is.
"""

import hashlib
import shutil
import subprocess
import tempfile
import zipfile
from pathlib import Path

from e2e.kubernetes_mcp import NotToBeHad
from tarsy_dev.apiserver.binaries import architecture, cache_root

VERSION = "2.1.1"
WHEELS = {"amd64": ("manylinux_2_17_x86_64", "4d60689f2fd97aae6cc6c9fa061c277dbc7d2279517562f0d8f6cca2e6cd3404")}
"""Platform of the wheel, and its SHA-256."""
_FETCH_SECONDS = 300.0


def grafana_program() -> Path:
    """The program, fetched first if it is not there.

    Raises:
        NotToBeHad: there is no such program for this machine, no pip, or no registry.
    """
    arch = architecture()
    kept = cache_root().parent / "mcp-grafana" / f"{VERSION}-{arch}"
    if (kept / "mcp-grafana").is_file():
        return kept / "mcp-grafana"
    if arch not in WHEELS:
        raise NotToBeHad(f"mcp-grafana: no release for {arch} is pinned")
    pip = shutil.which("pip") or shutil.which("pip3")
    if pip is None:
        raise NotToBeHad("mcp-grafana: it comes by pip, and there is none on this machine")
    platform, sha256 = WHEELS[arch]
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=kept.parent) as folder:
        command = [pip, "download", "--no-deps", "--only-binary=:all:", "--quiet", "--platform", platform]
        try:
            subprocess.run(
                [*command, "--dest", folder, f"mcp-grafana=={VERSION}"],
                check=True,
                capture_output=True,
                timeout=_FETCH_SECONDS,
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise NotToBeHad(f"mcp-grafana: pip could not fetch it ({type(error).__name__})") from error
        (wheel,) = Path(folder).glob("*.whl")
        found = hashlib.sha256(wheel.read_bytes()).hexdigest()
        assert found == sha256, f"{wheel.name} is not what it was when it was pinned: {found}"
        whole = Path(folder) / "whole"
        whole.mkdir(mode=0o755)
        with zipfile.ZipFile(wheel) as archive, (whole / "mcp-grafana").open("wb") as out:
            out.write(archive.read("mcp_grafana/bin/mcp-grafana"))
        (whole / "mcp-grafana").chmod(0o755)
        if not kept.exists():
            whole.rename(kept)
    return kept / "mcp-grafana"
