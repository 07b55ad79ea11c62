"""Provides the fixtures of all tests in this folder."""

import pytest

from integration.mcp.servers import resolve
from tarsy.mcp.toolbox import McpToolboxes


@pytest.fixture(params=["own calls", "SDK calls"])
def toolboxes(request: pytest.FixtureRequest) -> McpToolboxes:
    """Both ways to call a tool over streamable HTTP, which every test here holds for."""
    return McpToolboxes(resolve, mask=str, allow_stdio=True, sdk_calls=request.param == "SDK calls")
