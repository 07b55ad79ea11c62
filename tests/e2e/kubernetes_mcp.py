"""The npm package `kubernetes-mcp-server`: a tool server that people really use, as a program of this machine.

Its platform package holds one static Go program, so npm only fetches it and no node is needed to run it. It is kept in
the user's cache, one folder a version, which appears there by one rename; what was fetched is used only when it is what
this file says it is.
"""

import asyncio
import base64
import contextlib
import hashlib
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from programs import end
from tarsy_dev.apiserver.binaries import architecture, cache_root
from tarsy_dev.apiserver.process import free_port

VERSION = "0.0.67"
SHA512 = {"amd64": "VW5wRdetbJmfCHkCEBA808bgJJRL1GCfkSZ17J+SJJuNiKcvjibcGR32272WKtwd3Td4ZVrOPomExKgCNE16jA=="}
_FETCH_SECONDS = 300.0
_START_SECONDS = 20.0


class NotToBeHad(Exception):
    """The program is not on this machine and cannot be fetched; the text says why."""


def program() -> Path:
    """The program, fetched first if it is not there.

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
        raise NotToBeHad("kubernetes-mcp-server: it comes by npm, and there is none on this machine")
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
    assert found == sha512, f"{packed.name} is not what it was when it was pinned: sha512-{found}"
    target.mkdir(mode=0o755)
    with tarfile.open(packed) as archive:
        member = archive.extractfile(f"package/bin/{name}")
        assert member is not None
        with member, (target / name).open("wb") as out:
            shutil.copyfileobj(member, out)
    (target / name).chmod(0o755)


def arguments(kubeconfig: Path) -> Sequence[str]:
    """Reads what is in a cluster and changes nothing; not its own configuration, which has credentials in clear."""
    return ("--kubeconfig", str(kubeconfig), "--read-only", "--toolsets", "core", "--disable-multi-cluster")


@contextlib.asynccontextmanager
async def serving(kubeconfig: Path, folder: Path) -> AsyncIterator[str]:
    """Runs it by HTTP on loopback; its address, without a path."""
    port = free_port()
    log = folder / "kubernetes-mcp-server.log"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            str(program()),
            *arguments(kubeconfig),
            *("--port", str(port), "--bind-address", "127.0.0.1"),
            env={"HOME": str(folder), "PATH": "/usr/bin:/bin"},
            stdout=output,
            stderr=output,
        )
    try:
        async with asyncio.timeout(_START_SECONDS):
            while not await _listens(port):
                assert process.returncode is None, log.read_text(errors="replace")[-1000:]
                await asyncio.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        await end(process, 5)


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
