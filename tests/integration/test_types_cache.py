"""`hack/mypy.sh`: a new checkout takes over the cache of an earlier one, and only a check that succeeds leaves one."""

import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MYPY = """#!/bin/sh
if [ -f .mypy_cache/seen ]; then cat .mypy_cache/seen; else echo cold; fi
mkdir -p .mypy_cache && echo "warm from $(basename "$PWD")" >.mypy_cache/seen
exit "$STATUS"
"""
"""A mypy that says which cache it found."""


def check(checkout: Path, status: int = 0) -> str:
    """Runs the script in a checkout and returns what mypy said; the script ends as mypy did."""
    program = checkout / ".venv/bin/mypy"
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(MYPY)
    program.chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "XDG_CACHE_HOME": str(_kept(checkout).parents[1]), "STATUS": str(status)}
    done = subprocess.run([ROOT / "hack/mypy.sh"], cwd=checkout, env=environment, capture_output=True, timeout=60)
    assert done.returncode == status, done.stderr
    return done.stdout.decode().strip()


def _kept(checkout: Path) -> Path:
    return checkout.parent / "cache/tarsy/mypy.tar"


def test_a_new_checkout_takes_over_the_cache_of_the_last_one(tmp_path: Path) -> None:
    assert check(tmp_path / "one") == "cold"
    assert check(tmp_path / "two") == "warm from one"
    assert check(tmp_path / "three") == "warm from two"


def test_a_checkout_with_a_cache_uses_its_own_and_leaves_none(tmp_path: Path) -> None:
    check(tmp_path / "one")
    before = _kept(tmp_path / "one").stat()
    assert check(tmp_path / "one") == "warm from one"
    assert _kept(tmp_path / "one").stat() == before


def test_a_check_that_fails_leaves_no_cache_to_others(tmp_path: Path) -> None:
    check(tmp_path / "one", status=1)
    assert not _kept(tmp_path / "one").exists()
    assert check(tmp_path / "two") == "cold"


@pytest.mark.parametrize("content", [b"", b"no archive"], ids=["empty", "broken"])
def test_a_cache_that_cannot_be_read_is_made_anew(tmp_path: Path, content: bytes) -> None:
    kept = _kept(tmp_path / "one")
    kept.parent.mkdir(parents=True)
    kept.write_bytes(content)
    assert check(tmp_path / "one") == "cold"
    assert check(tmp_path / "two") == "warm from one"
    assert list(kept.parent.iterdir()) == [kept]
