"""The two tiers of the tests themselves (tests/conftest.py): what runs where, and what the closing lines say."""

from pathlib import Path

import pytest

from shown_once import FOLDERS, NOT_ON_NEWER, ON_BOTH, ONCE, why_not_on_newer, why_once
from stories import STORIES, why_heavy
from tarsy_dev.apiserver.binaries import architecture

pytest_plugins = ["pytester"]
CONFTEST = Path(__file__).parents[1] / "conftest.py"
INI = """
    [pytest]
    addopts = --strict-markers --disable-plugin-autoload
    markers = newer_api
"""
TESTS = """
    import pytest

    def test_plain(): pass

    def test_anywhere(api_kind): assert api_kind in ("embedded", "real")

    @pytest.mark.real_only("it has an etcd")
    def test_etcd(api_kind): assert api_kind == "real"

    @pytest.mark.newer_api
    def test_rules(api_kind): assert api_kind in ("embedded", "newer")

    @pytest.mark.heavy("a thousand times")
    def test_again(): pass
"""


@pytest.fixture
def checkout(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A checkout with these tests, on a machine with a kube-apiserver 1.20."""
    tests = pytester.mkdir("tests")
    (tests / "conftest.py").write_text(CONFTEST.read_text())
    pytester.makepyfile(**{"tests/integration/test_it": TESTS})
    pytester.makeini(INI)
    assets = pytester.mkdir("assets")
    for name in ("kube-apiserver", "etcd"):
        (assets / name).write_text("#!/bin/sh\necho Kubernetes v1.20.2\n")
        (assets / name).chmod(0o755)
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    return pytester


NEWER = "    1 needs Kubernetes 1.30 or newer; the API server here is 1.20"
ETCD = "    1 real API server only: it has an etcd"


def test_embedded_tier_runs_everything_but_what_only_a_real_server_shows(checkout: pytest.Pytester) -> None:
    result = checkout.runpytest_inprocess()
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["embedded API: 2 ran, 1 skipped", ETCD, "no API needed: 2 ran, 0 skipped"])


def test_real_tier_leaves_out_what_needs_no_api_and_skips_what_is_too_new(checkout: pytest.Pytester) -> None:
    result = checkout.runpytest_inprocess("--api", "real")
    result.assert_outcomes(passed=2, deselected=2)
    result.stdout.fnmatch_lines(["real API 1.20: 2 ran, 1 skipped", NEWER])


def test_both_tiers_run_each_test_of_an_api_twice_and_the_others_once(checkout: pytest.Pytester) -> None:
    result = checkout.runpytest_inprocess("--api", "both", "-v")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines_random(["*test_anywhere?real? PASSED*", "*test_anywhere?embedded? PASSED*"])
    result.stdout.fnmatch_lines(["real API 1.20: 2 ran*", NEWER, "embedded API: 2 ran*", ETCD, "no API needed: 2 ran*"])


def test_quick_run_says_what_it_leaves_for_another(checkout: pytest.Pytester) -> None:
    result = checkout.runpytest_inprocess("--quick")
    result.assert_outcomes(passed=3)
    heavy = "    1 heavy (a thousand times): make test-all runs it"
    result.stdout.fnmatch_lines(["no API needed: 1 ran, 1 skipped", heavy])


@pytest.mark.parametrize(("cases", "shown"), [(1, 1), (7, 1), (8, 2), (15, 3)])
def test_quick_run_shows_one_case_in_seven_of_a_sweep(checkout: pytest.Pytester, cases: int, shown: int) -> None:
    sweep = f"""
        import pytest

        @pytest.mark.sweep("another step")
        @pytest.mark.parametrize("step", range({cases}))
        def test_step(step): assert step % 7 == 0

        @pytest.mark.sweep("another end")
        @pytest.mark.parametrize("end", range({cases}))
        def test_end(end): assert end % 7 == 0
    """
    checkout.makepyfile(**{"tests/unit/test_sweep": sweep})
    result = checkout.runpytest_inprocess("--quick", "tests/unit")
    result.assert_outcomes(passed=2 * shown)
    left = cases - shown
    lines = [f"    {left} one case in 7 is shown (another {what}): make test-all runs all" for what in ("step", "end")]
    result.stdout.fnmatch_lines(lines if left else [])


def test_whole_run_shows_every_case_of_a_sweep(checkout: pytest.Pytester) -> None:
    sweep = """
        import pytest

        @pytest.mark.sweep("another step")
        @pytest.mark.parametrize("step", range(15))
        def test_step(step): pass
    """
    checkout.makepyfile(**{"tests/unit/test_sweep": sweep})
    checkout.runpytest_inprocess("tests/unit").assert_outcomes(passed=15)


def test_chaos_is_heavy(checkout: pytest.Pytester) -> None:
    checkout.makepyfile(**{"tests/chaos/test_kill": "def test_it(api_kind): pass"})
    result = checkout.runpytest_inprocess("--quick", "tests/chaos")
    result.assert_outcomes()
    result.stdout.fnmatch_lines(["    1 heavy (chaos): make test-all runs it"])


def test_real_tier_without_binaries_ends_with_a_sentence(
    checkout: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name, value in (("PATH", str(tmp_path)), ("XDG_CACHE_HOME", str(tmp_path))):
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("KUBEBUILDER_ASSETS")
    result = checkout.runpytest_inprocess("--api", "both")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--api both: no kube-apiserver and etcd in*run `make kube-apiserver`"])


def test_newer_tier_runs_just_what_needs_a_newer_api(
    checkout: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = checkout.mkdir("cache") / "tarsy/kubernetes" / f"extensions-0.36-{architecture()}"
    folder.mkdir(parents=True)
    for name in ("apiextensions-apiserver", "etcd"):
        (folder / name).touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(checkout.path / "cache"))
    gate = "import pytest\n@pytest.mark.newer_api\ndef test_it(api_kind): pass"
    checkout.makepyfile(**{"tests/chaos/test_gate": gate})
    result = checkout.runpytest_inprocess("--api", "newer")
    result.assert_outcomes(passed=1, deselected=4)
    lines = [
        "API extensions server of 1.36: 1 ran, 1 skipped",
        "    1 shown on the embedded API (scenarios/test_approvals*",
    ]
    result.stdout.fnmatch_lines(lines)


def test_newer_tier_says_what_is_missing(checkout: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(checkout.mkdir("empty")))
    result = checkout.runpytest_inprocess("--api", "newer")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*no API extensions server of Kubernetes 1.36 in *: run `make kube-extensions`"])


def test_what_is_listed_as_shown_once_or_on_both_is_there() -> None:
    missing = []
    for begins in (*ONCE, *FOLDERS, *ON_BOTH, *NOT_ON_NEWER):
        path, _, name = begins.partition("::")
        place = CONFTEST.parents[1] / path
        if not place.exists() or (name and f"def {name.partition('[')[0]}" not in place.read_text()):
            missing.append(begins)
    assert missing == []


@pytest.mark.parametrize(
    ("folder", "begins"), [(folder, begins) for folder, stories in STORIES.items() for begins in stories]
)
def test_what_is_quick_of_a_folder_is_there(folder: str, begins: str) -> None:
    file, _, name = begins.partition("::")
    assert f"def {name.partition('[')[0]}" in (CONFTEST.parents[1] / folder / file).read_text()
    assert why_heavy(f"{folder}{begins}") is None


@pytest.mark.parametrize("folder", STORIES)
def test_another_case_of_a_story_is_heavy(folder: str) -> None:
    assert why_heavy(f"{folder}test_budget.py::test_another")


@pytest.mark.parametrize(
    ("test", "once"),
    [
        ("tests/e2e/test_limits.py::test_x[real]", True),
        ("tests/e2e/test_kubectl.py::test_x[real]", False),
        ("tests/integration/controllers/test_approvals.py::test_rejection[real]", True),
        ("tests/integration/controllers/test_approvals.py::test_without_the_policy[real]", False),
        ("tests/integration/history/test_limits.py::test_purge[real]", True),
        ("tests/integration/kube/test_client.py::test_x[real]", False),
    ],
)
def test_a_test_is_shown_on_a_real_api_too_where_the_list_says_so(test: str, once: bool) -> None:
    assert (why_once(test) is not None) is once


def test_a_test_of_another_tier_is_not_repeated_on_the_newer_one() -> None:
    assert why_not_on_newer("tests/chaos/test_gate.py::test_x[newer]")
    assert why_not_on_newer("tests/integration/local/test_kinds.py::test_x[newer]") is None
