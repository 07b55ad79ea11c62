"""`hack/venv.sh`: the first minutes of a checkout, which say what they do."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.lock", "requirements-uv.lock", "requirements-build.lock")
STUB = """#!/bin/sh
case "$*" in
  --version) echo "Python 3.11.0" ;;
  *"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python && cp "$0" .venv/bin/uv ;;
  *) case "$0 $*" in *"$FAILS"*) exit 1 ;; esac ;;
esac
"""


def setup(folder: Path, fails: str) -> subprocess.CompletedProcess[str]:
    """Runs the script with programs that install nothing; those whose command line has `fails` fail."""
    for name in LOCKS:
        shutil.copy(ROOT / name, folder)
    python = folder / "python"
    python.write_text(STUB)
    python.chmod(0o755)
    environment = {"PATH": os.environ["PATH"], "PYTHON": str(python), "FAILS": fails}
    return subprocess.run(
        [ROOT / "hack/venv.sh"], cwd=folder, env=environment, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize(
    ("fails", "steps"),
    [
        (
            "nothing fails",
            ["making .venv", "installing uv", "by hash", "three packages of this checkout", "done"],
        ),
        ("bin/uv", ["making .venv", "installing uv", "packages by hash", "packages with pip", "done"]),
    ],
)
def test_each_step_of_the_setup_is_said_before_it_is_done(tmp_path: Path, fails: str, steps: list[str]) -> None:
    done = setup(tmp_path, fails)
    lines = done.stderr.splitlines()
    assert done.returncode == 0 and (tmp_path / ".venv/ready").exists(), done.stderr
    assert len(lines) == len(steps) and all(line.startswith("setup: ") for line in lines), lines
    assert all(step in line for step, line in zip(steps, lines, strict=True)), lines
    count = sum("==" in line for line in (ROOT / "requirements.lock").read_text().splitlines())
    assert f"{count} packages" in done.stderr


def test_a_setup_that_fails_says_no_done(tmp_path: Path) -> None:
    done = setup(tmp_path, "install")
    assert done.returncode != 0 and "done" not in done.stderr and not (tmp_path / ".venv/ready").exists()
