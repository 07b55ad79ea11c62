"""Folders of databases that killed test runs leave in memory."""

import os
from pathlib import Path

from integration.databases import PREFIX, remove_abandoned


def test_folders_of_killed_runs_are_removed_and_no_others(tmp_path: Path) -> None:
    folders = {name: tmp_path / f"{PREFIX}{name}" for name in ("running", "killed", "old", "starting")}
    for folder in folders.values():
        (folder / "data").mkdir(parents=True)
    (folders["running"] / "data/postmaster.pid").write_text(f"{os.getpid()}\n/data\n")
    (folders["killed"] / "data/postmaster.pid").write_text("99999999\n/data\n")
    os.utime(folders["old"], (0, 0))
    (tmp_path / "another").mkdir()
    remove_abandoned(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["another", f"{PREFIX}running", f"{PREFIX}starting"]
