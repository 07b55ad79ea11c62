"""Gets the npm package `kubernetes-mcp-server`, a tool server that people really use, as a program of this machine.

Its platform package holds one static Go program, so npm only fetches it and no node is needed to run it. It is kept in
the user's cache, one folder a version, which appears there by one rename; what was fetched is used only when its digest
is the pinned one.
"""

import base64
import contextlib
import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from tarsy_dev.apiserver.binaries import architecture, cache_root
from tarsy_dev.apiserver.errors import LocalKubernetesError

VERSION = "0.0.67"
SHA512 = {"amd64": "VW5wRdetbJmfCHkCEBA808bgJJRL1GCfkSZ17J+SJJuNiKcvjibcGR32272WKtwd3Td4ZVrOPomExKgCNE16jA=="}
_FETCH_SECONDS = 300.0


class NotToBeHad(LocalKubernetesError):
    """The program is not on this machine and cannot be fetched; the text says why."""


def program() -> Path:
    """Returns the program, fetched first if it is not there.

    Raises:
        NotToBeHad: there is no such program for this machine, no npm, or no registry.
    """
    arch = architecture()
    name = f"kubernetes-mcp-server-linux-{arch}"
    kept = cache_root().parent / "kubernetes-mcp-server" / f"{VERSION}-{arch}"
    if (kept / name).is_file():
        return kept / name
    if arch not in SHA512:
        raise NotToBeHad(f"kubernetes-mcp-server: no release for {arch} is pinned")
    npm = shutil.which("npm")
    if npm is None:
        raise NotToBeHad(
            "kubernetes-mcp-server: it comes by npm, and there is none on this machine; install node and npm"
        )
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=kept.parent) as folder:
        command = [npm, "pack", f"{name}@{VERSION}", "--silent", "--pack-destination", folder]
        try:
            subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=_FETCH_SECONDS)
        except (OSError, subprocess.SubprocessError) as error:
            raise NotToBeHad(f"kubernetes-mcp-server: npm could not fetch it ({type(error).__name__})") from error
        _unpack(Path(folder) / f"{name}-{VERSION}.tgz", SHA512[arch], name, Path(folder) / "whole")
        with contextlib.suppress(OSError):  # another run was faster
            (Path(folder) / "whole").rename(kept)
    return kept / name


def _unpack(packed: Path, sha512: str, name: str, target: Path) -> None:
    found = base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
    if found != sha512:
        raise NotToBeHad(f"{packed.name} is not what it was when it was pinned: sha512-{found}")
    target.mkdir(mode=0o755)
    with tarfile.open(packed) as archive:
        member = archive.extractfile(f"package/bin/{name}")
        if member is None:
            raise NotToBeHad(f"{packed.name} contains no program")
        with member, (target / name).open("wb") as out:
            shutil.copyfileobj(member, out)
    (target / name).chmod(0o755)
