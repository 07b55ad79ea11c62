"""Downloads the official release binaries, and verifies the SHA-256 checksums of their publishers.

This is the one place where the versions are pinned. The checksum comes from beside the file, over HTTPS, so it guards
against a broken or swapped mirror copy, not against the publisher. Nothing is executed or moved before it matches.
"""

from __future__ import annotations

import hashlib
import http.client
import queue
import re
import shutil
import tarfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from tarsy_dev.apiserver.binaries import architecture
from tarsy_dev.apiserver.errors import AcquireError, ChecksumMismatch
from tarsy_dev.apiserver.progress import BuildProgress

KUBERNETES_VERSION = "v1.34.1"
ETCD_VERSION = "v3.6.4"  # what Kubernetes 1.34 itself is released with
_KUBERNETES_URL = "https://dl.k8s.io/release/{version}/bin/linux/{arch}/{name}"
_ETCD_URL = "https://github.com/etcd-io/etcd/releases/download/{version}/{name}"

_PROBE_SECONDS = 8.0
_READ_SECONDS = 20.0
_DOWNLOAD_SECONDS = 900.0
_CHUNK_BYTES = 1 << 20
_BEAT_SECONDS = 15.0
_SHA256 = re.compile(r"\b[0-9a-f]{64}\b")


class Offline(AcquireError):
    """The release servers do not answer from here."""


def download_release(
    folder: Path, progress: BuildProgress, kubernetes_url: str = _KUBERNETES_URL, etcd_url: str = _ETCD_URL
) -> str:
    """Put kube-apiserver, kubectl and etcd into `folder`; returns the Kubernetes version.

    Args:
        folder: an existing folder.
        progress: where to say what is being done.
        kubernetes_url: where programs are, with the fields version, arch and name; a checksum is at `<url>.sha256`.
        etcd_url: where etcd's archive and SHA256SUMS are, with the fields version and name.

    Raises:
        Offline: the servers cannot be reached; said within seconds.
        ChecksumMismatch: a file differs from its published checksum.
        AcquireError: a download broke off.
    """
    arch = architecture()
    programs = {
        name: kubernetes_url.format(version=KUBERNETES_VERSION, arch=arch, name=name)
        for name in ("kube-apiserver", "kubectl")
    }
    # All checksums first: they are the cheapest question whether there is an Internet at all.
    progress.say(f"asking for the checksums of Kubernetes {KUBERNETES_VERSION} and etcd {ETCD_VERSION}")
    digests = {name: published_digest(_fetch_text(f"{url}.sha256"), name) for name, url in programs.items()}
    archive = f"etcd-{ETCD_VERSION}-linux-{arch}.tar.gz"
    sums = _fetch_text(etcd_url.format(version=ETCD_VERSION, name="SHA256SUMS"))
    archive_digest = published_digest(sums, archive)

    for name, url in programs.items():
        download(url, folder / name, digests[name], progress)
        (folder / name).chmod(0o755)
    packed = folder / archive
    download(etcd_url.format(version=ETCD_VERSION, name=archive), packed, archive_digest, progress)
    with tarfile.open(packed) as tar:
        member = tar.extractfile(f"{archive.removesuffix('.tar.gz')}/etcd")
        if member is None:
            raise AcquireError(f"{archive} holds no program etcd")
        with member, (folder / "etcd").open("wb") as target:
            shutil.copyfileobj(member, target)
    (folder / "etcd").chmod(0o755)
    packed.unlink()
    return KUBERNETES_VERSION


def published_digest(text: str, name: str) -> str:
    """The SHA-256 of `name` in a checksum file: a bare digest, or lines of `digest  name`.

    Raises:
        AcquireError: the file holds no digest for that name.
    """
    lines = [line.split() for line in text.splitlines() if line.strip()]
    for words in lines:
        named = len(words) == 2 and words[1].removeprefix("*") == name
        alone = len(words) == 1 and len(lines) == 1
        if (named or alone) and _SHA256.fullmatch(words[0]):
            return words[0]
    raise AcquireError(f"no SHA-256 for {name} in its published checksum file: {text[:200]!r}")


def download(url: str, target: Path, sha256: str, progress: BuildProgress) -> None:
    """Fetch one file; it is at `target` only if its SHA-256 is the given one.

    Raises:
        ChecksumMismatch: it is another file; what came was deleted.
        AcquireError: the download broke off or took longer than 15 minutes.
    """
    progress.say(f"downloading {target.name}")
    digest, received, last_said = hashlib.sha256(), 0, time.monotonic()
    deadline = last_said + _DOWNLOAD_SECONDS
    part = target.with_name(f"{target.name}.part")
    try:
        with urllib.request.urlopen(url, timeout=_READ_SECONDS) as response, part.open("wb") as output:
            while block := response.read(_CHUNK_BYTES):
                output.write(block)
                digest.update(block)
                received += len(block)
                now = time.monotonic()
                if now > deadline:
                    raise AcquireError(f"{url}: not complete after {_DOWNLOAD_SECONDS:.0f} s")
                if now - last_said >= _BEAT_SECONDS:
                    progress.say(f"downloading {target.name} ... {received >> 20} MiB")
                    last_said = now
        if digest.hexdigest() != sha256:
            raise ChecksumMismatch(
                f"{url}: SHA-256 is {digest.hexdigest()}, its publisher says {sha256}; the file was deleted. "
                "Try again, and look into what lies between here and there if it happens twice"
            )
        part.rename(target)
    except (OSError, http.client.HTTPException) as error:
        raise AcquireError(f"{url}: the download broke off: {error}") from error
    finally:
        part.unlink(missing_ok=True)


def _fetch_text(url: str) -> str:
    """A small text within `_PROBE_SECONDS`, name resolution included (which urllib's own timeout leaves out)."""
    answer: queue.SimpleQueue[str | Exception] = queue.SimpleQueue()

    def ask() -> None:
        try:
            with urllib.request.urlopen(url, timeout=_PROBE_SECONDS) as response:
                answer.put(response.read(_CHUNK_BYTES).decode("ascii", errors="replace"))
        except (OSError, http.client.HTTPException) as error:
            answer.put(error)

    threading.Thread(target=ask, daemon=True, name="checksum").start()
    try:
        result = answer.get(timeout=_PROBE_SECONDS)
    except queue.Empty:
        raise Offline(f"{url} did not answer within {_PROBE_SECONDS:.0f} s") from None
    if isinstance(result, Exception):
        reason = result.reason if isinstance(result, urllib.error.URLError) else result
        raise Offline(f"{url} cannot be read from here: {reason}") from result
    return result
