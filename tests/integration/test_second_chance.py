"""`hack/test-all.sh`: a few tests that failed beside others are run again alone, and anything worse is not."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import second_chance

SCRIPT = Path(__file__).parents[2] / "hack" / "test-all.sh"
CONFTEST = """
import cost
import second_chance
import workers

def pytest_addoption(parser):
    for plugin in (cost, second_chance, workers):
        plugin.add_option(parser)

def pytest_configure(config):
    for plugin in (cost, second_chance, workers):
        plugin.configure(config)
"""
runs = pytest.mark.heavy("each is a few runs of pytest")
HEADLINE = "failed beside others; run again alone"
FIRST_TIME = """
import pathlib

def fails_once(name):
    ran = pathlib.Path(name)
    there = ran.exists()
    ran.touch()
    assert there
"""


@dataclass
class Ended:
    """How it ended."""

    status: int
    output: str

    @property
    def headline(self) -> str:
        """The line that says how many are run again, if any are."""
        return next((line for line in self.output.splitlines() if HEADLINE in line), "")

    @property
    def closing(self) -> str:
        return self.output.splitlines()[-1]


def run(folder: Path, tests: str, *, in_parallel: str = "--workers 0") -> Ended:
    """Runs the script on one file of tests."""
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "first_time.py").write_text(FIRST_TIME)
    (folder / "test_it.py").write_text(f"import os\nimport pytest\nfrom first_time import fails_once\n{tests}")
    environment = {
        "PATH": os.environ["PATH"],
        "PYTHONPATH": f"{Path(second_chance.__file__).parent}:{folder}",
        "PYTEST": f"{sys.executable} -m pytest --disable-plugin-autoload -p no:cacheprovider -q",
        "IN_PARALLEL": in_parallel,
    }
    command = ["bash", str(SCRIPT)]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=200)
    return Ended(done.returncode, (done.stdout + done.stderr).strip())


def failing(count: int) -> str:
    return f"@pytest.mark.parametrize('n', range({count}))\ndef test_n(n):\n    fails_once(f'ran-{{n}}')\n"


def test_what_passes_is_run_once(tmp_path: Path) -> None:
    ended = run(tmp_path, "def test_a(): pass\n")
    assert (ended.status, ended.headline) == (0, "")


def test_a_test_that_fails_once_and_a_fixture_too_are_told_and_run_again_and_nothing_else_is(tmp_path: Path) -> None:
    tests = (
        "@pytest.fixture\ndef broken():\n    fails_once('fixture')\n"
        "def test_fixture(broken): pass\n"
        "@pytest.mark.parametrize('text', ['a b', 'c::d[0]'])\ndef test_text(text): fails_once(text[0])\n"
        "def test_fine(): fails_once('fine') if os.path.exists('fine') else open('fine', 'w').close()\n"
    )
    ended = run(tmp_path, tests)
    assert ended.status == 0, ended.output
    assert ended.headline.startswith("== 3 failed")
    told = ended.output.partition(HEADLINE)[2].splitlines()[1:4]
    names = ["test_it.py::test_fixture", "test_it.py::test_text[a b]", "test_it.py::test_text[c::d[0]]"]
    assert [line.strip() for line in told] == names
    assert ended.closing.startswith("3 passed")


@runs
def test_a_test_that_fails_again_fails_the_run(tmp_path: Path) -> None:
    ended = run(tmp_path, "def test_never(): assert False\n" + failing(1))
    assert (ended.status, ended.headline.split()[1]) == (1, "2")
    assert ended.closing.startswith("1 failed, 1 passed")


@runs
@pytest.mark.parametrize(("count", "again"), [(second_chance.MOST, True), (second_chance.MOST + 1, False)])
def test_so_many_that_something_is_broken_are_not_run_again(tmp_path: Path, count: int, again: bool) -> None:
    ended = run(tmp_path, failing(count))
    assert (ended.status, bool(ended.headline)) == ((0, True) if again else (1, False)), ended.output


@runs
def test_a_file_that_cannot_be_collected_is_the_end(tmp_path: Path) -> None:
    (tmp_path / "test_beside.py").write_text("import no_such_module\n")
    for in_parallel in ("--workers 0", "--workers 1 --continue-on-collection-errors"):
        ended = run(tmp_path, failing(1), in_parallel=in_parallel)
        assert ended.status != 0 and not ended.headline, ended.output


@runs
def test_a_worker_that_died_and_a_run_that_was_interrupted_are_the_end(tmp_path: Path) -> None:
    died = run(tmp_path, "def test_death(): os._exit(1)\n" + failing(1), in_parallel="--workers 1")
    assert died.status == 1 and not died.headline, died.output
    interrupted = run(tmp_path, "def test_z():\n    raise KeyboardInterrupt\n" + failing(1))
    assert interrupted.status == 2 and not interrupted.headline, interrupted.output
