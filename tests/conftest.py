"""What all tests share: the count of what this machine's API server could not show.

The local API server may be older than the Kubernetes versions that the product supports (README, "The API server on
your machine"). A test that needs newer behaviour is marked `newer_api` and skipped there; how many, is printed at the
end of every run, so that a green run never hides what it did not check.
"""

from collections.abc import Iterator

import pytest

from tarsy.local.apiserver.binaries import find_binaries, program_version

OLDEST_SUPPORTED = (1, 30)


def _version() -> tuple[int, ...] | None:
    found = find_binaries()
    return program_version(found.kube_apiserver)[:2] if found else None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps what shares a machine in one worker, first; skips what needs a newer API server than is here."""
    for item in items:
        folder = item.path.relative_to(config.rootpath).parts[1]
        whole = folder in ("e2e", "chaos")
        item.add_marker(pytest.mark.xdist_group("machine" if whole else str(item.path)))
    items.sort(key=lambda item: item.path.relative_to(config.rootpath).parts[1] not in ("e2e", "chaos"))
    version = _version()
    if version is not None and version >= OLDEST_SUPPORTED:
        return
    shown = ".".join(map(str, version)) if version else "none"
    skip = pytest.mark.skip(reason=f"needs Kubernetes 1.30 or newer; the API server here is {shown}")
    for item in items:
        if item.get_closest_marker("newer_api"):
            item.add_marker(skip)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None] | None:
    """Says which API server was there, and how many tests it could not serve."""
    version = _version()
    skipped = [r for r in terminalreporter.stats.get("skipped", ()) if "needs Kubernetes 1.30" in str(r.longrepr)]
    name = "none" if version is None else ".".join(map(str, version))
    terminalreporter.write_line(
        f"Kubernetes API server on this machine: {name}; tests that need 1.30 or newer and were skipped: {len(skipped)}"
    )
    return None
