"""The loop of the long-running processes."""

import asyncio
import sys
from types import SimpleNamespace

import pytest

from tarsy.app.event_loop import fastest


def test_a_process_has_uvloops_loop_where_it_is_installed_and_pythons_own_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert fastest() is None
    monkeypatch.setitem(sys.modules, "uvloop", SimpleNamespace(new_event_loop=asyncio.new_event_loop))
    assert fastest() is asyncio.new_event_loop
