"""Compares output with golden files, which are kept beside their test and read by people in a diff.

`check` compares a text with its file; with `--update-goldens` it writes the file instead, and the diff of the
repository is where the change is judged. A golden is text with a final newline; what varies (ids, times) is made the
same by the caller before.
"""

from pathlib import Path

import pytest

OPTION = "--update-goldens"


def add_option(parser: pytest.Parser) -> None:
    """Adds the option; for the topmost `conftest.py`."""
    parser.addoption(OPTION, action="store_true", default=False, help="write the golden files instead of comparing")


def check(path: Path, text: str, request: pytest.FixtureRequest) -> None:
    """Asserts that `text` is what the golden file at `path` holds, or writes it there when that is asked for."""
    text = text.rstrip("\n") + "\n"
    if request.config.getoption(OPTION):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    assert path.exists(), f"there is no golden file {path.name}: run the test with {OPTION} and read what it writes"
    assert text == path.read_text(encoding="utf-8"), f"{path.name} differs; if it should, run the test with {OPTION}"
