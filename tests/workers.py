"""Runs tests in worker processes that are forked once all tests are collected: `--workers N`.

Decision: not xdist. Its workers are programs of their own, and each imports the product and collects all tests, which
takes 14 CPU seconds and half a gigabyte. A forked worker has both already. Worker and parent speak of tests by their
number, and a worker reports a test once, not six times: with fifteen thousand tests this took 20 CPU seconds.

A worker runs the tests of a file on one API, or those of folders that share a server, and asks for others before the
last of them, because fixtures end when pytest knows the test that follows. If a worker dies, the test that it ran has
failed, and a new worker takes over its other tests.

A real API is several programs, which cost processor time even while nobody asks: tests that need one stay together in
few groups, and a worker ends what such a group shared before it goes on to others, as it does with a machine.

Tests of servers spend much of their time waiting: with three workers, a quarter of two cores had nothing to do.
`--beside M` adds workers of low priority, which take tests from the other end of the list, where those without servers
are: they use what the others leave.
"""

import contextlib
import mmap
import os
import pickle
import signal
import warnings
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from pathlib import Path
from typing import Any

import pytest
from _pytest.runner import runtestprotocol
from _pytest.tmpdir import TempPathFactory

import cost

APIS = ("real", "embedded", "newer")
SHARED = (
    ("tests/integration/admission/",),
    ("tests/integration/llm/",),
    ("tests/integration/manifests/",),
)
"""Folders whose tests share what takes seconds, a server or the SDKs of models: they stay with one worker, so that it
is started or imported once."""
MACHINES = ("tests/e2e/", "tests/chaos/")
"""Folders whose tests share a machine; so few of them are quick that they stay together too."""
SHARED_ON = {
    "real": (("tests/integration/manifests/",), ("tests/integration/controllers/",), ("tests/integration/",), MACHINES),
    "newer": (("tests/integration/manifests/",), ("tests/integration/",), MACHINES),
}
"""As `SHARED`, by the API, for tests on one that is several programs."""
END_SECONDS = 60.0
"""Time that a worker has to end its servers, before it is killed."""
NICENESS = 5
"""Priority of a worker beside the others: it gets a third of the time of one of them when both have something to do."""
_OPTION = "--workers"
_BESIDE = "--beside"
_FORK = get_context("fork")


def add_option(parser: pytest.Parser) -> None:
    """Adds the options that name the numbers of workers."""
    parser.addoption(_OPTION, type=int, default=0, help="Run the tests in this number of processes; 0: in this one.")
    parser.addoption(_BESIDE, type=int, default=0, help="Add so many processes for the time that the others wait.")


def configure(config: pytest.Config) -> None:
    """Registers the distribution where workers are asked for."""
    if (number := config.getoption(_OPTION)) > 0:
        shared = (*SHARED, MACHINES) if config.getoption("quick", False) else SHARED
        config.pluginmanager.register(Distribution(number, config.getoption(_BESIDE), shared))


def groups(tests: Iterable[str], shared: Sequence[tuple[str, ...]] = SHARED) -> list[list[int]]:
    """Returns the numbers of the tests that stay together, group by group, in the order of each one's first test.

    Args:
        tests: their ids.
        shared: folders whose tests stay together.
    """
    found: dict[str, list[int]] = {}
    for number, test in enumerate(tests):
        file, _, name = test.partition("::")
        api = _api(name)
        place = next((folders[0] for folders in SHARED_ON.get(api, shared) if file.startswith(folders)), file)
        group = place + api
        found.setdefault(group, []).append(number)
    return list(found.values())


def servers(test: str) -> tuple[str, bool]:
    """Returns what tells the servers of a test from those of others: a real API or none, and whether it is a machine.

    Args:
        test: its id.
    """
    api = _api(test.partition("::")[2])
    return api if api in SHARED_ON else "", test.startswith(MACHINES)


def _api(name: str) -> str:
    return next((api for api in APIS if f"[{api}" in name), "")


class Progress:
    """Number of tests that a worker began and finished; the parent can read it when the worker is dead."""

    def __init__(self) -> None:
        self._numbers = memoryview(mmap.mmap(-1, mmap.PAGESIZE)).cast("i")

    @property
    def begun(self) -> int:
        """Number of tests that began."""
        return self._numbers[0]

    @property
    def finished(self) -> int:
        """Number of tests that ended and were reported."""
        return self._numbers[1]

    def begin(self) -> None:
        """Counts a test that begins."""
        self._numbers[0] += 1

    def finish(self) -> None:
        """Counts a test that ended."""
        self._numbers[1] += 1


@dataclass
class Worker:
    """A worker as its parent sees it."""

    number: int
    process: ForkProcess
    connection: Connection
    progress: Progress
    beside: bool
    """Whether it runs in the time that the others wait."""
    given: list[int] = field(default_factory=list)
    """The tests that it was given, in order."""


class Distribution:
    """Distributes the tests to workers, and hears of them."""

    def __init__(self, number: int, beside: int, shared: Sequence[tuple[str, ...]]) -> None:
        """Forks nobody yet.

        Args:
            number: of workers.
            beside: number of workers for the time that the others wait.
            shared: folders whose tests stay together.
        """
        self._number = number
        self._beside = beside
        self._shared = shared
        self._groups: deque[list[int]] = deque()
        self._workers: dict[Connection, Worker] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Runs the tests in workers, unless pytest's own loop is to say why none runs."""
        option = session.config.option
        if option.collectonly or (session.testsfailed and not option.continue_on_collection_errors):
            return None
        cost.collected(session.config)
        _temporary_files(session.config)
        self._groups.extend(groups((item.nodeid for item in session.items), self._shared))
        try:
            for number in range(min(self._number + self._beside, len(self._groups))):
                self._fork(session, number, beside=number >= self._number)
            while self._workers:
                for connection in wait(list(self._workers)):
                    self._hear(session, self._workers[connection])  # type: ignore[index]
        finally:
            self._end()
        if session.items:
            last = session.items[-1]
            session.config.hook.pytest_runtest_logfinish(nodeid=last.nodeid, location=last.location)
        return True

    def _fork(self, session: pytest.Session, number: int, *, beside: bool) -> None:
        ours, theirs = _FORK.Pipe()
        progress = Progress()
        not_theirs = [ours, *self._workers]
        niceness = NICENESS if beside else 0
        process = _FORK.Process(target=_work, args=(session, theirs, not_theirs, progress, number, niceness))
        process.start()
        theirs.close()
        self._workers[ours] = Worker(number, process, ours, progress, beside)

    def _next(self, worker: Worker) -> list[int]:
        """Takes a group of tests off the list; none are left: none."""
        if not self._groups:
            return []
        return self._groups.pop() if worker.beside else self._groups.popleft()

    def _hear(self, session: pytest.Session, worker: Worker) -> None:
        hook = session.config.hook
        try:
            message, content = worker.connection.recv()
        except (EOFError, OSError):
            self._bury(session, worker)
            return
        match message:
            case "needs":
                tests = self._next(worker)
                worker.given += tests
                worker.connection.send(tests)
            case "report":
                report = hook.pytest_report_from_serializable(config=session.config, data=content)
                _log(session, report)
            case "warning":
                hook.pytest_warning_recorded.call_historic(kwargs=content)
            case "ended":
                cost.add(session.config, content)
                self._forget(worker)

    def _bury(self, session: pytest.Session, worker: Worker) -> None:
        """Reports the test that a dead worker ran, and has its other tests run by a new one."""
        self._forget(worker)
        begun, finished = worker.progress.begun, worker.progress.finished
        if begun == 0:
            raise RuntimeError(f"Worker {worker.number} died before its first test: {worker.process.exitcode}")
        item = session.items[worker.given[begun - 1]]
        when = "in" if begun > finished else "after"
        died = f"worker {worker.number} died {when} this test, with exit status {worker.process.exitcode}"
        _log(session, pytest.TestReport(item.nodeid, item.location, {}, "failed", died, "???"))  # type: ignore[arg-type]
        if others := worker.given[begun:]:
            self._groups.append(others) if worker.beside else self._groups.appendleft(others)
        if self._groups:
            self._fork(session, worker.number, beside=worker.beside)

    def _forget(self, worker: Worker) -> None:
        del self._workers[worker.connection]
        worker.connection.close()
        worker.process.join(END_SECONDS)
        if worker.process.is_alive():
            worker.process.kill()
            worker.process.join()

    def _end(self) -> None:
        """Interrupts the workers that still run: the run was."""
        workers = list(self._workers.values())
        for worker in workers:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker.process.pid or 0, signal.SIGINT)
        for worker in workers:
            self._forget(worker)


def _log(session: pytest.Session, report: pytest.TestReport) -> None:
    session.config.hook.pytest_runtest_logreport(report=report)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


def _work(
    session: pytest.Session,
    connection: Connection,
    not_ours: Sequence[Connection],
    progress: Progress,
    number: int,
    niceness: int,
) -> None:
    """Runs tests until there are none.

    Args:
        session: with all tests.
        connection: to the parent.
        not_ours: connections of the parent.
        progress: is told of each test.
        number: of this worker.
        niceness: how far it steps back behind others that want the processor.
    """
    os.nice(niceness)
    for other in not_ours:
        other.close()
    config = session.config
    _have_files_of_its_own(config, number)
    cost.begin(config)
    config.pluginmanager.register(Reporter(config, connection, progress))
    try:
        _run_all(session, connection)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    except (EOFError, BrokenPipeError):
        pass  # the parent is dead
    finally:
        session._setupstate.teardown_exact(None)
    with contextlib.suppress(BrokenPipeError):
        connection.send(("ended", cost.spent(config)))
    connection.close()


def _run_all(session: pytest.Session, connection: Connection) -> None:
    tests: deque[int] = deque()
    while True:
        if len(tests) < 2:
            connection.send(("needs", None))
            tests.extend(connection.recv())
        if not tests:
            return
        item = session.items[tests.popleft()]
        following = session.items[tests[0]] if tests else None
        if following is not None and servers(following.nodeid) != servers(item.nodeid):
            following = None  # so that fixtures of the session end as well
        session.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def _have_files_of_its_own(config: pytest.Config, number: int) -> None:
    """Gives a worker its own file for captured output and its own folder for temporary files."""
    capture: Any = config.pluginmanager.getplugin("capturemanager")
    if capture is not None:
        capture.stop_global_capturing()
        capture.start_global_capturing()
        capture.suspend_global_capture()
    config.option.basetemp = _temporary_files(config) / f"worker-{number}-{os.getpid()}"
    config._tmp_path_factory = TempPathFactory.from_config(config, _ispytest=True)  # type: ignore[attr-defined]


def _temporary_files(config: pytest.Config) -> Path:
    """Returns the folder of the run, after making it: the parent does so before it forks."""
    factory: TempPathFactory = config._tmp_path_factory  # type: ignore[attr-defined]
    return factory.getbasetemp()


class Reporter:
    """Runs a test as pytest does, and reports what it did, or what of its fixtures did not pass.

    Where someone asks how long fixtures took, or for a report in XML, all reports are sent.
    """

    def __init__(self, config: pytest.Config, connection: Connection, progress: Progress) -> None:
        """Reports nothing yet.

        Args:
            config: of the worker.
            connection: to the parent.
            progress: is told of each test.
        """
        self._config = config
        self._connection = connection
        self._progress = progress
        self._all = config.getoption("durations") is not None or bool(config.getoption("xmlpath"))

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Runs one test."""
        self._progress.begin()
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if self._all or report.when == "call" or not report.passed:
                data = item.ihook.pytest_report_to_serializable(config=self._config, report=report)
                self._connection.send(("report", data))
        self._progress.finish()
        return True

    def pytest_warning_recorded(
        self,
        warning_message: warnings.WarningMessage,
        when: str,
        nodeid: str,
        location: tuple[str, int, str] | None,
    ) -> None:
        """Sends a warning, as text and without what it is about."""
        said = warnings.WarningMessage(
            str(warning_message.message),
            _sendable(warning_message.category),
            warning_message.filename,
            warning_message.lineno,
            line=warning_message.line,
        )
        content = {"warning_message": said, "when": when, "nodeid": nodeid, "location": location}
        self._connection.send(("warning", content))


def _sendable(category: type[Warning]) -> type[Warning]:
    try:
        pickle.dumps(category)
    except (pickle.PicklingError, AttributeError):
        return Warning
    return category
