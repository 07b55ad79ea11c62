"""Tests of a provider whose extra may not be installed, and of a package that only a few tests need.

Decision: asked of the finder and not by an import, as `pytest.importorskip` would: every process of a run collects
every file, and the SDKs together cost each of them seconds.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


class AtFirstUse:
    """Stands for a module until a test uses it: only the process that runs the test imports it."""

    def __init__(self, name: str) -> None:
        """Takes the module's name."""
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        """Returns what the module has under this name; names with underscores are what pytest asks of all objects."""
        if attribute.startswith("_"):
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)


def needs(package: str) -> pytest.MarkDecorator:
    """Skips what needs a package that is not installed."""
    return pytest.mark.skipif(not _installed(package), reason=f"{package} is not installed")


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # not even the package it is in
        return False
