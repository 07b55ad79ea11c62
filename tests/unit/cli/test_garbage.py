"""The garbage collector of commands and of long-running processes."""

import gc
import sys
from collections.abc import Iterator

import pytest
import typer

from tarsy.app.garbage import YOUNGEST, keep_modules
from tarsy.cli.plugin import run_app
from tarsy.cli.running import go


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_what_a_process_keeps_is_left_out_of_collections() -> None:
    kept, before = [[]], gc.get_freeze_count()  # type: ignore[var-annotated]
    keep_modules()
    assert gc.get_freeze_count() > before
    assert not any(one is kept for one in gc.get_objects())


def test_a_command_collects_less_often_from_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.set_threshold(700, 11, 12)
    app, thresholds = typer.Typer(), []
    app.command()(lambda: thresholds.append(gc.get_threshold()))
    monkeypatch.setattr(sys, "argv", ["tarsy"])
    with pytest.raises(SystemExit):
        run_app(app)
    assert thresholds == [(YOUNGEST, 11, 12)]


@pytest.mark.parametrize("service", [True, False])
def test_only_a_long_running_process_keeps_what_it_imported(service: bool) -> None:
    before = gc.get_freeze_count()

    async def work() -> int:
        return int((gc.get_freeze_count() > before) is not service)

    with pytest.raises(typer.Exit) as ended:
        go(work(), service=service)
    assert ended.value.exit_code == 0
