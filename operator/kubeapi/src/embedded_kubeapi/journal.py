"""Implements `--keep`: appends each commit to a file as a line, and compacts the file at each start.

A line is `[group, plural, namespace, name, object or null]`; the last line of a place counts. A line cut short by a
crash is the last one and is dropped. The new file takes the old one's name when it is whole, so a crash while starting
loses nothing either; the lock is a file beside it, because a lock would go with the old file.
"""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import BinaryIO

import orjson

from embedded_kubeapi.objects import Obj
from embedded_kubeapi.store import Event, Place, Store


class JournalInUse(Exception):
    """Another server has the file open."""


class Journal:
    """An append-only file, open between `open` and `close`; `FILE.lock` is locked meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock: BinaryIO | None = None
        self._file: BinaryIO | None = None

    def open(self, store: Store) -> None:
        """Loads the file into the store, then appends every commit.

        Raises:
            JournalInUse: another process has it open.
        """
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = self._beside("lock").open("ab")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise JournalInUse(f"another API server keeps its objects in {self._path}: stop it first") from None
        kept = _read(self._path)
        new = self._beside("new")
        new.unlink(missing_ok=True)
        new.touch(mode=0o600)  # Secrets are in it
        self._file = handle = new.open("ab")
        for (key, namespace, name), obj in kept.items():
            store.restore(key, obj)
            handle.write(orjson.dumps([*key, namespace, name, obj]) + b"\n")
        handle.flush()
        new.replace(self._path)
        store.listen(None, self._write)

    def close(self) -> None:
        """Closes and unlocks the file."""
        for handle in (self._file, self._lock):
            if handle is not None:
                handle.close()
        self._file = self._lock = None

    def _beside(self, suffix: str) -> Path:
        return self._path.with_name(f"{self._path.name}.{suffix}")

    def _write(self, event: Event) -> None:
        if self._file is None:
            return
        meta = event.obj["metadata"]
        obj = None if event.type == "DELETED" else event.obj
        self._file.write(orjson.dumps([*event.key, meta.get("namespace") or "", meta["name"], obj]) + b"\n")
        self._file.flush()


def _read(path: Path) -> dict[Place, Obj]:
    kept: dict[Place, Obj] = {}
    for line in path.read_bytes().splitlines() if path.exists() else ():
        try:
            group, plural, namespace, name, obj = orjson.loads(line)
        except orjson.JSONDecodeError:
            break
        if obj is None:
            kept.pop(((group, plural), namespace, name), None)
        else:
            kept[(group, plural), namespace, name] = obj
    return kept
