"""Distributes the tests to the workers of xdist, and keeps what they tell of them short.

Decision: a worker reports a test once, not six times. The process that hears of all tests has fifteen thousand of them
to count, and took 20 CPU seconds for what it threw away: that a test begins, that its fixtures are ready, that they are
gone, that it ended.
"""

import pytest
from _pytest.runner import runtestprotocol
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

APIS = ("real", "embedded")
SHARED = ("tests/integration/admission/", "tests/integration/llm/", "tests/integration/manifests/")
"""Folders whose tests share what takes seconds, a server or the SDKs of models: they stay with one worker, so that it
is started or imported once."""


class ByFileAndApi(LoadScopeScheduling):
    """Gives the tests of a file, or of a folder in `SHARED`, on one API to one worker, which has servers of its own.

    xdist's own `loadgroup` cannot: it marks its groups in an attribute that pytest 9.2 has no more. Work that is done
    is forgotten, and a test is found by its name: xdist counts all that was ever done, and searches from the first
    test on, after each test.
    """

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        """Knows no test yet."""
        super().__init__(config, log)
        self._scopes: dict[str, str] = {}
        self._places: dict[str, int] = {}

    def schedule(self) -> None:
        """Distributes the tests, once all workers have collected the same."""
        if not self._places and self._check_nodes_have_same_collection():
            collected = next(iter(self.registered_collections.values()))
            self._places = {test: place for place, test in enumerate(collected)}
        super().schedule()

    def mark_test_complete(self, node: WorkerController, item_index: int, duration: float = 0) -> None:
        """Takes note that a test ended; forgets its file with the last one."""
        scope = self._split_scope(self.registered_collections[node][item_index])
        super().mark_test_complete(node, item_index, duration)
        if all(self.assigned_work[node][scope].values()):
            del self.assigned_work[node][scope]

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope, tests = self.workqueue.popitem(last=False)
        self.assigned_work.setdefault(node, {})[scope] = tests
        node.send_runtest_some([self._places[test] for test, done in tests.items() if not done])

    def _split_scope(self, nodeid: str) -> str:
        if nodeid not in self._scopes:
            file, _, name = nodeid.partition("::")
            place = next((folder for folder in SHARED if file.startswith(folder)), file)
            self._scopes[nodeid] = place + next((kind for kind in APIS if f"[{kind}" in name), "")
        return self._scopes[nodeid]


def configure(config: pytest.Config) -> None:
    """Makes a worker of xdist report briefly, unless someone asks how long fixtures took or for a report in XML."""
    if hasattr(config, "workerinput") and not config.getoption("durations") and not config.getoption("xmlpath"):
        config.pluginmanager.register(BriefReports())


class BriefReports:
    """Runs a test as pytest does, and reports what it did, or what of its fixtures did not pass."""

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> bool:
        """Runs one test."""
        for report in runtestprotocol(item, log=False, nextitem=nextitem):
            if report.when == "call" or not report.passed:
                item.ihook.pytest_runtest_logreport(report=report)
        return True
