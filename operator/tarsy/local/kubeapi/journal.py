"""What `--keep` means: every commit is a line appended to a file, and the file is written anew at each start.

A line is `[group, plural, namespace, name, object or null]`; the last line of a place counts. A line cut short by a
crash is the last one and is dropped.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import BinaryIO

import orjson

from tarsy.local.kubeapi.objects import Obj
from tarsy.local.kubeapi.store import Event, Place, Store


class JournalInUse(Exception):
    """Another server writes this file."""


class Journal:
    """One file, held open and locked between `open` and `close`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: BinaryIO | None = None

    def open(self, store: Store) -> None:
        """Fill the store with what the file has, then write down what is committed from now on.

        Raises:
            JournalInUse: another process has it open.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = handle = self._path.open("ab+")
        self._path.chmod(0o600)  # Secrets are in it
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise JournalInUse(f"another API server keeps its objects in {self._path}: stop it first") from None
        handle.seek(0)
        kept = _read(handle)
        handle.seek(0)
        handle.truncate()
        for (key, namespace, name), obj in kept.items():
            store.restore(key, obj)
            handle.write(orjson.dumps([*key, namespace, name, obj]) + b"\n")
        handle.flush()
        store.listen(None, self._write)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, event: Event) -> None:
        if self._file is None:
            return
        meta = event.obj["metadata"]
        obj = None if event.type == "DELETED" else event.obj
        self._file.write(orjson.dumps([*event.key, meta.get("namespace") or "", meta["name"], obj]) + b"\n")
        self._file.flush()


def _read(handle: BinaryIO) -> dict[Place, Obj]:
    kept: dict[Place, Obj] = {}
    for line in handle:
        try:
            group, plural, namespace, name, obj = orjson.loads(line)
        except orjson.JSONDecodeError:
            break
        if obj is None:
            kept.pop(((group, plural), namespace, name), None)
        else:
            kept[(group, plural), namespace, name] = obj
    return kept
