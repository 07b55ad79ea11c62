"""A Git host for each test."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from integration.git.host import GitHost


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[GitHost]:
    """A host on a free port of loopback."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    async with GitHost(tmp_path) as made:
        yield made
