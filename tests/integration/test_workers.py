"""Tests of the workers (tests/workers.py): reports lose nothing, a file stays together, a death is one failure."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from e2e.person import heed_ctrl_c
from workers import MACHINES, SHARED, groups, servers

pytest_plugins = ["pytester"]
CONFTEST = Path(__file__).parents[1] / "conftest.py"
OUTCOMES = """
    import warnings

    import pytest

    @pytest.fixture
    def broken(): raise RuntimeError("no server")

    @pytest.fixture
    def untidy():
        yield
        raise RuntimeError("left something")

    def test_passes(): pass

    def test_fails():
        print("said before")
        assert False, "is wrong"

    def test_has_no_server(broken): pass

    def test_leaves_something(untidy): pass

    @pytest.mark.skip(reason="not here")
    def test_is_skipped(): pass

    def test_warns():
        warnings.warn("soon no more", FutureWarning)

    @pytest.mark.xfail
    def test_is_known(): assert False

    @pytest.mark.heavy("many times")
    def test_is_left_out(): pass
"""
TOGETHER = """
    import pytest

    RAN = []

    @pytest.mark.parametrize("case", range(5))
    def test_one_process(case): RAN.append(case)

    def test_all_were_here(): assert sorted(RAN) == [0, 1, 2, 3, 4]
"""


DEATHS = """
    import os
    import pytest

    @pytest.fixture(scope="session")
    def server(tmp_path_factory): return tmp_path_factory.mktemp("server")

    @pytest.mark.parametrize("case", range(6))
    def test_case(case, server, tmp_path):
        if case in (2, 5):
            os._exit(7)
"""

FROM_BOTH_ENDS = """
    import os
    import pathlib

    def test_it():
        with open("the last runs", {mode!r}):
            pathlib.Path("ran-{name}").write_text(f"{{os.getpid()}} {{os.nice(0)}}")
"""

UNTIL_INTERRUPTED = """
    import pathlib
    import time

    import pytest

    @pytest.fixture(scope="session")
    def server():
        yield
        pathlib.Path("ended").touch()

    def test_waits(server):
        pathlib.Path("begun").touch()
        time.sleep(60)
"""


@pytest.fixture
def checkout(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A checkout without tests, whose workers find the modules of this one."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    (pytester.mkdir("tests") / "conftest.py").write_text(CONFTEST.read_text())
    pytester.makeini("[pytest]\naddopts = --strict-markers --disable-plugin-autoload\nmarkers = newer_api")
    return pytester


def test_every_outcome_of_a_worker_is_told(checkout: pytest.Pytester) -> None:
    checkout.makepyfile(**{"tests/unit/test_it": OUTCOMES, "tests/unit/test_other": TOGETHER})
    result = checkout.runpytest_subprocess("--workers", "2", "--quick")
    result.assert_outcomes(passed=9, failed=1, errors=2, skipped=1, xfailed=1, warnings=1)
    left_out = "*1 heavy (many times): make test-all runs it"
    warning = "*FutureWarning: soon no more"
    result.stdout.fnmatch_lines_random(
        ["*is wrong*", "said before", "*no server*", "*left some*", "*1 not here", warning, left_out]
    )


def test_the_test_of_a_dead_worker_fails_and_its_other_tests_run(checkout: pytest.Pytester) -> None:
    checkout.makepyfile(**{"tests/unit/test_it": DEATHS, "tests/unit/test_other": TOGETHER})
    result = checkout.runpytest_subprocess("--workers", "2", "-p", "no:randomly")
    result.assert_outcomes(passed=10, failed=2)
    result.stdout.fnmatch_lines(["*worker * died in this test, with exit status 7*"])


def test_a_worker_beside_the_others_takes_the_last_tests_and_leaves_them_the_processor(
    checkout: pytest.Pytester,
) -> None:
    os.mkfifo(checkout.path / "the last runs")  # who opens it to read waits for one who opens it to write
    checkout.makepyfile(
        **{
            "tests/unit/test_1": FROM_BOTH_ENDS.format(name="first", mode="r"),
            "tests/unit/test_2": FROM_BOTH_ENDS.format(name="last", mode="w"),
        }
    )
    result = checkout.runpytest_subprocess("--workers", "1", "--beside", "1", "-p", "no:randomly")
    result.assert_outcomes(passed=2)
    first, last = ((checkout.path / f"ran-{name}").read_text().split() for name in ("first", "last"))
    assert first[0] != last[0]
    assert int(last[1]) > int(first[1])


def test_a_run_stops_at_the_number_of_failures_that_is_asked_for(checkout: pytest.Pytester) -> None:
    tests = "import pytest\n@pytest.mark.parametrize('n', range(9))\ndef test_it(n): assert n < 2"
    checkout.makepyfile(**{"tests/unit/test_it": tests})
    result = checkout.runpytest_subprocess("--workers", "1", "--maxfail", "3", "-p", "no:randomly")
    result.assert_outcomes(passed=2, failed=3)
    assert result.ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.heavy("workers of its own; other ends are beside it")
def test_fixtures_end_when_the_run_is_interrupted(checkout: pytest.Pytester) -> None:
    checkout.makepyfile(**{"tests/unit/test_it": UNTIL_INTERRUPTED})
    command = [sys.executable, "-m", "pytest", "--workers", "1"]
    with subprocess.Popen(
        command, cwd=checkout.path, stdout=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=heed_ctrl_c
    ) as run:
        try:
            while not (checkout.path / "begun").exists():
                assert run.poll() is None
            os.killpg(run.pid, signal.SIGINT)
            said, _ = run.communicate(timeout=60)
        finally:
            run.kill()
    assert run.returncode == pytest.ExitCode.INTERRUPTED, said
    assert (checkout.path / "ended").exists()


@pytest.mark.heavy("workers of its own; brief reports are beside it")
def test_who_asks_for_durations_hears_of_fixtures(checkout: pytest.Pytester) -> None:
    checkout.makepyfile(**{"tests/unit/test_it": OUTCOMES})
    result = checkout.runpytest_subprocess("--workers", "1", "--durations=0", "-vv")
    result.stdout.fnmatch_lines_random(["*setup*test_passes*", "*teardown*test_passes*"])


def test_a_file_is_a_group_on_each_api_and_so_is_a_folder_that_shares_a_server() -> None:
    tests = [
        "tests/e2e/test_a.py::test_one[real]",
        "tests/unit/test_b.py::test_one",
        "tests/e2e/test_a.py::test_one[embedded]",
        "tests/integration/llm/test_c.py::test_one[real]",
        "tests/integration/llm/test_c.py::test_two",
        "tests/e2e/test_a.py::test_two[real-case]",
        "tests/integration/llm/test_d.py::test_one",
    ]
    assert groups(tests) == [[0, 5], [1], [2], [3], [4, 6]]


def test_few_tests_of_machines_are_a_group_on_each_api() -> None:
    tests = [
        "tests/e2e/test_a.py::test_one[embedded]",
        "tests/chaos/test_b.py::test_one[embedded]",
        "tests/e2e/test_c.py::test_one",
    ]
    assert groups(tests) == [[0], [1], [2]]
    assert groups(tests, (*SHARED, MACHINES)) == [[0, 1], [2]]


@pytest.mark.parametrize(("api", "found"), [("real", [[0, 1], [2], [3, 4], [5]]), ("newer", [[0, 1], [2, 3, 4], [5]])])
def test_tests_of_an_api_that_is_several_programs_share_few(api: str, found: list[list[int]]) -> None:
    files = ("e2e/test_a", "chaos/test_b", "integration/controllers/test_c", "integration/kube/test_d")
    names = (*files, "integration/http/test_e", "integration/manifests/test_f")
    assert groups(f"tests/{name}.py::test_one[{api}-case]" for name in names) == found


def test_what_tests_share_ends_before_those_of_other_servers() -> None:
    tests = [
        "tests/e2e/test_a.py::test_one[real]",
        "tests/integration/test_b.py::test_one[real]",
        "tests/e2e/test_a.py::test_one[embedded]",
        "tests/chaos/test_c.py::test_one",
        "tests/integration/test_b.py::test_one[embedded]",
        "tests/unit/test_d.py::test_one",
    ]
    assert [servers(one) for one in tests] == [
        ("real", True),
        ("real", False),
        ("", True),
        ("", True),
        ("", False),
        ("", False),
    ]


def test_fixtures_of_the_session_end_with_the_last_test_of_their_servers(checkout: pytest.Pytester) -> None:
    server = """
        from pathlib import Path

        import pytest

        LOG = Path(__file__).parents[2] / "log"

        @pytest.fixture(scope="session")
        def server():
            with LOG.open("a") as log:
                log.write("start ")
            yield
            with LOG.open("a") as log:
                log.write("end ")
    """
    test = """
        def test_it(server): pass

        def test_again(server): pass
    """
    for folder in ("e2e", "integration"):
        checkout.makepyfile(**{f"tests/{folder}/conftest": server, f"tests/{folder}/test_in_{folder}": test})
    result = checkout.runpytest_subprocess("--workers", "1", "tests/e2e", "tests/integration")
    result.assert_outcomes(passed=4)
    assert (checkout.path / "log").read_text().split() == ["start", "end"] * 2
