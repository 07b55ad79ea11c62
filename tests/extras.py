"""Tests of a provider whose extra may not be installed.

Decision: asked of the finder and not by an import, as `pytest.importorskip` would: every process of a run collects
every file, and the SDKs together cost each of them seconds.
"""

from importlib.util import find_spec

import pytest


def needs(package: str) -> pytest.MarkDecorator:
    """Skips what needs a package that is not installed."""
    return pytest.mark.skipif(not _installed(package), reason=f"{package} is not installed")


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # not even the package it is in
        return False
