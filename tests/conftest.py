"""Two tiers: every test that needs a Kubernetes API runs on the embedded one, on a real one, or on both (`--api`).

A test asks for an API through a fixture that depends on `api_kind`; the kind then shows in its name. What only a real
server makes meaningful is marked `real_only(reason)`; what needs Kubernetes 1.30 is marked `newer_api`, and left out on
an older real server; `--api newer` runs just these, with custom resources served by Kubernetes 1.36's own API
extensions server. What takes long and has a smaller case beside it is marked `heavy(reason)`, as all of `chaos` is;
`--quick` leaves it out, as it does most of what `stories.py` speaks of. Of a test marked `sweep(reason)`, whose cases
are alike, `--quick` runs one in `SAMPLE`. What the real API adds little to is marked `once(reason)`: `--api both` shows
it on the embedded one only, `--api real` on a real one; `shown_once.py` lists whole folders, and what `--api newer`
leaves out. The closing lines count by API what ran and what was skipped or left out and why, so that a green run never
hides what it did not check.
"""

import functools
import gc
import logging
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

import captured_logs
import cost
import goldens
import left_out
import second_chance
import shown_once
import stories
import workers
from e2e.kubernetes_mcp import NotToBeHad, program
from tarsy.observe.logs import QUIETER
from tarsy_dev.apiserver.binaries import find_binaries, program_version, require_binaries
from tarsy_dev.apiserver.errors import LocalKubernetesError
from tarsy_dev.apiserver.extensions_build import require_extensions

KINDS = {"embedded": ("embedded",), "real": ("real",), "both": ("real", "embedded"), "newer": ("newer",)}
OLDEST_SUPPORTED = (1, 30)
NONE = "none"
MACHINES = ("e2e", "chaos")
SLOWEST = (
    "test_points.py",
    "test_kill.py",
    "test_drain.py",
    "test_provider_limits.py",
    "test_points_beside.py",
    "test_plugin.py",
    "test_gitops.py",
    "test_storm.py",
    "test_demo.py",
    "test_outages.py",
    "test_limits.py",
    "test_deletion.py",
    "test_postgres.py",
    "test_cost.py",
    "test_zombie.py",
)
"""Files of machines that take half a minute or more, the longest first."""
PATIENCE = {"integration": 600, "e2e": 900, "chaos": 900, "browser": 240, "cluster": 600}
"""Seconds that a test which starts servers may take where it says nothing else. pyproject.toml has those of a unit: a
minute, because a machine that others use too gives it a tenth of a core."""
SAMPLE = 7
"""Of so many cases of a sweep, `--quick` runs one: a number that shares no factor with the usual counts of values, so
that the sample goes round all values of each parameter."""

GARBAGE = 20_000
"""Objects that are made, beyond those that are gone, before a garbage collection looks at them."""
QUICK_EXAMPLES = 25
"""Examples of a property in `--quick`, where the test states no number."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The choice of the tier, and whether golden files are written."""
    parser.addoption(
        "--api",
        choices=list(KINDS),
        default="embedded",
        help="Kubernetes API of the tests that need one; with `real` or `newer`, all other tests are left out.",
    )
    parser.addoption("--quick", action="store_true", help="Leave out the tests that are heavy.")
    goldens.add_option(parser)
    second_chance.add_option(parser)
    cost.add_option(parser)
    workers.add_option(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Registers the marker of this file; refuses to start where the chosen API cannot be had."""
    # How long an example takes to make or to run is the machine's doing.
    settings.register_profile("shared machine", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.register_profile("quick", settings.get_profile("shared machine"), max_examples=QUICK_EXAMPLES)
    settings.load_profile("quick" if config.getoption("--quick") else "shared machine")
    if config.getoption("--quick"):
        # Hypothesis tries numbers and words of our modules too. To find them it parses all of them: five seconds of a
        # core in a new checkout.
        providers._get_local_constants = lambda: providers._local_constants
    config.addinivalue_line("markers", "real_only(reason): only a real API server makes this meaningful")
    config.addinivalue_line("markers", "once(reason): is not repeated on a real API server when both are asked for")
    config.addinivalue_line("markers", "heavy(reason): takes long; --quick leaves it out")
    config.addinivalue_line("markers", f"sweep(reason): has many cases that are alike; --quick runs one in {SAMPLE}")
    captured_logs.configure()
    second_chance.configure(config)
    cost.configure(config)
    workers.configure(config)
    kinds = KINDS[config.getoption("--api")]
    try:
        if "real" in kinds:
            require_binaries()
        if "newer" in kinds:
            require_extensions()
    except LocalKubernetesError as error:
        raise pytest.UsageError(f"--api {config.getoption('--api')}: {error}") from None


@pytest.fixture(scope="session")
def api_kind(request: pytest.FixtureRequest) -> str:
    """Which Kubernetes API this test runs on: `embedded`, `real` or `newer`."""
    return str(request.param)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each API."""
    if "api_kind" in metafunc.fixturenames:
        kinds = KINDS[metafunc.config.getoption("--api")]
        metafunc.parametrize("api_kind", kinds, indirect=True, scope="session")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    """Leaves out what the chosen APIs and `--quick` do not show, before others sort it; puts the longest first when all
    others had their say."""
    choice, quick = config.getoption("--api"), config.getoption("--quick")
    tier = set(KINDS[choice]) | ({NONE} if "embedded" in KINDS[choice] else set())
    version = _real_version() if "real" in KINDS[choice] else None
    patient = config.pluginmanager.hasplugin("timeout")
    cases: Counter[str] = Counter()
    chosen, others = [], []
    for item in items:
        kind, marks = _kind(item), _marks(item)
        if not _is_of(kind, marks, tier):
            others.append(item)
            continue
        reason = _why_not(item, kind, marks, version, choice)
        if reason := reason or (_why_later(item, marks, cases) if quick else ""):
            left_out.count(config, kind, reason)
        else:
            chosen.append(item)
            item.user_properties.append(("api", kind))
            if patient and "timeout" not in marks and (seconds := PATIENCE.get(_folders(item)[1])):
                item.add_marker(pytest.mark.timeout(seconds))
    items[:] = chosen
    if others:
        config.hook.pytest_deselected(items=others)
    yield
    items.sort(key=_order)


def pytest_collection_finish() -> None:
    """Tests and modules stay to the end: no garbage collection looks at them again, nor copies them in a worker.

    What a test leaves is small: collections are rarer than Python's own 700 objects would have them.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(GARBAGE)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Leaves logs as they were: a command that a test runs in this process configures them for its own end. Each later
    line would fail on its closed stream, with a traceback, and what a library writes would be hidden from later tests.
    """
    root = logging.getLogger()
    handlers = root.handlers[:]
    levels = {logger: logger.level for logger in (root, *map(logging.getLogger, QUIETER))}
    result = yield
    for logger, level in levels.items():
        if logger.level != level:
            logger.setLevel(level)
    root.handlers[:] = handlers
    return result


def _kind(item: pytest.Item) -> str:
    if isinstance(item, pytest.Function) and hasattr(item, "callspec") and "api_kind" in item.callspec.params:
        return str(item.callspec.params["api_kind"])
    return "embedded" if _folders(item)[:3] == ("tests", "integration", "kubeapi") else NONE


def _is_of(kind: str, marks: dict[str, pytest.Mark], tier: set[str]) -> bool:
    return kind in tier and (kind != "newer" or "newer_api" in marks)


def _folders(item: pytest.Item) -> tuple[str, ...]:
    return _folders_of(item.nodeid.partition("::")[0])


@functools.cache
def _folders_of(file: str) -> tuple[str, ...]:
    return tuple(file.split("/"))


def _marks(item: pytest.Item) -> dict[str, pytest.Mark]:
    """The marks of a test by their names; the closest one where a name has several."""
    marks: dict[str, pytest.Mark] = {}
    for mark in item.iter_markers():
        marks.setdefault(mark.name, mark)
    return marks


def _order(item: pytest.Item) -> tuple[bool, int, bool, int]:
    """What takes longest first, so that no worker is left with it alone: what shares a real API, then machines."""
    folder, name = _folders(item)[1], item.path.name
    return (
        _kind(item) != "real",
        0 if folder in MACHINES else 1 if folder == "integration" else 2,
        not any(item.nodeid.startswith(folders) for folders in workers.SHARED),
        SLOWEST.index(name) if name in SLOWEST else len(SLOWEST),
    )


def _why_not(
    item: pytest.Item, kind: str, marks: dict[str, pytest.Mark], version: tuple[int, ...] | None, choice: str
) -> str:
    real_only = marks.get("real_only")
    if kind == "real" and choice == "both":
        once = marks.get("once")
        if reason := once.args[0] if once else None if real_only else shown_once.why_once(item.nodeid):
            return f"shown on the embedded API ({reason}); --api real shows it on a real one"
    if kind == "newer" and (reason := shown_once.why_not_on_newer(item.nodeid)):
        return f"shown on the embedded API ({reason})"
    if kind == "embedded" and real_only:
        (reason,) = real_only.args
        return f"real API server only: {reason}"
    if kind == "real" and "newer_api" in marks and version and version < OLDEST_SUPPORTED:
        return f"needs Kubernetes 1.30 or newer; the API server here is {_dotted(version)}"
    return ""


def _why_later(item: pytest.Item, marks: dict[str, pytest.Mark], cases: Counter[str]) -> str:
    """Returns why `--quick` leaves a test out, else nothing; counts the cases of each sweep in `cases`."""
    if sweep := marks.get("sweep"):
        test = item.nodeid.partition("[")[0]
        cases[test] += 1
        if cases[test] % SAMPLE != 1:
            (reason,) = sweep.args
            return f"one case in {SAMPLE} is shown ({reason}): make test-all runs all"
    if heavy := marks.get("heavy"):
        (reason,) = heavy.args
    elif _folders(item)[1] == "chaos":
        reason = "chaos"
    else:
        reason = stories.why_heavy(item.nodeid)
    return f"heavy ({reason}): make test-all runs it" if reason else ""


def _real_version() -> tuple[int, ...] | None:
    found = find_binaries()
    return program_version(found.kube_apiserver)[:2] if found else None


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Says for each API how many tests ran on it, how many were skipped, and why."""
    if config.getoption("collectonly"):
        return
    ran: Counter[str] = Counter()
    skipped: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for outcome in ("passed", "failed", "error", "xfailed", "xpassed"):
        ran.update(_of(report) for report in terminalreporter.stats.get(outcome, ()))
    for report in terminalreporter.stats.get("skipped", ()):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        skipped[_of(report)][reason.removeprefix("Skipped: ")] += 1
    for kind, reason, times in left_out.counted(config):
        skipped[kind][reason] += times
    version = _real_version() if "real" in KINDS[config.getoption("--api")] else None
    names = {
        "embedded": "embedded API",
        "newer": "API extensions server of 1.36",
        "real": f"real API {_dotted(version)}" if version else "real API",
    }
    terminalreporter.section("which Kubernetes API the tests ran on")
    for kind in (*KINDS[config.getoption("--api")], NONE):
        reasons = skipped[kind]
        count = f"{ran[kind]} ran, {sum(reasons.values())} skipped"
        terminalreporter.write_line(f"{names.get(kind, 'no API needed')}: {count}")
        for reason, times in reasons.most_common():
            terminalreporter.write_line(f"    {times} {reason}")


def _of(report: pytest.TestReport | pytest.CollectReport) -> str:
    return str(dict(getattr(report, "user_properties", ())).get("api", NONE))


@pytest.fixture
def kubernetes_mcp_server() -> Path:
    """The tool server that people really use, as a program; a test is skipped where it is not to be had."""
    try:
        return program()
    except NotToBeHad as reason:
        pytest.skip(str(reason))
