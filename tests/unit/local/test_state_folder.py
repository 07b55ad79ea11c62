"""Tests temporary folders of API servers: removed with their owner, or later if the owner was killed."""

import fcntl
import os
from pathlib import Path

import pytest

from tarsy_dev.apiserver.state import StateFolder, remove_abandoned

AN_HOUR_AGO = 1.0


def folder(parent: Path, name: str) -> Path:
    path = parent / name
    path.mkdir()
    (path / "owner.lock").touch()
    os.utime(path, (AN_HOUR_AGO, AN_HOUR_AGO))
    return path


def test_folder_of_a_killed_owner_is_removed(tmp_path: Path) -> None:
    abandoned = folder(tmp_path, "tarsy-kubernetes-a")
    remove_abandoned(tmp_path)
    assert not abandoned.exists()


def test_folder_whose_owner_lives_is_kept(tmp_path: Path) -> None:
    kept = folder(tmp_path, "tarsy-kubernetes-a")
    with (kept / "owner.lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        remove_abandoned(tmp_path)
        assert kept.exists()


def test_new_folder_without_a_lock_yet_and_links_and_strangers_are_kept(tmp_path: Path) -> None:
    (tmp_path / "tarsy-kubernetes-new").mkdir()
    target = folder(tmp_path, "home")
    (tmp_path / "tarsy-kubernetes-link").symlink_to(target)
    remove_abandoned(tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"tarsy-kubernetes-new", "home", "tarsy-kubernetes-link"}


def test_temporary_folder_goes_on_close_and_a_given_one_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    temporary, given = StateFolder(None), StateFolder(tmp_path / "given")
    for state in (temporary, given):
        assert state.path.stat().st_mode & 0o077 == 0
        state.close()
    assert not temporary.path.exists()
    assert given.path.exists()


def test_folder_in_use_is_refused(tmp_path: Path) -> None:
    first = StateFolder(tmp_path / "given")
    with pytest.raises(BlockingIOError):
        StateFolder(tmp_path / "given")
    first.close()
    StateFolder(tmp_path / "given").close()
