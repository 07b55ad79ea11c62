"""What every test of this folder starts from."""

import pytest

from integration.mcp.servers import resolve
from tarsy.mcp.toolbox import McpToolboxes


@pytest.fixture
def toolboxes() -> McpToolboxes:
    return McpToolboxes(resolve, mask=str, allow_stdio=True)
